"""Scripted writers for tests of the stages that have texts written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import pytest

from servers import API_KEY, Request, Script, ScriptedServer


@contextmanager
def writers(
    scripts: Mapping[str, Script], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, dict[str, ScriptedServer]]]:
    """Serve writers by name; give the option that binds them to the role, and the servers."""
    monkeypatch.setenv("LOOPBACK_API_KEY", API_KEY)
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(ScriptedServer(script)) for name, script in scripts.items()
        }
        options = [server.role_option(name, max_retries=0) for name, server in servers.items()]
        bound = options[0] if len(options) == 1 else f"[{', '.join(options)}]"
        yield f"writer={bound}", servers


def as_json(*texts: str) -> str:
    return json.dumps({"texts": list(texts)})


def fenced(request: Request, name: str) -> str:
    """Give what stands between the marks of a name in a question; empty where there are none."""
    found = re.search(rf"<<<{name} (\w{{16}})\n(.*?)\n{name} \1>>>", request.question, re.DOTALL)
    return found[2] if found else ""

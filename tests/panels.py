"""A panel of scripted moderators on loopback, for tests of stages that ask one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import pytest

from or_eval.dataset_builders.engine import conversations
from or_eval.dataset_builders.panel.moderators import Wording, judging
from or_eval.schema import Label, PromptRecord, prompt_id
from servers import API_KEY, Reply, Request, Script, ScriptedServer, case_key

Said = Callable[[Request], Reply | str]


def fenced(request: Request, mark: str) -> str | None:
    """Find the text that a moderator is shown between marks (PROMPT or RESPONSE)."""
    key = case_key(request)
    question = next(m["content"] for m in request.messages if m["role"] == "user")
    found = re.search(f"<<<{mark} {key}\n(.*)\n{mark} {key}>>>", question, re.DOTALL)
    return found.group(1) if found else None


def line(request: Request, field: str, said: object, why: str = "Because.") -> str:
    """Give the reply of a moderator that does its work."""
    return json.dumps({"why": why, field: said, "key": case_key(request)})


def asked(wording: Wording, *texts: str) -> tuple[str, str]:
    """Give the question of a moderator about texts, and that after an answer with nothing in it."""
    talk = judging(wording, *texts)
    return next(talk).messages[-1].text, talk.send(conversations.Reply("a", "")).messages[-1].text


def repeated(request: Request) -> bool:
    """Whether this is the repair question."""
    return len([m for m in request.messages if m["role"] == "user"]) > 1


def record(text: str, label: Label = Label.TOXIC, **changes: object) -> PromptRecord:
    """Give a prompt as the stage before moderation leaves it."""
    return PromptRecord(
        id=prompt_id(text),
        prompt=text,
        label=label,
        category="violence",
        language="en",
        source="test",
        **changes,
    )


@contextmanager
def panel(
    scripts: Mapping[str, Script], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, dict[str, ScriptedServer]]]:
    """Serve moderators by name; give the option that binds them to the role, and the servers."""
    monkeypatch.setenv("LOOPBACK_API_KEY", API_KEY)
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(ScriptedServer(script)) for name, script in scripts.items()
        }
        options = [server.role_option(name, max_retries=0) for name, server in servers.items()]
        yield f"moderator=[{', '.join(options)}]", servers

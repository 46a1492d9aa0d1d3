"""Running the `inspect` command as a user does, in a process of its own, for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from servers import API_KEY, ScriptedServer

INSPECT = Path(sys.executable).parent / "inspect"
MODEL = "openai-api/loopback/scripted"
"""The model that a `ScriptedServer` serves, given `loopback(server)` as environment."""


def loopback(server: ScriptedServer) -> dict[str, str]:
    """Give the environment in which `MODEL` is served by `server`."""
    return {"LOOPBACK_API_KEY": API_KEY, "LOOPBACK_BASE_URL": server.base_url}


def start_inspect(
    *arguments: object, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start an `inspect` command; its two outputs come as one text."""
    return subprocess.Popen(
        [
            INSPECT,
            *map(str, arguments),
            *(["--display", "plain"] if "eval" in str(arguments[0]) else []),
        ],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "200", **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run_inspect(*arguments: object, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run an `inspect` command that must succeed, and give what it printed."""
    process = start_inspect(*arguments, cwd=cwd, env=env)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    return output

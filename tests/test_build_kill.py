"""A build that is killed at random moments comes to the same end, and asks nothing twice.

OR_EVAL_KILLS says how often it is killed (3 by default, to be quick).
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from servers import API_KEY, Reply, Request, ScriptedServer

KILLS = int(os.environ.get("OR_EVAL_KILLS", "3"))
ROWS = 8 * KILLS
RECIPE = f"""\
name: letters
taxonomy: or_bench
stages:
  - stage: letters
    count: {ROWS}
    drop: [1]
  - stage: shout
  - stage: shout
    name: louder
    input: [shout, letters.unlucky]
  - stage: split
    subsets: {{few: {{size: 5}}, all: {{}}}}
  - stage: publish
    licence: cc-by-4.0
"""
SETTLED = 0.25
"""Seconds from a reply to a kill, within which the reply may not have reached the build's disk."""


class Clock:
    """Notes when each request was answered."""

    def __init__(self) -> None:
        self.answered: dict[str, list[float]] = {}

    def script(self, request: Request) -> Reply:
        time.sleep(0.15)
        self.answered.setdefault(request.question, []).append(time.monotonic())
        return Reply(request.question.upper())


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOOPBACK_API_KEY", API_KEY)
    path = tmp_path / "letters.yaml"
    path.write_text(RECIPE, "utf-8")
    return path


def start(recipe: Path, out: Path, server: ScriptedServer) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            sys.executable, Path(__file__).parent / "run_build.py", recipe, "--out", out,
            "--display", "none", "--max-connections", "2",
            "--model-role", f"writer={server.role_option('writer')}",
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def finished_set(out: Path) -> dict[str, bytes]:
    files = [path for path in (out / "dataset").rglob("*") if path.is_file()]
    assert files
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


def test_killed_builds_end_alike_and_ask_nothing_twice(recipe: Path, tmp_path: Path) -> None:
    clock, chance = Clock(), random.Random(7)
    killed_at: list[float] = []
    with ScriptedServer(clock.script) as server:
        for _ in range(KILLS):
            asked = len(server.requests)
            process = start(recipe, tmp_path / "killed", server)
            while len(server.requests) == asked and process.poll() is None:
                time.sleep(0.01)  # most of a run's time goes into loading; kill while it works
            time.sleep(chance.uniform(0, 1.5))
            process.kill()
            process.wait()
            killed_at.append(time.monotonic())
        assert start(recipe, tmp_path / "killed", server).wait(timeout=300) == 0
        for question, times in clock.answered.items():
            for when in times[:-1]:
                assert any(abs(kill - when) < SETTLED for kill in killed_at), question
        assert start(recipe, tmp_path / "whole", server).wait(timeout=300) == 0
    assert finished_set(tmp_path / "killed") == finished_set(tmp_path / "whole")

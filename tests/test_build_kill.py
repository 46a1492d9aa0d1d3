"""A build that is killed at random moments comes to the same end, and asks nothing twice.

OR_EVAL_KILLS says how often each is killed (2 by default, to be quick).
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from commands import Command
from scripted_builds import ANSWER, REFUSAL
from servers import API_KEY, Reply, Request, ScriptedServer
from test_build_rounds import RECIPE as ROUNDS
from test_build_rounds import Models

KILLS = int(os.environ.get("OR_EVAL_KILLS", "2"))
JUDGED = {"verdict": ("harmless", "harmful"), "alarm": ("5", "1"), "category": ("none", "violence")}
AT_ONCE = 4
"""Calls that may be under way at a kill: two connections to each of two models."""


class Clock:
    """Notes in which order requests were answered, and when among them builds were killed."""

    def __init__(self, reply: Callable[[Request], str], delay: float) -> None:
        self.answered: list[str] = []
        self._kills: list[int] = []
        self._reply, self._delay = reply, delay

    def script(self, request: Request) -> Reply:
        time.sleep(self._delay)
        # As a model sees it: which model, and all messages.
        asked = json.dumps([request.body["model"], request.messages], ensure_ascii=False)
        self.answered.append(asked)
        return Reply(self._reply(request))

    def killed(self) -> None:
        self._kills.append(len(self.answered))

    def asked_again(self) -> list[str]:
        """Give the requests that were asked again, but for those under way at a kill."""
        last = {question: number for number, question in enumerate(self.answered)}
        return [
            question
            for number, question in enumerate(self.answered)
            if last[question] != number
            and not any(abs(number - kill) <= AT_ONCE for kill in self._kills)
        ]


def start(recipe: object, out: Path, *options: str) -> Command:
    said = ["--out", out, "--display", "none", "--max-connections", "2", *options]
    return Command("or-eval", "build", recipe, *said)


def finish(recipe: object, out: Path, *options: str) -> None:
    build = start(recipe, out, *options)
    said = build.communicate(timeout=1800)
    assert build.returncode == 0, said


def killed_and_whole(
    reply: Callable[[Request], str],
    delay: float,
    recipe: object,
    folder: Path,
    options: Callable[[ScriptedServer], list[str]],
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Build once with kills at random moments, and once without; give what was published."""
    clocks = [Clock(reply, delay) for _ in range(2)]
    with ScriptedServer(clocks[0].script) as server:
        finish(recipe, folder / "whole", *options(server))
    with ScriptedServer(clocks[1].script) as server:
        whole = len(clocks[0].answered)
        build_with_kills(clocks[1], server, recipe, folder / "killed", options(server), whole)
    return finished_set(folder / "killed"), finished_set(folder / "whole")


def build_with_kills(
    clock: Clock, server: ScriptedServer, recipe: object, out: Path, said: list[str], requests: int
) -> None:
    """Build, killed KILLS times on the way to all `requests`; ask nothing twice."""
    chance = random.Random(7)
    for number in sorted(chance.randint(1, requests - 1) for _ in range(KILLS)):
        process = start(recipe, out, *said)
        while len(server.requests) < number and process.poll() is None:
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.1))
        assert process.poll() is None, process.communicate()
        process.kill()
        process.communicate()
        clock.killed()
    finish(recipe, out, *said)
    assert clock.asked_again() == []


def finished_set(out: Path) -> dict[str, bytes]:
    files = [path for path in (out / "dataset").rglob("*") if path.is_file()]
    assert files
    # What was under way at a kill is asked, and paid, again.
    cost = re.compile(rb"## What it cost\n.*?(?=## The recipe\n)", re.DOTALL)
    return {str(path.relative_to(out)): cost.sub(b"", path.read_bytes()) for path in files}


def seeds_and_texts(request: Request) -> str:
    """Write, moderate and answer, by the request alone."""
    system, question = request.messages[0]["content"], request.question
    if key := re.search(r"Key of this case: (\w+)", question):
        field = next(one for one in JUDGED if f'"{one}"' in system + question)
        toxic = int(hashlib.sha256(question.encode()).hexdigest(), 16) % 5 == 0
        said = JUDGED[field][toxic]
        return json.dumps({"why": "So.", field: said, "key": key[1]})
    if "narrower topics" in question:
        return json.dumps({"texts": ["at work", "at home"]})
    if category := re.search(r"^Category: (.+)", question, re.MULTILINE):
        number = re.search(r"This is question (\d+)", question)[1]
        wanted = int(re.search(r"Write (\d+) new", question)[1])
        texts = [f"Help me do {category[1]} number {number} {n} to them." for n in range(wanted)]
        return json.dumps({"texts": texts})
    if seed := re.search(r"<<<SEED \w+\n(.*?)\nSEED", question, re.DOTALL):
        wanted = int(re.search(r"(\d+) (?:prompts|messages) in", question)[1])
        texts = [f"What is it about {seed[1]} that makes it kind {n}?" for n in range(wanted)]
        if "<mark>" in system:
            last = "stands at the very end" in question
            texts = [long_text(text, at_end=last) for text in texts]
        return json.dumps({"texts": texts})
    refused = int(hashlib.sha256(question.encode()).hexdigest(), 16) % 3
    return REFUSAL if refused else ANSWER


def long_text(text: str, *, at_end: bool) -> str:
    filler = " ".join(
        f"On day {n} we walked home along the river and spoke of supper." for n in range(30)
    )
    marked = f"<mark>{text}</mark>"
    return f"{filler} {marked}" if at_end else f"{marked} {filler}"


@pytest.mark.parametrize(
    # The second has every stage of `or_bench`, and more.
    ("recipe", "voting"),
    [("lto", "vote"), ("or_bench_checked", "hard")],
)
def test_the_bundled_recipes_survive_kills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: str, voting: str
) -> None:
    monkeypatch.setenv("LOOPBACK_API_KEY", API_KEY)

    def options(server: ScriptedServer) -> list[str]:
        monkeypatch.setenv("LOOPBACK_BASE_URL", server.base_url)
        said = [
            f"seeds.per_category={1 + KILLS // 5}",
            *([] if KILLS > 2 else ["seeds.categories=[violence, privacy, hate]"]),
            "rewrite.count=2",
            f"{voting}.min_refusals=1",
            "test_refusal.models=[openai-api/loopback/x]",
            "dedup.threshold=null",
            "distinct.threshold=null",
        ]
        panel = ", ".join(server.role_option(f"moderator-{number}") for number in range(2))
        return [
            *(part for change in said for part in ("--set", change)),
            *("--model-role", f"writer={server.role_option('writer')}"),
            *("--model-role", f"moderator=[{panel}]"),
            *("--model-role", f"responder={server.role_option('responder')}"),
        ]

    killed, whole = killed_and_whole(seeds_and_texts, 0.05, recipe, tmp_path, options)
    assert killed == whole
    assert any(name.endswith(".parquet") for name in whole)


def test_a_recipe_with_rounds_survives_kills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPBACK_API_KEY", API_KEY)
    path = tmp_path / "rounds.yaml"
    path.write_text(ROUNDS, "utf-8")
    models = Models()

    def reply(request: Request) -> str:
        return "yes" if "word yes" in request.question else models._reply(request)

    def options(server: ScriptedServer) -> list[str]:
        targets = f"fill.targets=[{{category: [violence, privacy], rows: {2 * KILLS}}}]"
        changes = [f"seeds.per_category={KILLS}", "seeds.batch=5", targets]
        roles = [f"{role}={server.role_option(role)}" for role in ("writer", "moderator")]
        return [
            *(part for change in changes for part in ("--set", change)),
            *(part for role in roles for part in ("--model-role", role)),
        ]

    killed, whole = killed_and_whole(reply, 0.05, path, tmp_path, options)
    assert killed == whole
    # It took more than one round.
    need = pd.read_csv(tmp_path / "whole/stages/fill/tables/balance.csv")
    assert len(pd.read_parquet(tmp_path / "whole/stages/seeds/rows.parquet")) > 2 * KILLS
    assert list(need["missing"]) == [0, 0]

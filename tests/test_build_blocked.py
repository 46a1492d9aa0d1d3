"""A request that a provider won't have is that row's answer; what concerns all stops the stage."""

from __future__ import annotations

import json
import threading
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from inspect_ai.model import ChatMessageUser

from or_eval.dataset_builders.engine.asking import Asker
from or_eval.dataset_builders.engine.conversations import Question, Talk
from or_eval.dataset_builders.engine.conversations import Reply as Answered
from or_eval.dataset_builders.engine.conversations import Request as Asked
from or_eval.dataset_builders.engine.recipe import load_recipe
from or_eval.dataset_builders.engine.request_errors import BLOCKED, FAILED, request_problem
from or_eval.dataset_builders.engine.run import Build
from or_eval.dataset_builders.errors import BuildError
from or_eval.schema import Label, PromptRecord, prompt_id
from scripted_builds import rows, servers
from servers import Reply, Request, Script
from test_build_scripted import (
    ARM_TEXTS,
    BOSS_TEXTS,
    CHANGES,
    LOCK,
    MAIL_TEXTS,
    Writer,
    moderator,
    target,
)


def drops(out: Path, stage: str) -> list[tuple[str, str]]:
    dropped = rows(out, stage, "dropped")[["prompt", "reason"]]
    return sorted(dropped.itertuples(index=False, name=None))


RISK = Reply("Content Exists Risk", status=400)


def blocking(script: Script, text: str, reply: Reply = RISK) -> Script:
    """Answer as a script does, but for requests that hold a text."""
    return lambda request: reply if text in request.messages[-1]["content"] else script(request)


def test_one_row_that_is_blocked_in_each_role_ends_nothing(tmp_path: Path) -> None:
    panel = [moderator(0), blocking(moderator(1), MAIL_TEXTS[2]), moderator(2)]
    writer = blocking(Writer(), LOCK)
    with servers(writer, panel, blocking(target, ARM_TEXTS[1])) as (asking, started):
        for _ in range(2):
            build = Build(load_recipe("or_bench", CHANGES), tmp_path, asking, say=lambda line: None)
            facts = {fact.name: fact for fact in build.run()}
            asked = [len(server.requests) for server in started]
        assert asked == [len(server.requests) for server in started]
    assert facts["rewrite"].dropped == {"blocked": 3, "duplicate": 1}
    # Two of three are a majority only where both say so: here one does, and one was blocked.
    assert (MAIL_TEXTS[2], "disagreement") in drops(tmp_path, "moderate")
    assert drops(tmp_path, "moderate") == sorted(
        [(MAIL_TEXTS[0], "toxic"), (MAIL_TEXTS[1], "toxic"), (MAIL_TEXTS[2], "disagreement")]
    )
    # A target that may not see a prompt has refused it.
    hard = rows(tmp_path, "hard")
    votes = {row.prompt: json.loads(row.meta)["votes"] for row in hard.itertuples()}
    assert list(votes) == ARM_TEXTS[:2]
    assert set(votes[ARM_TEXTS[1]].values()) == {True}
    assert BOSS_TEXTS[0] not in votes


@pytest.mark.parametrize("status", [401, 403, 404, 429])
def test_what_concerns_all_requests_stops_the_stage(tmp_path: Path, status: int) -> None:
    broken = threading.Event()
    broken.set()

    def first(request: Request) -> Reply | str:
        return Reply("no", status=status) if broken.is_set() else moderator(0)(request)

    with servers(Writer(), [first, moderator(1), moderator(2)], target) as (asking, _):
        build = Build(load_recipe("or_bench", CHANGES), tmp_path, asking, say=lambda line: None)
        with pytest.raises(BuildError, match=r"stage moderate: .* calls failed"):
            build.run()
        broken.clear()
        build.run()
    assert len(pd.read_parquet(tmp_path / "dataset/full/train.parquet")) == 5


@pytest.mark.parametrize(
    ("replies", "kept"),
    [
        (["no schema here"] * 2, False),
        (["no schema here"], True),  # of one request nobody can tell
        (["strange 1", "strange 2"], True),
        (["input is too long"] * 2, True),
        ([f"strange {number}" for number in range(10)], False),
    ],
)
def test_what_a_provider_says_of_each_request_stops_the_stage(
    tmp_path: Path, replies: list[str], kept: bool
) -> None:
    row = iter(replies)

    def writer(request: Request) -> Reply:
        return Reply(next(row), status=400)

    rows = [
        PromptRecord(prompt_id(text), text, Label.TOXIC, "violence", "en", "test")
        for text in (f"How do I break window {number}?" for number in range(len(replies)))
    ]
    with servers(writer, [target], target) as (asking, _):
        asker = Asker(asking, tmp_path)
        panel = asking.bindings()["writer"].models
        questions = [(row, [Question("writer", panel, partial(once, row.prompt))]) for row in rows]
        if kept:
            assert [reply.problem for _, [reply] in asker.ask("x", questions)] == (
                [FAILED] * len(replies)
            )
        else:
            with pytest.raises(BuildError, match=f"{len(replies)} of {len(replies)} calls failed"):
                list(asker.ask("x", questions))


def once(text: str) -> Talk[Answered]:
    """A conversation of one request."""
    return (yield Asked((ChatMessageUser(content=text),)))


class Said(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"request: how to bypass a content filter; {message}")
        self.status_code, self.provider_message = status, message


@pytest.mark.parametrize(
    ("status", "message", "problem"),
    [
        (400, "Content Exists Risk", BLOCKED),
        (400, "The response was filtered due to the prompt triggering content management policy", BLOCKED),
        (400, "Input data may contain inappropriate content.", BLOCKED),
        (400, "DataInspectionFailed", BLOCKED),
        (400, "系统检测到输入或生成内容可能包含不安全或敏感内容", BLOCKED),
        (403, "Your chosen model requires moderation and your input was flagged", BLOCKED),
        (403, "Your account has been flagged for unusual activity and is suspended", None),
        (451, "unavailable", BLOCKED),
        (400, "temperature must be 1 for this model", None),
        (400, "The model `gpt-x` does not exist", None),
        (400, "Unsupported parameter: 'max_tokens'", None),
        (400, "This model's maximum context length is 8192 tokens; yours has 9000", FAILED),
        (400, "Input is too long for this model", FAILED),
        (400, "the messages can't be read", FAILED),
        (422, "unprocessable", FAILED),
        (413, "too large", FAILED),
        (401, "wrong key", None),
        (403, "your account may not use this model", None),
        (404, "no such model", None),
        (429, "slow down", None),
        (500, "content moderation is down", None),
    ],
)  # fmt: skip
def test_errors_are_told_apart(status: int, message: str, problem: str | None) -> None:
    assert request_problem(Said(status, message)) == problem

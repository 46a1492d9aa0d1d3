"""A model that fails whoever asks it, a server that hangs, a full disk: each stops what is asked."""

from __future__ import annotations

import json
import re
import resource
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from letters_builds import extra_stages  # noqa: F401
from or_eval.dataset_builders.engine import asking as asking_module
from or_eval.dataset_builders.engine.models import Asking
from or_eval.dataset_builders.engine.recipe import load_recipe
from or_eval.dataset_builders.engine.request_errors import concern_of_all
from or_eval.dataset_builders.engine.run import Build
from or_eval.dataset_builders.errors import BuildError
from scripted_builds import ANSWER
from servers import Reply, Request, ScriptedServer, verdict_line
from test_build_blocked import Said
from test_build_kill import finished_set

pytestmark = pytest.mark.usefixtures("extra_stages")

ROWS = 40
AT_ONCE = 4
IN_A_ROW = 3
HEAD = "name: letters\ntaxonomy: or_bench\nstages:\n"
TAIL = "  - {stage: split, subsets: {all: {}}}\n  - {stage: publish, licence: cc-by-4.0}\n"
RECIPES = {
    "asked": "  - stage: shout\n",
    "tested": "  - {stage: test_refusal, models: [openai-api/loopback/x], judge: all}\n"
    "  - {stage: vote, min_refusals: 0}\n",
}
NO_KEY = Reply("no such key", status=401)
QUOTA = Reply(
    raw=json.dumps(
        {"error": {"message": "You exceeded your current quota.", "code": "insufficient_quota"}}
    ).encode(),
    status=429,
)


class Provider:
    """Answers well, until it does otherwise to those who ask one model; counts both."""

    def __init__(self, bad: Reply, after: int, model: str = "w") -> None:
        self.bad, self.after, self.model, self.well = bad, after, model, threading.Event()
        self.given, self.answered = 0, Counter[tuple[str, str]]()
        self._lock = threading.Lock()

    def script(self, request: Request) -> Reply | str:
        model = request.body["model"]
        with self._lock:
            before = sum(count for (asked, _), count in self.answered.items() if asked == model)
            if model == self.model and before >= self.after and not self.well.is_set():
                self.given += 1
                return self.bad
            self.answered[model, json.dumps(request.messages)] += 1
        return good(request)


def good(request: Request) -> str:
    if "Key of this case" in str(request.messages):
        return verdict_line(request, "direct_refusal")  # which no rule would say
    return f"{request.question.upper()} {ANSWER}"


class Builds:
    """Builds of a recipe, on a provider."""

    def __init__(self, folder: Path, server: ScriptedServer, kind: str, **config: object) -> None:
        self.folder, self.path, self.said = folder, folder / f"{kind}.yaml", []
        letters = f"  - {{stage: letters, count: {ROWS}}}\n"
        self.path.write_text(HEAD + letters + RECIPES[kind] + TAIL, "utf-8")
        # The clients try again by themselves, as they do for users.
        model = {"model": "openai-api/loopback/w", "model_args": {"base_url": server.base_url}}
        role = f"{'writer' if kind == 'asked' else 'grader'}={json.dumps(model)}"
        settings = {"max_connections": AT_ONCE, "max_retries": 0, **config}
        self.asking = Asking(roles=(role,), config=settings, display="none")

    def run(self, out: str = "out") -> dict[str, bytes]:
        recipe = load_recipe(self.path)
        Build(recipe, self.folder / out, self.asking, say=self.said.append).run()
        return finished_set(self.folder / out)


@contextmanager
def building(
    folder: Path, provider: Provider, kind: str, patch: pytest.MonkeyPatch, **config: object
) -> Iterator[Builds]:
    with ScriptedServer(provider.script) as server:
        patch.setenv("LOOPBACK_BASE_URL", server.base_url)
        yield Builds(folder, server, kind, **config)


def stopped_soon(provider: Provider) -> None:
    """Make sure that no more went out than were out at the first failure, and a few to be sure."""
    assert IN_A_ROW <= provider.given < AT_ONCE + IN_A_ROW


def goes_on_to_the_same(builds: Builds, provider: Provider, lost: int = 0) -> None:
    """Let the provider be well; make sure that what it answered isn't asked again, but for what
    was told to be lost: calls under way, some of which it hadn't answered yet.
    """
    provider.well.set()
    finished = builds.run()
    assert sum(provider.answered.values()) - len(provider.answered) <= lost
    assert finished == builds.run("whole")


@pytest.mark.parametrize(
    ("kind", "model", "bad", "after"),
    [
        ("asked", "w", NO_KEY, ROWS // 2),
        ("asked", "w", QUOTA, ROWS // 2),
        ("tested", "x", NO_KEY, ROWS // 2),
        ("tested", "w", NO_KEY, ROWS - AT_ONCE),  # the judge, with no response to come
    ],
)
def test_a_key_that_is_revoked_on_the_way_stops_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, model: str, bad: Reply, after: int
) -> None:
    provider = Provider(bad, after, model)
    with building(tmp_path, provider, kind, monkeypatch) as builds:
        with pytest.raises(
            BuildError, match=r"^stage .*: 3 calls failed in a row, so it gets no more requests"
        ):
            builds.run()
        stopped_soon(provider)
        goes_on_to_the_same(builds, provider)


@pytest.mark.parametrize(("kind", "model"), [("asked", "w"), ("tested", "x")])
def test_a_server_that_hangs_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, model: str
) -> None:
    provider = Provider(Reply(delay=600), ROWS // 2, model)
    monkeypatch.setattr(asking_module, "_QUIET", 0.5)
    monkeypatch.setattr(asking_module, "_LOOK_AGAIN", 0.05)
    with building(tmp_path, provider, kind, monkeypatch, timeout=2) as builds:
        began = time.monotonic()
        with pytest.raises(BuildError, match=r"NoAnswer: no answer in 2 s \(--timeout"):
            builds.run()
        assert time.monotonic() - began < 30
        stopped_soon(provider)
        assert any(
            re.search(r"no reply for .* after 2 s \(--timeout", line) for line in builds.said
        )
        goes_on_to_the_same(builds, provider)


def test_a_call_that_fails_alone_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Provider(NO_KEY, 0)
    slow: list[Request] = []

    def script(request: Request) -> Reply | str:
        if request.number in (3, 20, 21):
            slow.append(request)
            return NO_KEY if slow[1:] else Reply(delay=600)
        return good(request)

    monkeypatch.setattr(provider, "script", script)
    with building(tmp_path, provider, "asked", monkeypatch, timeout=2) as builds:
        builds.run()
    assert len(slow) == 3


@pytest.mark.parametrize("kind", RECIPES)
def test_where_nothing_can_be_written_no_more_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    provider = Provider(NO_KEY, ROWS, "nobody")
    with building(tmp_path, provider, kind, monkeypatch) as builds:
        with files_of_most(120_000), pytest.raises(BuildError) as raised:
            builds.run()
        told = re.search(
            r"no more requests go out; (\d+) calls in progress are lost", str(raised.value)
        )
        assert told, raised.value
        assert 5 < len(provider.answered) < ROWS
        goes_on_to_the_same(builds, provider, lost=int(told[1]))


@contextmanager
def files_of_most(size: int) -> Iterator[None]:
    """Let no file grow beyond a size, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


GOOGLE = (
    "You exceeded your current quota, please check your plan and billing details. Quota exceeded "
    "for metric: generate_content_free_tier_requests, limit: 10\nPlease retry in 32.3s."
)


@pytest.mark.parametrize(
    ("status", "message", "concerns"),
    [
        (401, "wrong key", True),
        (402, "Insufficient Balance", True),
        (403, "your account may not use this model", True),
        (403, "your input was flagged", False),
        (404, "no such model", True),
        (400, "The model `gpt-x` does not exist", True),
        (400, "API key not valid. Please pass a valid API key.", True),
        (400, "Your credit balance is too low to access the API", True),
        (400, "Content Exists Risk", False),
        (400, "Unsupported parameter: 'response_format'", False),  # another form may be taken
        (400, "the messages can't be read", False),
        (429, "slow down", False),
        (429, "Rate limit reached on requests per minute. Please try again in 20s.", False),
        (429, "You exceeded your current quota, insufficient_quota", True),
        (429, GOOGLE, False),
        (429, GOOGLE + " quotaId: GenerateRequestsPerDayPerProjectPerModel-FreeTier", True),
        (400, "This organization has been disabled.", True),
        (400, "User location is not supported for the API use.", True),
        (400, "The model `llama3-8b` has been decommissioned and is no longer supported.", True),
        (400, "llama is not a valid model ID", True),
        (400, "模型不存在", True),
        (400, "You have reached your specified API usage limits.", True),
        (403, "Your account has been flagged for unusual activity and is suspended", True),
        (403, "The user's message was flagged by moderation", False),
        (400, "Your prompt was flagged as potentially violating our usage policy", False),
        (500, "billing is down", False),
    ],
)
def test_what_concerns_every_request_is_told_apart(
    status: int, message: str, concerns: bool
) -> None:
    assert (concern_of_all(Said(status, message)) is not None) == concerns

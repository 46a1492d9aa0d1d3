"""A pool: several endpoints asked as one model, each within its limits, a dead one taken out."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from letters_builds import extra_stages  # noqa: F401
from or_eval.dataset_builders.engine.models import Asking
from or_eval.dataset_builders.engine.recipe import load_recipe
from or_eval.dataset_builders.engine.run import Build
from servers import API_KEY, Reply, Request, ScriptedServer

pytestmark = pytest.mark.usefixtures("extra_stages")

# Seconds that an endpoint takes for a reply, and the calls that it takes at once.
ROWS = 32
ENDPOINTS = ((1.0, 2), (0.5, 1), (2.0, 4), (1.0, 2))


class Endpoint:
    """Answers slowly, counts the calls under way, and can die or refuse a key."""

    def __init__(self, seconds: float, limit: int) -> None:
        self.seconds, self.limit = seconds, limit
        self.dead, self.status = threading.Event(), 500
        self.most = self._now = 0
        self._lock = threading.Lock()

    def script(self, request: Request) -> Reply:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(self.seconds)
        with self._lock:
            self._now -= 1
        if self.dead.is_set():
            return Reply("gone", status=self.status)
        return Reply(request.question.upper())


@contextmanager
def pool(
    folder: Path, endpoints: list[Endpoint], rows: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Build, list[ScriptedServer]]]:
    monkeypatch.setenv("LOOPBACK_API_KEY", API_KEY)
    path = folder / "letters.yaml"
    path.write_text(
        f"name: letters\ntaxonomy: or_bench\nstages:\n  - {{stage: letters, count: {rows}}}\n"
        "  - stage: shout\n",
        "utf-8",
    )
    with ExitStack() as stack:
        servers = [stack.enter_context(ScriptedServer(one.script)) for one in endpoints]
        members = [
            json.loads(server.role_option("w", max_connections=one.limit))
            for server, one in zip(servers, endpoints, strict=True)
        ]
        role = f"writer={json.dumps({'pool': members})}"
        asking = Asking(roles=(role,), config={"max_retries": 0}, display="none")
        yield Build(load_recipe(path), folder / "out", asking, say=lambda line: None), servers


def asked(servers: list[ScriptedServer]) -> Counter[str]:
    return Counter(request.question for server in servers for request in server.requests)


def test_the_endpoints_work_side_by_side_within_their_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoints = [Endpoint(*said) for said in ENDPOINTS]
    with pool(tmp_path, endpoints, ROWS, monkeypatch) as (build, servers):
        build.run()
        assert set(asked(servers).values()) == {1}
        assert len(asked(servers)) == ROWS
        # Each of the four can do two a second, so each has nearly a fourth to do: none waits for
        # another. (Counted, not timed: a busy machine is slow, not unfair.)
        assert all(len(server.requests) >= ROWS / 4 * 0.6 for server in servers)
        # The same questions, wherever the model is: nothing is asked again.
        build.run()
        assert len(asked(servers)) == ROWS
    assert all(one.most == one.limit for one in endpoints)


@pytest.mark.parametrize("status", [500, 401, 429])
def test_a_dead_endpoint_is_taken_out_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    endpoints = [Endpoint(0.02, 2), Endpoint(0.02, 2)]
    endpoints[0].status = status
    endpoints[0].dead.set()
    with pool(tmp_path, endpoints, 40, monkeypatch) as (build, servers):
        facts = build.run()
        assert facts[1].rows_out == 40
        assert asked([servers[1]]).total() == 40
        # Some calls were under way when it was found dead.
        assert len(servers[0].requests) <= 2 * 4


def test_an_endpoint_that_hangs_stops_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoints = [Endpoint(600, 2), Endpoint(0.02, 2)]
    with pool(tmp_path, endpoints, 40, monkeypatch) as (build, servers):
        build.asking = replace(build.asking, config={"max_retries": 0, "timeout": 1})
        assert build.run()[1].rows_out == 40
        assert asked([servers[1]]).total() == 40
        assert len(servers[0].requests) <= 2 * 2


def test_an_endpoint_that_dies_on_the_way_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoints = [Endpoint(0.05, 2) for _ in range(4)]
    dying = endpoints[2]
    reply = dying.script
    given: list[str] = []

    def script(request: Request) -> Reply:
        if request.number >= 6:
            dying.dead.set()
        else:
            given.append(request.question)
        return reply(request)

    monkeypatch.setattr(dying, "script", script)
    with pool(tmp_path, endpoints, 60, monkeypatch) as (build, servers):
        assert build.run()[1].rows_out == 60
        living = asked([servers[number] for number in (0, 1, 3)])
        # Of those that it answered while it lived, none but what was under way is asked again.
        assert set(living.values()) == {1}
        assert len(living) >= 60 - len(given)
        assert len(set(given) & set(living)) <= dying.limit
        total = len(asked(servers))
        build.run()
    assert total == 60


def test_where_all_are_dead_the_build_stops_where_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoints = [Endpoint(0.0, 2), Endpoint(0.0, 2)]
    for one in endpoints:
        one.dead.set()
    with pool(tmp_path, endpoints, 4, monkeypatch) as (build, _):
        with pytest.raises(
            Exception, match=r"stage shout: .*no endpoint of the pool is left.* gone"
        ):
            build.run()
        for one in endpoints:
            one.dead.clear()
        assert build.run()[1].rows_out == 4

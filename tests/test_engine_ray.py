"""The engine `ray`, on one local Ray of two workers: the same results, and workers that die."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from inspect_ai.log import read_eval_log

from or_eval.dataset_builders.engine import workers as workers_module
from or_eval.dataset_builders.engine.models import BoundModel
from or_eval.dataset_builders.engine.recipe import load_recipe
from or_eval.dataset_builders.engine.run import Build
from or_eval.dataset_builders.engine.workers import Engine, here, on_ray, workers
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.similarity.embeddings import Likeness
from or_eval.dataset_builders.stages import dedup
from or_eval.dataset_builders.stages.dedup import Dedup
from or_eval.schema import Label, PromptRecord, prompt_id
from scripted_builds import servers
from servers import API_KEY, Request, Script
from stage_context import run_stage, stage_context
from test_build_scripted import CHANGES, Writer, moderator, target

WORDS = ["kill", "bread", "python", "lamp", "river", "story", "weeds", "process", "song", "garden"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray = pytest.importorskip("ray", reason="ray isn't installed: pip install 'or-eval[ray]'")
    with pytest.MonkeyPatch.context() as patch:
        # Workers have the environment that Ray was started in.
        patch.setenv("LOOPBACK_API_KEY", API_KEY)
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
        yield
        ray.shutdown()


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*.parquet"))
    }


def built(engine: Engine, out: Path, panel: Sequence[Script]) -> list[str]:
    """Build `or_bench` on scripted servers; give what they were asked."""
    with servers(Writer(), panel, target) as (asking, started):
        tested = ", ".join(started[1].role_option(name) for name in "xyz")
        recipe = load_recipe("or_bench", [*CHANGES, f"test_refusal.models=[{tested}]"])
        Build(recipe, out, asking, engine=engine, say=lambda line: None).run()
        return [
            f"{number} {request.body['model']} {request.question}"
            for number, server in enumerate(started)
            for request in server.requests
        ]


def test_or_bench_gives_the_same_bytes_though_a_worker_is_killed(
    cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where no worker is
    killed: list[int] = []
    panel = [moderator(number) for number in range(3)]

    def killing(request: Request) -> str:
        time.sleep(0.05)
        if request.number == 2 and not killed:
            name = "ray::_called"
            worker = next(one for one in psutil.process_iter() if one.name().startswith(name))
            killed.append(worker.pid)
            worker.kill()
        return panel[0](request)

    asked = built("here", tmp_path / "here", panel)
    again = built("ray", Path("ray"), [killing, *panel[1:]])
    assert killed
    assert digests(tmp_path / "here") == digests(tmp_path / "ray")
    assert len(digests(tmp_path / "here")) > 10
    # What the worker had under way went out twice, and nothing else.
    assert set(again) == set(asked)
    assert len(again) - len(asked) <= 7 * len(panel)
    # Both workers took their share of the prompts that each model was asked.
    logs = [read_eval_log(path, header_only=True) for path in (tmp_path / "ray/logs").iterdir()]
    assert sum(log.eval.task == "test_refusal" for log in logs) == 2 * len("xyz")
    # What the dead one left confuses no later run.
    assert built("ray", tmp_path / "ray", panel) == []
    assert digests(tmp_path / "here") == digests(tmp_path / "ray")


def test_dedup_gives_the_same_rows(cluster: None, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(dedup, "_BATCH", 100)
    lot = random.Random(1)
    texts = {" ".join(lot.choices(WORDS, k=9)) for _ in range(1000)}
    rows = [
        PromptRecord(prompt_id(text), text, Label.SAFE, "illegal", "en", "test")
        for text in sorted(texts)
    ]
    found = [
        run_stage(Dedup(), rows, stage_context(tmp_path, map=engine)) for engine in (here, on_ray)
    ]
    assert found[0] == found[1]
    assert found[0].dropped


def test_a_worker_that_is_killed_costs_nothing_but_time(cluster: None, tmp_path: Path) -> None:
    # Workers can't import this module, so that what they call is within the test.
    def slowly(part: int) -> tuple[int, int]:
        (tmp_path / f"{part}-{os.getpid()}").touch()
        time.sleep(0.3)
        return part, os.getpid()

    made = on_ray(slowly, range(12))
    results = [next(made)]
    under_way = next(
        path
        for path in tmp_path.iterdir()
        if int(path.name.split("-")[0]) > 0 and int(path.name.split("-")[1]) != os.getpid()
    )
    os.kill(int(under_way.name.split("-")[1]), signal.SIGKILL)
    results += made
    assert [part for part, _ in results] == list(range(12))
    assert len({pid for _, pid in results}) >= 2


def test_an_error_is_the_one_that_it_would_be_here(cluster: None) -> None:
    def fail(part: int) -> None:
        raise BuildError(f"part {part} is bad")

    with pytest.raises(BuildError, match=r"^part 1 is bad$"):
        list(on_ray(fail, [1, 2]))


def test_what_no_other_process_can_have_is_told_in_a_line(cluster: None) -> None:
    with pytest.raises(BuildError, match=r"^--engine ray: what a stage hands out can't be sent"):
        list(on_ray(len, [[threading.Lock()]]))
    # Of a measure, which remembers, the model's name goes.
    assert list(on_ray(lambda likeness: type(likeness).__name__, [Likeness("a")])) == ["Likeness"]


def test_a_missing_ray_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_module, "find_spec", lambda name: None)
    with pytest.raises(BuildError, match=r"^--engine ray: needs ray: .*pip install .*ray\]'$"):
        workers("ray")
    assert workers("here") is here


def test_connections_are_shared_and_workers_without_any_stay_out() -> None:
    limited = BoundModel("a/b", {"max_connections": 5, "temperature": 0})
    assert limited.shared(2).settings == {"max_connections": 2, "temperature": 0}
    assert limited.shared(2).identity == limited.identity
    assert limited.most_workers == 5
    pool = BoundModel("a/b", members=(limited, BoundModel("a/b", {"max_connections": 3})))
    assert pool.most_workers == 3
    assert [one.settings["max_connections"] for one in pool.shared(3).members] == [1, 1]

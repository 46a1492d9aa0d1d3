"""Logs of refusal tests: a run that was cut off, a sample that failed, and judges asked once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from inspect_ai.log import list_eval_logs, read_eval_log, write_eval_log
from inspect_ai.model._model import _models

from letters_builds import extra_stages  # noqa: F401
from or_eval.dataset_builders.engine import fingerprint
from or_eval.dataset_builders.engine.models import Asking
from or_eval.dataset_builders.engine.recipe import load_recipe
from or_eval.dataset_builders.engine.run import Build
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.stages import test_refusal as refusal_stage
from servers import API_KEY, Reply, Request, ScriptedServer, judged_response, verdict_line

pytestmark = pytest.mark.usefixtures("extra_stages")

RECIPE = """\
name: letters
taxonomy: or_bench
stages:
  - {stage: letters, count: 8}
  - {stage: test_refusal, models: [openai-api/loopback/x]}
  - {stage: vote, min_refusals: 1}
"""
VAGUE = "Perhaps one had better think of the sea."


class Judged:
    """A build that tests a model and votes, with a judge."""

    def __init__(self, folder: Path, target: ScriptedServer, judge: ScriptedServer) -> None:
        self.folder, self.target, self.judge = folder, target, judge
        self.out = folder / "out"
        (folder / "letters.yaml").write_text(RECIPE, "utf-8")

    def run(self, judge: str = "judge") -> list[str]:
        role = f"grader={self.judge.role_option(judge)}"
        asking = Asking(roles=(role,), config={"max_retries": 0}, display="none", retry_attempts=0)
        recipe = load_recipe(self.folder / "letters.yaml")
        Build(recipe, self.out, asking, say=lambda line: None).run()
        return list(pd.read_parquet(self.out / "stages/vote/rows.parquet")["prompt"])

    @property
    def logs(self) -> list[str]:
        return [log.name for log in list_eval_logs(str(self.out / "logs"))]

    def forget_stages(self) -> None:
        shutil.rmtree(self.out / "stages")


@pytest.fixture
def broken() -> set[str]:
    """Prompts that the target fails on."""
    return set()


@pytest.fixture
def tested(tmp_path: Path, broken: set[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Judged]:
    def target(request: Request) -> Reply | str:
        return (
            Reply("no", status=404) if request.question in broken else f"{VAGUE} {request.question}"
        )

    def judge(request: Request) -> str:
        refused = judged_response(request)[-1] in "0246"
        return verdict_line(request, "direct_refusal" if refused else "direct_answer")

    with ScriptedServer(target) as one, ScriptedServer(judge) as two:
        monkeypatch.setenv("LOOPBACK_API_KEY", API_KEY)
        monkeypatch.setenv("LOOPBACK_BASE_URL", one.base_url)
        _models.clear()  # Inspect keeps models by name, with the address that they had
        yield Judged(tmp_path, one, two)


REFUSED = [f"letter {number}" for number in (0, 2, 4, 6)]


def test_a_build_goes_on_after_prompts_on_which_a_model_failed(
    tested: Judged, broken: set[str]
) -> None:
    broken |= {"letter 1", "letter 4"}
    with pytest.raises(BuildError, match="2 of 8 calls failed"):
        tested.run()
    broken.clear()
    assert tested.run() == REFUSED
    assert (len(tested.target.requests), len(tested.judge.requests)) == (10, 8)
    assert len(tested.logs) == 1


def test_a_log_that_a_kill_left_is_made_again_from_the_replies(tested: Judged) -> None:
    tested.run()
    [path] = tested.logs
    log = read_eval_log(path)
    log.samples, log.status, log.results = log.samples[:5], "started", None
    write_eval_log(log, path)
    tested.forget_stages()
    assert tested.run() == REFUSED
    assert (len(tested.target.requests), len(tested.judge.requests)) == (8, 8)
    [whole] = tested.logs
    assert len(read_eval_log(whole).samples) == 8


def test_judges_are_not_asked_again_for_changed_rules(
    tested: Judged, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tested.run() == REFUSED
    for mark in ("changed", "changed again"):
        tested.forget_stages()
        for module in (refusal_stage, fingerprint):
            monkeypatch.setattr(module, "code_of", lambda part, mark=mark: mark)
        assert tested.run() == REFUSED
        assert (len(tested.target.requests), len(tested.judge.requests)) == (8, 8)
        assert tested.judge.checks == 0
    # Another judge is asked on its own.
    tested.forget_stages()
    assert tested.run("other") == REFUSED
    assert (len(tested.target.requests), len(tested.judge.requests)) == (8, 16)

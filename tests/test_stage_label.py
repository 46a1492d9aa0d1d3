"""The stage ``label``: rules and every grader vote on each response."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from or_eval.dataset_builders.engine.stage import Place
from or_eval.dataset_builders.stages import stage
from or_eval.dataset_builders.stages.label import Majority, majority, votes_in
from or_eval.schema import Label, PromptRecord, ResponseClass, prompt_id
from servers import API_KEY, Request, ScriptedServer, verdict_line
from stage_context import Result, run_stage, stage_context

ANSWER, PARTIAL, INDIRECT, DIRECT = (
    ResponseClass.DIRECT_ANSWER,
    ResponseClass.PARTIAL_REFUSAL,
    ResponseClass.INDIRECT_REFUSAL,
    ResponseClass.DIRECT_REFUSAL,
)
SAID = {
    "decline": "I'm sorry, but I can't help with that.",
    "help": "Sure. First, open the settings; then choose the folder and press save.",
}
ROWS = [PromptRecord(prompt_id(text), text, Label.SAFE, "violence", "en", "test") for text in SAID]


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Two graders read every response: one as the rules do, the other finds nothing but answers."""

    def judge(request: Request) -> str:
        declined = "can't help" in re.search(r"<<<RESPONSE \w+\n(.*?)\nRESPONSE", request.question, re.DOTALL)[1]  # fmt: skip
        strict = request.body["model"] == "strict"
        return verdict_line(request, "direct_refusal" if declined and strict else "direct_answer")

    out = tmp_path_factory.mktemp("labelled")
    with (
        pytest.MonkeyPatch.context() as patch,
        ScriptedServer(lambda request: SAID[request.question]) as target,
        ScriptedServer(judge) as graders,
    ):
        patch.setenv("LOOPBACK_API_KEY", API_KEY)
        patch.setenv("LOOPBACK_BASE_URL", target.base_url)
        panel = ", ".join(graders.role_option(name) for name in ("strict", "lenient"))
        context = stage_context(out, roles=[f"grader=[{panel}]"])
        kind = stage("test_refusal")
        params = kind(models=("openai-api/loopback/t",), judge="all")
        tested = run_stage(params, ROWS, context)
        assert len(graders.requests) == 4
        label = stage("label")
        context = stage_context(out, input_logs=tested.logs)
        return run_stage(label(), tested.rows, context)


def test_every_voter_counts_and_agreement_is_told(labelled: Result) -> None:
    by_prompt = {row.prompt: row.meta["labels"]["openai-api/loopback/t"] for row in labelled.rows}
    assert by_prompt == {
        "decline": {"refused": True, "label": "direct_refusal", "agreement": 0.667},
        "help": {"refused": False, "label": "direct_answer", "agreement": 1.0},
    }
    table = {one["response"]: one for one in labelled.tables["responses"]}
    declined = table[SAID["decline"]]
    votes = {name.rpartition("/")[2]: said for name, said in declined.items() if "vote of" in name}
    assert votes == {
        "vote of rules": "direct_refusal", "strict": "direct_refusal", "lenient": "direct_answer",
    }  # fmt: skip
    assert declined["voters"] == 3
    assert labelled.tables["agreement"] == [
        {"model": "openai-api/loopback/t", "responses": 2, "refused": 1, "answered": 1,
         "tied or without a vote": 0, "unanimous": 1},
    ]  # fmt: skip
    assert json.dumps(labelled.tables)


@pytest.mark.parametrize(
    ("votes", "found"),
    [
        ([DIRECT, PARTIAL, PARTIAL, ANSWER], Majority(True, PARTIAL, 0.75, 4)),
        ([INDIRECT, DIRECT, ANSWER], Majority(True, INDIRECT, 0.667, 3)),
        ([DIRECT, ANSWER, None], Majority(None, None, 0.5, 2)),
        ([None, ANSWER], Majority(False, ANSWER, None, 1)),
        ([None], Majority(None, None, None, 0)),
    ],
)
def test_sides_come_before_classes(votes: list[ResponseClass | None], found: Majority) -> None:
    assert majority({str(number): vote for number, vote in enumerate(votes)}) == found


def test_a_provider_that_blocks_decides_alone() -> None:
    stages = {"provider": {"label": "direct_refusal"}, "rules": {"label": "direct_answer"}}
    assert votes_in(stages) == {"provider": DIRECT}
    judge = {"votes": [{"model": "m", "label": None}, {"model": "m", "label": "direct_answer"}]}
    assert votes_in({"rules": {"label": None}, "judge": judge}) == {
        "rules": None, "m": None, "m (2)": ANSWER,
    }  # fmt: skip


def test_it_needs_logs(tmp_path: Path) -> None:
    kind = stage("label")
    assert "has no logs" in str(kind().problem(Place("multilingual", ("pair",), None)))

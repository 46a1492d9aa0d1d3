"""The stages test_refusal, vote and split: from models under test to named subsets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from or_eval.dataset_builders.engine.stage import Place
from or_eval.dataset_builders.stages import hardest, split, test_refusal, vote
from or_eval.schema import Label, PromptRecord, prompt_id
from or_eval.sources import DataError
from servers import API_KEY, ScriptedServer
from stage_context import run_stage, stage_context

REFUSAL = "I'm sorry, but I can't help with that."
PARTIAL = "I can't help with the second part of it. As for the first:\n\n1. Open the lid.\n2. Fill in the water.\n3. Press the button."
ANSWER = "Sure. First, open the settings; then choose the folder and press save."
ALL, TWO, ONE, NONE = "all refuse", "two refuse", "one refuses", "none refuses"


def record(text: str, category: str = "violence", label: Label = Label.SAFE) -> PromptRecord:
    return PromptRecord(prompt_id(text), text, label, category, "en", "test")


ROWS = [record(text) for text in (ALL, TWO, ONE, NONE)]


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory):
    """Three models tested on four prompts: how many refuse, the prompt says."""
    refusers = {ALL: "abc", TWO: "ab", ONE: "a", NONE: ""}

    def reply(request) -> str:
        model, asked = request.body["model"], request.question
        if model not in refusers[asked]:
            return ANSWER
        return PARTIAL if (asked, model) == (TWO, "b") else REFUSAL

    patch = pytest.MonkeyPatch()
    patch.setenv("LOOPBACK_API_KEY", API_KEY)
    with ScriptedServer(reply) as server:
        patch.setenv("LOOPBACK_BASE_URL", server.base_url)
        context = stage_context(tmp_path_factory.mktemp("tested"))
        params = test_refusal.RefusalTest(
            models=tuple(f"openai-api/loopback/{name}" for name in "abc")
        )
        yield run_stage(params, ROWS, context)
    patch.undo()


def test_refusals_are_logged_as_by_the_task_itself(tested) -> None:
    assert tested.rows == ROWS
    assert tested.models == {"target": [f"openai-api/loopback/{name}" for name in "abc"]}
    logs = [read_eval_log(location) for location in tested.logs]
    assert [log.eval.model[-1] for log in logs] == list("abc")
    refused = [
        {sample.input for sample in log.samples if sample.scores["refusal"].value == 1}
        for log in logs
    ]
    assert refused == [{ALL, TWO, ONE}, {ALL, TWO}, {ALL}]


def test_without_models_or_rows_nothing_is_asked(tmp_path: Path) -> None:
    context = stage_context(tmp_path)
    place = Place("or_bench", ("moderate",), None)
    assert "names no model" in test_refusal.RefusalTest().problem(place)
    params = test_refusal.RefusalTest(models=("mockllm/model",))
    assert params.problem(place) is None
    assert run_stage(params, [], context).logs == []
    calls = params.plan(4, stage_context(tmp_path)).calls
    assert [(call.role, call.calls) for call in calls] == [("mockllm/model", 4)]


@pytest.mark.parametrize(
    ("params", "kept", "reason"),
    [
        ({"min_refusals": 2}, [ALL, TWO], "fewer than 2 refusals"),
        ({"min_refusals": 3}, [ALL], "fewer than 3 refusals"),
        ({"max_refusals": 0}, [NONE], "more than 0 refusals"),
        ({"majority": True}, [ALL, TWO], "not refused by a majority"),
        ({"of": ("openai-api/loopback/c",), "min_refusals": 1}, [ALL], "fewer than 1 refusals"),
    ],
)
def test_votes_keep_what_the_rule_asks_for(tested, tmp_path, params, kept, reason) -> None:
    context = stage_context(tmp_path, input_logs=tested.logs)
    result = run_stage(vote.Vote(**params), ROWS, context)
    assert [row.prompt for row in result.rows] == kept
    assert {item.record.prompt for item in result.dropped} == {ALL, TWO, ONE, NONE} - set(kept)
    assert {item.reason for item in result.dropped} == {reason}


def test_counting_that_a_recipe_names_is_that_of_its_votes(tested, tmp_path) -> None:
    context = stage_context(tmp_path, input_logs=tested.logs)
    result = run_stage(vote.Vote(min_refusals=1, counting="full"), ROWS, context)
    assert [len([*filter(None, row.meta["votes"].values())]) for row in result.rows] == [3, 1, 1]
    with pytest.raises(ValueError, match="'fully' is none of: strict, full"):
        vote.Vote(counting="fully")


def test_votes_go_with_the_rows(tested, tmp_path) -> None:
    context = stage_context(tmp_path, input_logs=tested.logs)
    result = run_stage(vote.Vote(min_refusals=2), ROWS, context)
    a, b, c = (f"openai-api/loopback/{name}" for name in "abc")
    assert result.rows[1].meta == {"votes": {a: True, b: True, c: False}}
    assert result.dropped[0].detail == f"refused by {a}"
    assert json.dumps(result.rows[1].meta)


def test_a_vote_that_cannot_be(tested, tmp_path) -> None:
    place = Place("or_bench", ("test",), None)
    assert "has to name a test_refusal stage" in vote.Vote().problem(place)
    assert "has no votes" in hardest.Hardest(per_category=1).problem(place)
    tested_ = place._replace(tested=("a/b", "a/c", "a/d"))
    for params, said in (
        ({"min_refusals": 4}, "min_refusals: 4, and only 3 models are tested"),
        ({"of": ("a/b",), "min_votes": 2}, "min_votes: 2, and only 1 models are tested"),
        ({"of": ("a/x",)}, "'a/x' is not tested"),
        ({"min_refusals": 2, "max_refusals": 1}, "min_refusals (2) is above max_refusals (1)"),
    ):
        assert said in (vote.Vote(**params).problem(tested_) or "")
    assert vote.Vote(min_refusals=3).problem(tested_) is None
    context = stage_context(tmp_path, input_logs=tested.logs)
    with pytest.raises(DataError, match="4 can't be met: 3 models vote"):
        run_stage(vote.Vote(min_refusals=4), ROWS, context)


MANY = [record(f"{category} {number}", category) for category in ("hate", "privacy") for number in range(6)]  # fmt: skip


def test_a_row_more_does_not_reshuffle_a_subset() -> None:
    before = split.choose(MANY, split.Subset(per_category=3))
    after = split.choose([record("hate more", "hate"), *MANY], split.Subset(per_category=3))
    assert len(set(map(str, before)) & set(map(str, after))) >= 5


def test_a_subset_of_something_that_is_no_input(tmp_path: Path) -> None:
    params = split.Split.model_validate({"subsets": {"hard": {"input": "vote"}}})
    said = params.problem(Place("or_bench", ("moderate",), None))
    assert said == "subset hard: 'vote' isn't an input of this stage (there are: moderate)"

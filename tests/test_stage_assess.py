"""The stage `assess`: prompts that are harmless to answer, and responses that show it."""

from __future__ import annotations

import hashlib
import json

import pytest
from inspect_ai.log import list_eval_logs, read_eval_log

from made_logs import UNSCORED, made_log, made_sample
from or_eval.analysis.logs import LogError
from or_eval.dataset_builders.engine.ports import Place
from or_eval.dataset_builders.panel.answered_responses import Response, answered_responses
from or_eval.dataset_builders.panel.moderators import PROMPT_LIMIT, case_for
from or_eval.dataset_builders.stages.assess import STAGE, AssessParams, assessment_wording
from or_eval.schema import Label
from panels import fenced, line, panel, record, repeated
from servers import Reply, Request
from stage_context import run_stage, stage_context

A, B, C = (f"openai-api/loopback/{name}" for name in "abc")
OK, BAD = "harmless", "harmful"

# What each moderator says of each text, and what becomes of a prompt by itself.
PROMPTS = {
    "kept": (OK, OK, OK),
    "kept by majority": (OK, BAD, OK),
    "harmful": (BAD, BAD, OK),
    "disagreement": (OK, BAD, ""),
    "unreadable": (OK, "", ""),
    "kept alone": (OK, OK, ""),
    "answered badly": (OK, OK, OK),
    "answered doubtfully": (OK, OK, OK),
    "answered unreadably": (OK, OK, OK),
    "refused by all": (OK, OK, OK),
}
RESPONSES = {
    "A helpful answer.": (OK, OK, OK),
    "A dull answer.": (OK, OK, BAD),
    "A wicked answer.": (BAD, BAD, OK),
    "A doubtful answer.": (OK, BAD, ""),
    "A confusing answer.": ("", OK, ""),
}
GIVEN = {  # by tested model: prompt -> (score, response)
    "test/one": {
        "kept": (0.0, "A helpful answer."),
        "kept by majority": (1.0, "A wicked answer."),  # a refusal: nobody reads it
        "harmful": (0.0, "A helpful answer."),
        "answered badly": (0.0, "A doubtful answer."),
        "answered doubtfully": (0.0, "A confusing answer."),
        "answered unreadably": (0.0, "A confusing answer."),
        "refused by all": (1.0, "A wicked answer."),
    },
    "test/two": {
        "kept": (0.0, "A dull answer."),
        "answered badly": (0.0, "A wicked answer."),
        "answered doubtfully": (0.0, "A doubtful answer."),
        "kept alone": (UNSCORED, "A wicked answer."),  # no verdict: nobody knows it for an answer
        "not in the input": (0.0, "A wicked answer."),
    },
}
ROWS = [record(text, meta={"pos": "end"}) for text in PROMPTS]


def assessor(column: int):
    def script(request: Request) -> Reply | str:
        response = fenced(request, "RESPONSE")
        prompt = fenced(request, "PROMPT")
        said = PROMPTS[prompt] if response is None else RESPONSES[response]
        return line(request, "verdict", said[column]) if said[column] else "It is harmless."

    return script


@pytest.fixture(scope="module")
def logs(tmp_path_factory) -> list[str]:
    folder = tmp_path_factory.mktemp("tested")
    return [
        str(
            made_log(
                folder / f"{model[-3:]}.eval",
                model,
                [
                    made_sample(record(text).id, value, prompt=text, response=response)
                    for text, (value, response) in given.items()
                ],
                # A log's age must not matter: the first model's is the younger.
                second=5 - number,
            )
        )
        for number, (model, given) in enumerate(GIVEN.items())
    ]


@pytest.fixture(scope="module")
def assessed(tmp_path_factory, logs):
    """Run the stage with responses; give its result, its folder and the requests."""
    out = tmp_path_factory.mktemp("assessed")
    with (
        pytest.MonkeyPatch.context() as patch,
        panel({name: assessor(i) for i, name in enumerate("abc")}, patch) as (role, servers),
    ):
        context = stage_context(out, roles=[role], input_logs=logs)
        result = run_stage(STAGE, ROWS, AssessParams(responses=True), context)
        yield result, out, {name: list(server.requests) for name, server in servers.items()}


def ways(result) -> dict[str, str]:
    return {
        **{row.prompt: "kept" for row in result.rows},
        **{item.record.prompt: item.reason for item in result.dropped},
    }


def test_rows_go_by_prompt_first_and_then_by_responses(assessed):
    result, *_ = assessed
    assert ways(result) == {
        "kept": "kept",
        "kept by majority": "kept",
        "kept alone": "kept",
        "refused by all": "kept",
        "harmful": "harmful",
        "disagreement": "disagreement",
        "unreadable": "unreadable",
        "answered badly": "harmful response",
        "answered doubtfully": "disagreement",
        "answered unreadably": "unreadable",
    }
    assert [row.prompt for row in result.rows] == [
        "kept",
        "kept by majority",
        "kept alone",
        "refused by all",
    ]


def test_labels(assessed):
    result, *_ = assessed
    assert {row.label for row in result.rows} == {Label.SAFE}
    labels = {item.record.prompt: item.record.label for item in result.dropped}
    assert labels["harmful"] is Label.TOXIC
    assert labels["answered badly"] is Label.UNLABELLED
    assert labels["disagreement"] is Label.UNLABELLED


def test_meta_holds_what_was_said_of_prompt_and_responses(assessed):
    result, *_ = assessed
    meta = {row.prompt: row.meta for row in result.rows}
    assert meta["kept"] == {
        "pos": "end",
        "assessment": {A: OK, B: OK, C: OK},
        "assessment_responses": {
            "test/one": {A: OK, B: OK, C: OK},
            "test/two": {A: OK, B: OK, C: BAD},
        },
    }
    assert meta["kept alone"]["assessment"] == {A: OK, B: OK, C: None}
    assert meta["refused by all"]["assessment_responses"] == {}
    detail = {item.record.prompt: item.detail for item in result.dropped}
    assert detail["answered badly"].splitlines() == [
        "response of test/two",
        f"{A}: harmful (Because.)",
        f"{B}: harmful (Because.)",
        f"{C}: harmless (Because.)",
    ]


def test_tables_for_prompts_and_for_responses(assessed):
    result, *_ = assessed
    first, _, third = result.tables["moderators"]
    assert first == {
        "moderator": A, "rows": 10, OK: 9, BAD: 1, "unreadable": 0, "refused": 0, "blocked": 0,
        "failed": 0,
    }  # fmt: skip
    assert (third["unreadable"], third[OK]) == (3, 7)
    of_responses = {row["moderator"]: row for row in result.tables["responses_moderators"]}
    assert of_responses[A]["rows"] == 7
    assert (of_responses[A][OK], of_responses[A][BAD], of_responses[A]["unreadable"]) == (4, 1, 2)
    assert {"joint", "pairs", "panel", "responses_joint", "responses_pairs"} <= set(result.tables)
    json.dumps(result.tables, allow_nan=False)


def test_only_answers_to_harmless_prompts_are_asked_about(assessed):
    _, _, requests = assessed
    about = [
        (fenced(request, "PROMPT"), fenced(request, "RESPONSE"))
        for request in requests["a"]
        if not repeated(request) and fenced(request, "RESPONSE")
    ]
    assert sorted(about) == [
        ("answered badly", "A doubtful answer."),
        ("answered badly", "A wicked answer."),
        ("answered doubtfully", "A confusing answer."),
        ("answered doubtfully", "A doubtful answer."),
        ("answered unreadably", "A confusing answer."),
        ("kept", "A dull answer."),
        ("kept", "A helpful answer."),
    ]


def test_log_reads_well(assessed):
    _, out, _ = assessed
    logs = [read_eval_log(info) for info in list_eval_logs(str(out / "logs"))]
    # One for each moderator, on prompts and then on responses.
    assert sorted(log.eval.model for log in logs) == [A, A, B, B, C, C]
    samples = [sample for log in logs for sample in log.samples if log.eval.model == A]
    score = next(sample for sample in samples if sample.input == "kept").scores["answer"]
    assert (score.value, score.answer) == (1.0, "harmless")
    assert score.explanation == f"{A}: harmless (Because.)"


def test_prompts_alone_need_no_logs(tmp_path, monkeypatch):
    with panel({"a": assessor(0)}, monkeypatch) as (role, servers):
        result = run_stage(
            STAGE,
            [*ROWS, record("x" * (PROMPT_LIMIT + 1))],
            AssessParams(),
            stage_context(tmp_path, roles=[role]),
        )
        assert len(servers["a"].requests) == len(ROWS)
    assert ways(result)["harmful"] == "harmful"
    assert result.dropped[-1].reason == "too long"
    assert len(result.rows) == len(ROWS) - 1
    assert set(result.rows[0].meta) == {"pos", "assessment"}
    assert set(result.tables) == {"moderators", "joint"}


def test_responses_without_logs_is_a_mistake(tmp_path):
    place = Place("or_bench", ("moderate",), None)
    assert "its input has no logs" in STAGE.problem(AssessParams(responses=True), place)
    assert STAGE.problem(AssessParams(responses=True), place._replace(tested=("a/b",))) is None
    assert run_stage(STAGE, [], AssessParams(responses=True), stage_context(tmp_path)).rows == []


def test_which_responses_are_taken_hangs_on_prompt_model_and_epoch_alone(tmp_path):
    models = [f"test/{number}" for number in range(6)]
    texts = [f"prompt {number}" for number in range(8)]
    for folder, order in (("one", models), ("other", models[::-1])):
        for second, model in enumerate(order):
            made_log(
                tmp_path / folder / f"{model[-1]}.eval",
                model,
                [
                    made_sample(text, 0.0, epoch=epoch, response=f"{model} {text} {epoch}")
                    for text in texts
                    for epoch in (1, 2)
                ],
                second=second,
            )
    found = answered_responses([str(tmp_path / "one")], texts, 3)
    assert found == answered_responses([str(tmp_path / "other")], texts, 3)
    for text in texts:
        best = sorted(
            ((model, epoch) for model in models for epoch in (1, 2)),
            key=lambda one: hashlib.sha256(f"{text}\n{one[0]}\n{one[1]}".encode()).hexdigest(),
        )[:3]
        assert [one.text for one in found[text]] == [
            f"{model} {text} {epoch}" for model, epoch in sorted(best)
        ]
    assert {one.model for given in found.values() for one in given} >= set(models)
    [twelve] = answered_responses([str(tmp_path / "one")], texts[:1], 99).values()
    assert twelve[:2] == [
        Response("test/0", "test/0 prompt 0 1"),
        Response("test/0 (2)", "test/0 prompt 0 2"),
    ]
    assert answered_responses([str(tmp_path / "one")], ["nobody"], 3) == {}
    with pytest.raises(LogError):
        answered_responses([str(tmp_path)], texts, 3)


@pytest.mark.parametrize("part", ["prompt", "response"])
def test_every_place_of_the_wording_is_filled(part):
    wording = assessment_wording(part)
    case = case_for(wording, "P", "R" if part == "response" else None)
    assert "$" not in wording.system + case.question + case.repair
    assert list(wording.schema.json_schema.properties) == ["why", "verdict", "key"]


def test_plan_counts_the_responses_wanted(tmp_path):
    context = stage_context(tmp_path)
    [alone] = STAGE.plan(100, AssessParams(), context).calls
    [both] = STAGE.plan(100, AssessParams(responses=True, most_responses=2), context).calls
    assert (alone.role, alone.calls, both.calls) == ("moderator", 100, 300)
    assert both.input_tokens > 2 * alone.input_tokens
    assert [path.name for path in STAGE.prompts(AssessParams())] == ["assess.toml"]

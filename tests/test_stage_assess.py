"""The stage `assess`: prompts that are harmless to answer."""

from __future__ import annotations

import json

import pytest
from inspect_ai.log import list_eval_logs, read_eval_log

from or_eval.dataset_builders.panel.moderators import PROMPT_LIMIT, case_for
from or_eval.dataset_builders.stages.assess import Assess
from or_eval.schema import Label
from panels import fenced, line, panel, record
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
}
ROWS = [record(text, meta={"pos": "end"}) for text in PROMPTS]


def assessor(column: int):
    def script(request: Request) -> Reply | str:
        said = PROMPTS[fenced(request, "PROMPT")]
        return line(request, "verdict", said[column]) if said[column] else "It is harmless."

    return script


@pytest.fixture(scope="module")
def assessed(tmp_path_factory):
    """Run the stage; give its result and its folder."""
    out = tmp_path_factory.mktemp("assessed")
    with (
        pytest.MonkeyPatch.context() as patch,
        panel({name: assessor(i) for i, name in enumerate("abc")}, patch) as (role, _),
    ):
        context = stage_context(out, roles=[role])
        return run_stage(Assess(), ROWS, context), out


def ways(result) -> dict[str, str]:
    return {
        **{row.prompt: "kept" for row in result.rows},
        **{item.record.prompt: item.reason for item in result.dropped},
    }


def test_rows_go_by_prompt_first_and_then_by_responses(assessed):
    result, _ = assessed
    assert ways(result) == {
        "kept": "kept",
        "kept by majority": "kept",
        "kept alone": "kept",
        "harmful": "harmful",
        "disagreement": "disagreement",
        "unreadable": "unreadable",
    }
    assert [row.prompt for row in result.rows] == [
        "kept",
        "kept by majority",
        "kept alone",
    ]


def test_labels(assessed):
    result, _ = assessed
    assert {row.label for row in result.rows} == {Label.SAFE}
    labels = {item.record.prompt: item.record.label for item in result.dropped}
    assert labels["harmful"] is Label.TOXIC
    assert labels["disagreement"] is Label.UNLABELLED


def test_meta_holds_what_was_said(assessed):
    result, _ = assessed
    meta = {row.prompt: row.meta for row in result.rows}
    assert meta["kept"] == {"pos": "end", "assessment": {A: OK, B: OK, C: OK}}
    assert meta["kept alone"]["assessment"] == {A: OK, B: OK, C: None}
    detail = {item.record.prompt: item.detail for item in result.dropped}
    assert detail["harmful"].splitlines() == [
        f"{A}: harmful (Because.)",
        f"{B}: harmful (Because.)",
        f"{C}: harmless (Because.)",
    ]


def test_tables(assessed):
    result, _ = assessed
    first, _, third = result.tables["moderators"]
    assert first == {
        "moderator": A, "rows": 6, OK: 5, BAD: 1, "unreadable": 0, "refused": 0, "blocked": 0,
        "failed": 0,
    }  # fmt: skip
    assert (third["unreadable"], third[OK]) == (3, 3)
    assert set(result.tables) == {"moderators", "joint", "pairs", "panel"}
    json.dumps(result.tables, allow_nan=False)


def test_log_reads_well(assessed):
    _, out = assessed
    logs = [read_eval_log(info) for info in list_eval_logs(str(out / "logs"))]
    assert sorted(log.eval.model for log in logs) == [A, B, C]
    samples = [sample for log in logs for sample in log.samples if log.eval.model == A]
    score = next(sample for sample in samples if sample.input == "kept").scores["answer"]
    assert (score.value, score.answer) == (1.0, "harmless")
    assert score.explanation == f"{A}: harmless (Because.)"


def test_prompts_alone_need_no_logs(tmp_path, monkeypatch):
    with panel({"a": assessor(0)}, monkeypatch) as (role, servers):
        result = run_stage(
            Assess(),
            [*ROWS, record("x" * (PROMPT_LIMIT + 1))],
            stage_context(tmp_path, roles=[role]),
        )
        assert len(servers["a"].requests) == len(ROWS)
    assert ways(result)["harmful"] == "harmful"
    assert result.dropped[-1].reason == "too long"
    assert len(result.rows) == len(ROWS) - 1
    assert set(result.rows[0].meta) == {"pos", "assessment"}
    assert set(result.tables) == {"moderators", "joint"}


def test_every_place_of_the_wording_is_filled():
    wording = Assess().wording("or_bench")
    case = case_for(wording, "P")
    assert "$" not in wording.system + case.question + case.repair
    assert list(wording.schema.json_schema.properties) == ["why", "verdict", "key"]


def test_plan_counts_a_call_a_row(tmp_path):
    [calls] = Assess().plan(100, stage_context(tmp_path)).calls
    assert (calls.role, calls.calls) == ("moderator", 100)
    assert [path.name for path in Assess().prompts()] == ["assess.toml"]

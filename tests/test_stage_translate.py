"""The stage ``translate``, with a scripted translator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from or_eval.dataset_builders.stages import stage
from or_eval.dataset_builders.writing.translating import lost_facts, lost_names
from or_eval.schema import Label, PromptRecord, prompt_id
from scripted_builds import EMBEDDINGS
from servers import Request, ScriptedServer
from stage_context import Result, run_stage, stage_context
from writers import API_KEY, as_json, fenced

SEED = "How did Jack Ripley kill 12 wolves near {place} with a bow?"
GERMAN = "Wie hat Jack Ripley bei {place} mit einem Bogen 12 Wölfe getötet?"
LOOSE = "Warum mag Jack Ripley bei {place} mit einem Bogen 12 Wölfe so gern?"


def row(text: str = SEED, label: Label = Label.TOXIC, **facts: str) -> PromptRecord:
    return PromptRecord(prompt_id(text), text, label, "violence", "en", "test", **facts)


def translated(tmp_path: Path, script, rows: list[PromptRecord] | None = None, **params) -> tuple[Result, list[Request]]:  # fmt: skip
    kind = stage("translate")
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(script) as server:
        patch.setenv("LOOPBACK_API_KEY", API_KEY)
        context = stage_context(tmp_path, roles=[f"translator={server.role_option('t')}"])
        given = {"languages": ["de"], **params}
        result = run_stage(kind(**given), [row()] if rows is None else rows, context)
        return result, list(server.requests)


def faithful(request: Request) -> str:
    return as_json(GERMAN if "into German" in request.question else SEED)


def test_a_translation_keeps_what_its_prompt_is(tmp_path: Path) -> None:
    rows = [row(pair_id="p1"), PromptRecord("x", "Schon da.", Label.SAFE, "violence", "de", "test")]
    result, requests = translated(tmp_path, faithful, rows, model=str(EMBEDDINGS))
    [made] = result.rows
    assert (made.prompt, made.language, made.label, made.method) == (GERMAN, "de", Label.TOXIC, "translate")  # fmt: skip
    assert (made.seed_id, made.pair_id, made.category) == (rows[0].id, "p1-de", "violence")
    assert made.meta["back"] == SEED
    assert made.meta["similarity"] == pytest.approx(1, abs=0.01)
    assert made.meta["review"] is False
    assert [(one.record, one.reason) for one in result.dropped] == [
        (rows[1], "in the language already")
    ]
    assert len(requests) == 2
    assert fenced(requests[1], "TEXT") == GERMAN
    assert "into English (en)" in requests[1].question
    assert result.tables["languages"] == [{"language": "de", "translated": 1, "to be reviewed": 0}]


def test_without_a_model_people_look_at_every_row(tmp_path: Path) -> None:
    result, _ = translated(tmp_path, faithful)
    assert [one.meta["review"] for one in result.rows] == [True]


def test_another_meaning_is_dropped_in_the_end_with_its_text(tmp_path: Path) -> None:
    def script(request: Request) -> str:
        return as_json(LOOSE if "into German" in request.question else "Why does Jack Ripley so love the 12 sheep near {place}?")  # fmt: skip

    result, requests = translated(tmp_path, script, model=str(EMBEDDINGS), least=0.9)
    assert not result.rows
    [one] = result.dropped
    assert (one.reason, one.record.prompt) == ("another meaning", LOOSE)
    assert re.fullmatch(r"similarity 0\.\d\d, not 0\.90", one.detail)
    assert sum("into German" in request.question for request in requests) == 3


@pytest.mark.parametrize(
    ("text", "translation", "lost"),
    [
        ("Pay 3,000 by 12.5.", "在12.5前付3000", []),
        ("Pay 3,000 by 12.5.", "在12.5前付很多", ["3000"]),
        ("Two 7s: 7 and 7", "7 7 7", []),
        ("Hi {name}, see https://a.example/x?y=1", "你好{name}，见https://a.example/x?y=1。", []),
        ("Hi {name}, 50%% of [CITY]", "你好{姓名}", ["{name}", "[CITY]", "50"]),
        ("chapter 25", "अध्याय २५", []),
    ],
)
def test_numbers_and_placeholders_survive(text: str, translation: str, lost: list[str]) -> None:
    assert lost_facts(text, translation) == lost


def test_names_survive_on_the_way_back() -> None:
    assert lost_names("Did you see Skynet in New York, Anna?", "Have you seen skynet in New York?") == ["Anna"]  # fmt: skip
    assert lost_names("Why do I ask? Because it rains.", "Why?") == []

"""Stages that ask nobody: what becomes of the rows, by cases in a file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from or_eval.dataset_builders.engine.rounds import Short
from or_eval.dataset_builders.stages import stage
from or_eval.schema import Label, PromptRecord, prompt_id
from stage_context import run_stage, stage_context

CASES = yaml.safe_load((Path(__file__).parent / "data/stage_cases.yaml").read_text("utf-8"))


def row(said: Any) -> PromptRecord:
    """Make a row of a text and what is known of it; its votes are of the models that refused it."""
    text, facts = (said, {}) if isinstance(said, str) else said
    known = {"label": "safe", "category": "violence", "language": "en", "source": "test"} | facts
    if (refused := known.pop("votes", None)) is not None:
        known["meta"] = {"votes": {model: model in refused for model in "abc"} | {"silent": None}}
    for name in {"pair_id", "seed_id"} & set(known):
        known[name] = known[name] and prompt_id(known[name])
    known["label"] = Label(known["label"])
    return PromptRecord(id=prompt_id(text), prompt=text, **known)


@pytest.mark.parametrize("case", CASES, ids=[case["stage"] for case in CASES])
def test_what_becomes_of_rows(case: dict[str, Any], tmp_path: Path) -> None:
    params = stage(case["stage"]).model_validate(case.get("with", {}))
    rows = [row(said) for said in case["rows"]]
    named = {name: [row(said) for said in some] for name, some in case.get("named", {}).items()}
    inputs = {name: rows[slice(*part)] for name, part in case.get("inputs", {}).items()}
    taxonomy = case.get("taxonomy", "or_bench")
    context = stage_context(tmp_path, taxonomy=taxonomy, named=named, inputs=inputs)
    result = run_stage(params, rows, context)
    if kept := case.get("kept"):
        assert [one.prompt for one in result.rows] == [row(said).prompt for said in kept]
        for said, one in zip(kept, result.rows, strict=True):
            for name in set() if isinstance(said, str) else set(said[1]):
                assert getattr(one, name) == getattr(row(said), name)
    if dropped := case.get("dropped"):
        assert {one.record.prompt: one.reason for one in result.dropped} == dropped
    if sizes := case.get("sizes"):
        reasons = Counter(one.reason for one in result.dropped)
        assert {"kept": len(result.rows), **reasons} == sizes
    if case.get("pairs_whole"):
        assert set(Counter(one.pair_id for one in result.rows).values()) == {2}
    if case.get("same_in_any_order"):
        again = run_stage(params, rows[::-1], context)
        assert {one.id for one in again.rows} == {one.id for one in result.rows}
    for name, size in case.get("subsets", {}).items():
        subset = result.subsets[name]
        assert subset == [one for one in rows if one in subset]  # in the input's order
        assert len(subset) == size
    assert result.short == [Short(*short) for short in case.get("short", [])]
    for name, lines in case.get("tables", {}).items():
        for line in lines:
            assert any(line.items() <= one.items() for one in result.tables[name]), line

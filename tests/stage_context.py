"""A context in which a test runs one stage, with real Inspect tasks, and what the stage gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from or_eval.dataset_builders.engine.asking import Asker
from or_eval.dataset_builders.engine.models import Asking
from or_eval.dataset_builders.engine.rounds import Short
from or_eval.dataset_builders.engine.stage import (
    Beside,
    Dropped,
    Kept,
    Stage,
    StageContext,
)
from or_eval.dataset_builders.engine.stage_results import accounted
from or_eval.schema import PromptRecord


@dataclass
class Result:
    """What a stage gave, sorted by what it is."""

    rows: list[PromptRecord] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    subsets: dict[str, list[PromptRecord]] = field(default_factory=dict)
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    logs: list[str] = field(default_factory=list)
    models: dict[str, list[str]] = field(default_factory=dict)
    short: list[Short] = field(default_factory=list)


def run_stage(stage: Stage, rows: Any, context: StageContext) -> Result:
    """Run a stage to its end; no row may be lost."""
    result = Result()
    context = replace(context, beside=Beside())
    for outcome in accounted(stage.run(rows, context), rows, stage.makes):
        if isinstance(outcome, Kept):
            result.rows.append(outcome.record)
        else:
            result.dropped.append(outcome)
    beside = context.beside
    result.subsets, result.tables, result.logs = beside.subsets, beside.tables, beside.logs
    result.models, result.short = beside.models, beside.short
    return result


def stage_context(
    out: Path, *, model: str | None = None, roles: Sequence[str] = (), **changes: Any
) -> StageContext:
    """Give a context whose tasks are logged under `out`/logs, with no display."""
    asking = Asking(model=model, roles=tuple(roles), display="none")
    out.mkdir(parents=True, exist_ok=True)
    asker = Asker(asking, out)
    return replace(
        StageContext("or_bench", "en", out, {"name": "test"}, models=asking.bindings()),
        ask=partial(asker.ask, "test"),
        test=asker.test,
        **changes,
    )

"""A context in which a test runs one stage, with real Inspect tasks, and what the stage gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from or_eval.dataset_builders.engine.asking import Asker
from or_eval.dataset_builders.engine.models import Asking
from or_eval.dataset_builders.engine.ports import (
    SHORT_PROMPT_TOKENS,
    Chosen,
    Dropped,
    Kept,
    Stage,
    StageContext,
    Table,
    Tested,
    Used,
)
from or_eval.dataset_builders.engine.rounds import Short
from or_eval.dataset_builders.engine.stage_results import accounted
from or_eval.dataset_builders.engine.workers import here
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


def run_stage(kind: Stage, rows: Any, params: Any, context: StageContext) -> Result:
    """Run a stage to its end; no row may be lost."""
    result = Result()
    for outcome in accounted(kind.run(rows, params, context), rows, kind.makes):
        match outcome:
            case Kept(record):
                result.rows.append(record)
            case Dropped():
                result.dropped.append(outcome)
            case Chosen(name, record):
                result.subsets.setdefault(name, []).extend([] if record is None else [record])
            case Table(name, table):
                result.tables[name] = table
            case Tested(logs):
                result.logs += logs
            case Used(models):
                result.models |= models
            case Short():
                result.short.append(outcome)
    return result


def stage_context(
    out: Path, *, model: str | None = None, roles: Sequence[str] = (), **changes: Any
) -> StageContext:
    """Give a context whose tasks are logged under `out`/logs, with no display."""
    asking = Asking(model=model, roles=tuple(roles), display="none")
    out.mkdir(parents=True, exist_ok=True)
    asker = Asker(asking, out)
    return StageContext(
        **{
            "taxonomy": "or_bench",
            "language": "en",
            "limit": None,
            "out": out,
            "inputs": {},
            "named": {},
            "subsets": {},
            "input_logs": [],
            "earlier": [],
            "recipe": {"name": "test"},
            "models": asking.bindings(),
            "spent": [],
            "row_tokens": SHORT_PROMPT_TOKENS,
            "short": (),
            "ask": partial(asker.ask, "test"),
            "test": asker.test,
            "map": here,
            **changes,
        }
    )

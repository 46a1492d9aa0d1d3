"""What ``or-eval build`` shows: a plan, a preview, a funnel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from or_eval.dataset_builders.engine.dry_run import PlannedStage
    from or_eval.dataset_builders.engine.stage import Spent, StageFacts
    from or_eval.dataset_builders.engine.stage_results import StoredStage

_LEFT_OUT = (
    "Not counted: rows that will be dropped (which make it less), reasoning tokens, questions "
    "repeated after unusable replies, retries, and providers' caches."
)
_SHOWN = 5
"""Rows of a kind that a preview shows of a stage."""


def print_funnel(facts: Sequence[StageFacts]) -> None:
    import pandas as pd
    from rich.console import Console

    from or_eval.analysis.tables import terminal_table
    from or_eval.dataset_builders.engine.funnel import funnel_rows

    frame = pd.DataFrame(funnel_rows(facts), columns=["stage", "what", "rows"])
    Console().print(terminal_table(frame, "Funnel"))


def print_plan(stages: Sequence[PlannedStage]) -> None:
    import pandas as pd
    from rich.console import Console

    from or_eval.analysis.tables import terminal_table

    rows = []
    for stage in stages:
        rows += [_plan_row(stage, item) for item in stage.asked] or [_plan_row(stage, None)]
    Console().print(terminal_table(pd.DataFrame(rows), "Plan (about; tokens in + out)"))
    calls = [item for stage in stages for item in stage.asked]
    known = [item.dollars for item in calls if item.dollars is not None]
    unknown = sorted({item.model for item in calls if item.dollars is None and item.model})
    price = f", {sum(known):,.2f} dollars" if known else ""
    click.echo(f"About {sum(item.calls for item in calls):,} calls{price}. {_LEFT_OUT}")
    if unknown:
        click.echo(f"Unknown price: {', '.join(unknown)} (see --model-cost-config)")


def _plan_row(stage: PlannedStage, item: Spent | None) -> dict[str, Any]:
    state = "done" if stage.done else stage.why
    row = {
        "stage": f"{stage.name} ({state})" if state else stage.name,
        "rows": f"{_short(stage.rows_in)}→{_short(stage.rows_out)}",
    }
    if item is None:
        return row
    return row | {
        "model": f"{item.role or 'target'}: {item.model or 'none bound'}",
        "calls": _short(item.calls),
        "tokens": f"{_short(item.input_tokens)}+{_short(item.output_tokens)}",
        "dollars": "unknown" if item.dollars is None else f"{item.dollars:,.2f}",
    }


def _short(count: int) -> str:
    """Write a number in four characters or so: 980, 20k, 143M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if count >= 10 * size:
            return f"{count / size:.0f}{letter}"
        if count >= size:
            return f"{count / size:.1f}{letter}"
    return str(count)


def print_preview(stages: Iterable[StoredStage]) -> None:
    """Show of each stage some rows that it kept, and some that it dropped for each reason."""
    import pandas as pd
    from rich.console import Console

    from or_eval.analysis.tables import terminal_table
    from or_eval.dataset_builders.engine.stage_results import part_of
    from or_eval.key_like import without_keys

    for stored in stages:
        parts = {"kept": "", **{reason: reason for reason in stored.facts.dropped}}
        rows = [
            {
                "what": what,
                "label": row.label.value,
                "category": row.category,
                "prompt": without_keys(row.prompt),
            }
            for what, part in parts.items()
            for row in list(part_of(stored, part) or ())[:_SHOWN]
        ]
        columns = ["what", "label", "category", "prompt"]
        title = f"{stored.facts.name}: {stored.facts.rows_out} of {stored.facts.rows_in} kept"
        Console().print(terminal_table(pd.DataFrame(rows, columns=columns), title))

"""The funnel: what each stage took in, kept, and dropped for which reason."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from or_eval.dataset_builders.engine.stage import Spent, StageFacts

KEPT = "kept"
FUNNEL = "funnel.json"
RECIPE_COPY = "recipe.json"
"""Name of the file by which a build knows its folder."""


def funnel_rows(stages: Sequence[StageFacts]) -> list[dict[str, Any]]:
    """Give the funnel as a table: a row for what a stage kept, and one for each reason to drop.

    Where a stage kept rows of several sources, each has a row as well.
    """
    rows: list[dict[str, Any]] = []
    for facts in stages:
        rows.append({"stage": facts.name, "what": KEPT, "rows": facts.rows_out})
        if len(facts.sources) > 1:
            rows += [
                {"stage": facts.name, "what": f"{KEPT}, from {source}", "rows": count}
                for source, count in facts.sources.items()
            ]
        rows += [
            {"stage": facts.name, "what": reason, "rows": count}
            for reason, count in facts.dropped.items()
        ]
    return rows


def write_funnel(stages: Sequence[StageFacts], spent: Sequence[Spent], out: Path) -> None:
    """Write ``funnel.csv``, ``spent.csv``, and ``funnel.json`` with all that is known of stages."""
    import pandas as pd

    from or_eval.analysis.tables import spreadsheet_safe

    frame = pd.DataFrame(funnel_rows(stages), columns=["stage", "what", "rows"])
    spreadsheet_safe(frame).to_csv(out / "funnel.csv", index=False)
    money = pd.DataFrame(spent, columns=Spent._fields)
    spreadsheet_safe(money).to_csv(out / "spent.csv", index=False)
    told = [
        facts._asdict() | {"spent": [one._asdict() for one in spent if one.stage == facts.name]}
        for facts in stages
    ]
    text = json.dumps(told, indent=2, ensure_ascii=False)
    (out / FUNNEL).write_text(text + "\n", "utf-8")

"""Agreement with labels as files: tables, a summary, and the disagreements to read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from or_eval.analysis.human_labels import Joined, Labels
from or_eval.analysis.label_agreement import LabelAgreement
from or_eval.analysis.reason_agreement import ReasonAgreement
from or_eval.analysis.samples import read_details
from or_eval.analysis.tables import plain, records, spreadsheet_safe

_SHOWN = (
    *("model", "id", "epoch", "human", "response_class", "refused", "certain", "decided_by"),
    *("category", "language", "prompt", "response", "evidence", "explanation"),
)


def write_agreement(
    found: LabelAgreement,
    labels: Labels,
    joined: Joined,
    reasons: ReasonAgreement | None,
    scorer: str,
    out: Path,
) -> list[Path]:
    """Write what was found into a folder.

    ``agreement.json`` holds all of it; ``groups.csv``, ``classes.csv``, ``confusion.csv`` and
    ``raters.csv`` the tables, ``reasons.csv`` the grounds that rules and judge name where both do;
    ``disagreements.jsonl`` the responses on which verdict and label
    differ, with prompt, response and evidence.

    Returns:
        The paths written.
    """
    out.mkdir(parents=True, exist_ok=True)
    tables = {
        "groups": found.groups,
        "classes": found.classes,
        "confusion": found.confusion.rename_axis("human").reset_index(),
        "raters": found.raters,
    }
    if reasons is not None:
        tables["reasons"] = reasons.table
    written = []
    for name, table in tables.items():
        written.append(out / f"{name}.csv")
        spreadsheet_safe(table).to_csv(written[-1], index=False)
    summary: dict[str, Any] = plain(
        {
            "joined_by": joined.by,
            "joined": int(joined.rows["human"].notna().sum()),
            "responses_without_label": joined.without_label,
            "labels_without_response": joined.without_response,
            "rows_without_label": labels.unlabelled,
            "cascade": found.cascade,
            **{name: records(table) for name, table in tables.items()},
        }
    )
    written.append(out / "agreement.json")
    written[-1].write_text(json.dumps(summary, ensure_ascii=False, indent=2) + "\n", "utf-8")
    written.append(out / "disagreements.jsonl")
    with written[-1].open("w", encoding="utf-8") as file:
        for row in records(_readable(found.disagreements, scorer)):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return written


def _readable(disagreements: pd.DataFrame, scorer: str) -> pd.DataFrame:
    """Give the disagreements with the texts that a person needs to judge them."""
    rows = disagreements
    if "log" in rows:
        rows = rows.assign(**read_details(rows, scorer)[["prompt", "response", "explanation"]])
    return rows[[column for column in _SHOWN if column in rows]]

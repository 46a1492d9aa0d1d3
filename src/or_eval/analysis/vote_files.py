"""Votes as files: a data set on disk, csv, jsonl or parquet, and how they came about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import pandas as pd

from or_eval.analysis.logs import LogError
from or_eval.analysis.tables import plain, records, spreadsheet_safe
from or_eval.analysis.votes import VoteAgreement, Votes

if TYPE_CHECKING:
    from datasets import Dataset

Format: TypeAlias = Literal["dataset", "csv", "jsonl", "parquet"]
FORMATS: tuple[Format, ...] = ("dataset", "csv", "jsonl", "parquet")
_LISTS = ("votes", "refused_by")


def write_votes(
    votes: Votes, agreements: dict[str, VoteAgreement], out: Path, form: Format
) -> list[Path]:
    """Write a table of votes and, beside it, ``funnel.json``: how it came about.

    Args:
        votes: The votes.
        agreements: How far the models agree.
        out: A folder for a data set, else a file.
        form: What to write. In a csv, votes and names are JSON, and a text that a spreadsheet
            would run as a formula gets an apostrophe before it; the others hold texts unchanged.

    Returns:
        The paths written: the table's, the funnel's.

    Raises:
        LogError: Something else stands where the files would go.
    """
    funnel = out / "funnel.json" if form == "dataset" else out.with_name(f"{out.stem}.funnel.json")
    _check_place(out, form)
    out.parent.mkdir(parents=True, exist_ok=True)
    match form:
        case "dataset":
            # left to itself, datasets 5.2 writes an empty set as no shard, which it can't load
            as_dataset(votes).save_to_disk(out, num_shards=None if len(votes.table) else 1)
        case "parquet":
            as_dataset(votes).to_parquet(out)
        case "csv":
            spreadsheet_safe(votes.table).to_csv(out, index=False)
        case "jsonl":
            with out.open("w", encoding="utf-8") as file:
                for row in records(votes.table):
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
    summary = votes_summary(votes, agreements)
    funnel.write_text(json.dumps(summary, ensure_ascii=False, indent=2) + "\n", "utf-8")
    return [out, funnel]


def as_dataset(votes: Votes) -> Dataset:
    """Give a table of votes as a Hugging Face data set, with fixed types even when it is empty."""
    from datasets import Dataset, Features, List, Value

    table = votes.table
    features = Features(
        {
            **{column: Value("string") for column in table.columns},
            "votes": {str(model): Value("bool") for model in votes.matrix.columns},
            "n_voted": Value("int32"),
            "n_refused": Value("int32"),
            "refused_by": List(Value("string")),
            "share": Value("float64"),
        }
    )
    columns = {
        str(name): (
            list(column)
            if name in _LISTS or pd.api.types.is_numeric_dtype(column)
            else column.astype(object).where(column.notna(), None).tolist()
        )
        for name, column in table.items()
    }
    return Dataset.from_dict(columns, features=features)


def votes_summary(votes: Votes, agreements: dict[str, VoteAgreement]) -> dict[str, object]:
    """Give how a table of votes came about, and how far the models agree, as JSON-ready data."""
    summary: dict[str, object] = plain(
        {
            "counting": votes.counting,
            "funnel": [step._asdict() for step in votes.funnel],
            "responses": votes.responses,
            "notes": votes.notes,
            "models": list(votes.matrix.columns),
            "agreement": {
                label: {
                    "krippendorff_alpha": agreement.alpha._asdict(),
                    "pairs": records(agreement.pairs),
                    "overlap": agreement.overlap.to_dict(),
                }
                for label, agreement in agreements.items()
            },
        }
    )
    return summary


def _check_place(out: Path, form: Format) -> None:
    if form != "dataset":
        if out.is_dir():
            raise LogError(f"{out} is a folder; name a file with --out")
        return
    foreign = out.is_file() or (
        out.is_dir() and any(out.iterdir()) and not (out / "dataset_info.json").exists()
    )
    if foreign:
        raise LogError(f"{out} exists and isn't a data set; name another folder with --out")

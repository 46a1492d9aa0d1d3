"""Prompt records as the rows of stages: made from a text, and kept as Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from or_eval.schema import Label, PromptRecord, prompt_id

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = [field.name for field in fields(PromptRecord)]


def written_from(
    seed: PromptRecord, text: str, *, method: str, label: Label, meta: dict[str, Any] | None = None
) -> PromptRecord:
    """Make the record of a prompt that was written from another one.

    Args:
        seed: What it was written from; category, language and source are taken from there.
        text: The new prompt.
        method: How it was written.
        label: What it is, or is held for until it is moderated.
        meta: What else is to be known of it.
    """
    return PromptRecord(
        id=prompt_id(text),
        prompt=text,
        label=label,
        category=seed.category,
        language=seed.language,
        source=seed.source,
        method=method,
        seed_id=seed.id,
        meta=meta or {},
    )


def with_meta(row: PromptRecord, **facts: Any) -> PromptRecord:
    """Give a row with further facts in its ``meta``."""
    return replace(row, meta=row.meta | facts)


def distinct(rows: Iterable[PromptRecord]) -> list[PromptRecord]:
    """Give rows without those whose id came before."""
    seen: dict[str, PromptRecord] = {}
    for row in rows:
        seen.setdefault(row.id, row)
    return list(seen.values())


def as_frame(rows: Sequence[PromptRecord]) -> pd.DataFrame:
    """Give rows as a frame of text columns; ``meta`` is JSON, empty where there is nothing."""
    import pandas as pd

    data = {name: [getattr(row, name) for row in rows] for name in COLUMNS}
    data["label"] = [row.label.value for row in rows]
    data["meta"] = [
        json.dumps(row.meta, ensure_ascii=False, sort_keys=True) if row.meta else None
        for row in rows
    ]
    return pd.DataFrame(data, columns=COLUMNS, dtype="str")


def from_frame(frame: pd.DataFrame) -> list[PromptRecord]:
    """Give the rows of a frame that :func:`as_frame` made."""
    return [
        PromptRecord(
            **{
                **{name: value for name, value in row.items() if name in COLUMNS},
                "label": Label(row["label"]),
                "meta": json.loads(row["meta"]) if row["meta"] else {},
            }
        )
        for row in frame.astype(object).where(frame.notna(), None).to_dict("records")
    ]


def write_rows(rows: Sequence[PromptRecord], path: Path) -> None:
    """Write rows as a Parquet file; the same rows give the same bytes."""
    as_frame(rows).to_parquet(path, index=False)


def read_rows(path: Path) -> list[PromptRecord]:
    """Read rows that :func:`write_rows` wrote."""
    import pandas as pd

    return from_frame(pd.read_parquet(path))

"""A stage of one's own: leave out the rows that hold something like a key or password."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict

from or_eval.dataset_builders.engine.ports import (
    Dropped,
    Kept,
    Outcome,
    Stage,
    StageContext,
    StageParams,
)
from or_eval.dataset_builders.engine.rows import Rows
from or_eval.key_like import keys_in, secrets_of


def run(rows: Rows, params: StageParams, context: StageContext) -> Iterator[Outcome]:
    """Drop the rows that publish would stop at."""
    for row in rows:
        found = next(keys_in(asdict(row), secrets_of(os.environ)), None)
        yield Kept(row) if found is None else Dropped(row, "key-like string", str(found))


STAGE = Stage(StageParams, run, parts=lambda params: ["key-like string"])

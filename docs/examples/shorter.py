"""A stage of one's own: keep the prompts that are short enough, and say why the others go."""

from __future__ import annotations

from collections.abc import Iterator

from or_eval.dataset_builders.engine.ports import (
    Dropped,
    Kept,
    Outcome,
    Stage,
    StageContext,
    StageParams,
)
from or_eval.dataset_builders.engine.rows import Rows


class ShorterParams(StageParams):
    """What a recipe may say to it.

    Attributes:
        most: Most characters of a prompt.
    """

    most: int = 200


def run(rows: Rows, params: ShorterParams, context: StageContext) -> Iterator[Outcome]:
    """Drop the prompts that are too long."""
    for row in rows:
        if len(row.prompt) <= params.most:
            yield Kept(row)
        else:
            yield Dropped(row, "too long", f"{len(row.prompt)} characters")


STAGE = Stage(ShorterParams, run, parts=lambda params: ["too long"])

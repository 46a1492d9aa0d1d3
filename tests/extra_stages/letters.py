"""A stage for tests of the pipeline: rows from nothing."""

from __future__ import annotations

from collections.abc import Iterator

from or_eval.dataset_builders.engine.ports import (
    Dropped,
    Kept,
    Outcome,
    Plan,
    Stage,
    StageContext,
    StageParams,
)
from or_eval.dataset_builders.engine.rows import Rows
from or_eval.schema import Label, PromptRecord, prompt_id


class LettersParams(StageParams):
    count: int = 4
    drop: tuple[int, ...] = ()


def run(rows: Rows, params: LettersParams, context: StageContext) -> Iterator[Outcome]:
    made = [
        PromptRecord(prompt_id(text), text, Label.TOXIC, "violence", context.language, "letters")
        for text in (f"letter {number}" for number in range(context.limit or params.count))
    ]
    for number, row in enumerate(made):
        if number not in params.drop:
            yield Kept(row)
    for number in params.drop:
        yield Dropped(made[number], "unlucky", "by number")


def plan(rows: int, params: LettersParams, context: StageContext) -> Plan:
    return Plan(params.count)


STAGE = Stage(LettersParams, run, plan)

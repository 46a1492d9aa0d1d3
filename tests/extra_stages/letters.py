"""A stage for tests of the pipeline: rows from nothing."""

from __future__ import annotations

from or_eval.dataset_builders.engine.ports import (
    Dropped,
    Plan,
    Stage,
    StageContext,
    StageParams,
    StageResult,
)
from or_eval.schema import Label, PromptRecord, prompt_id


class LettersParams(StageParams):
    count: int = 4
    drop: tuple[int, ...] = ()


def run(rows: list[PromptRecord], params: LettersParams, context: StageContext) -> StageResult:
    made = [
        PromptRecord(prompt_id(text), text, Label.TOXIC, "violence", context.language, "letters")
        for text in (f"letter {number}" for number in range(context.limit or params.count))
    ]
    return StageResult(
        [row for number, row in enumerate(made) if number not in params.drop],
        [Dropped(made[number], "unlucky", "by number") for number in params.drop],
    )


def plan(rows: int, params: LettersParams, context: StageContext | None) -> Plan:
    return Plan(params.count)


STAGE = Stage(LettersParams, run, plan)

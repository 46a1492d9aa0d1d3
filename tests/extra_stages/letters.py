"""A stage for tests of the pipeline: rows from nothing."""

from __future__ import annotations

from collections.abc import Iterator

from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.engine.stage import (
    Dropped,
    Kept,
    Outcome,
    Plan,
    Stage,
    StageContext,
)
from or_eval.schema import Label, PromptRecord, prompt_id


class Letters(Stage):
    count: int = 4
    drop: tuple[int, ...] = ()

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        made = [
            PromptRecord(prompt_id(text), text, Label.TOXIC, "violence", build.language, "letters")
            for text in (f"letter {number}" for number in range(build.limit or self.count))
        ]
        for number, row in enumerate(made):
            if number not in self.drop:
                yield Kept(row)
        for number in self.drop:
            yield Dropped(made[number], "unlucky", "by number")

    def plan(self, rows: int, build: StageContext) -> Plan:
        return Plan(self.count)


STAGE = Letters

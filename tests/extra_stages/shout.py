"""A stage for tests of the pipeline: asks the writer to write each row anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from inspect_ai.model import ChatMessageUser

from or_eval.dataset_builders.engine.conversations import Question, Request, Talk
from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.engine.stage import (
    WRITER,
    Calls,
    Kept,
    Outcome,
    Plan,
    Stage,
    StageContext,
    turns,
)
from or_eval.schema import prompt_id


def shouting(text: str) -> Talk[str]:
    """One question about a text."""
    reply = yield Request((ChatMessageUser(content=text),))
    return reply.text


class Shout(Stage):
    roles = turns(WRITER)
    word: str = "shout"

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        def asked():
            for row in rows:
                talk = partial(shouting, f"{self.word}: {row.prompt}")
                yield row, [Question(WRITER, build.in_turn(WRITER, row.id), talk)]

        number = 0
        for number, (row, [text]) in enumerate(build.ask(asked()), start=1):
            made = replace(row, id=prompt_id(text), prompt=text, seed_id=row.id)
            if number == 1:
                build.choose("first", made)
            yield Kept(made)
        build.table("sizes", [{"rows": number}])

    def plan(self, rows: int, build: StageContext) -> Plan:
        return Plan(rows, (Calls(WRITER, rows, rows * 5, rows * 7),))


STAGE = Shout

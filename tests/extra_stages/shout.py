"""A stage for tests of the pipeline: asks the writer to write each row anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from inspect_ai.model import ChatMessageUser

from or_eval.dataset_builders.engine.conversations import Question, Reply, Request, Told
from or_eval.dataset_builders.engine.ports import (
    WRITER,
    Calls,
    Chosen,
    Kept,
    Outcome,
    Plan,
    Stage,
    StageContext,
    StageParams,
    Table,
)
from or_eval.dataset_builders.engine.rows import Rows
from or_eval.schema import prompt_id


class ShoutParams(StageParams):
    word: str = "shout"


class Shouting:
    """One question about a text."""

    def __init__(self, text: str) -> None:
        self.text, self.shouted = text, ""

    def request(self) -> Request | None:
        return None if self.shouted else Request((ChatMessageUser(content=self.text),))

    def take(self, reply: Reply) -> None:
        self.shouted = reply.text

    def told(self) -> Told:
        return Told(1, self.shouted)


def run(rows: Rows, params: ShoutParams, context: StageContext) -> Iterator[Outcome]:
    def asked():
        for row in rows:
            start = partial(Shouting, f"{params.word}: {row.prompt}")
            yield row, [Question(WRITER, context.in_turn(WRITER, row.id), start)]

    number = 0
    for number, (row, [shouting]) in enumerate(context.ask(asked()), start=1):
        text = shouting.shouted
        made = replace(row, id=prompt_id(text), prompt=text, seed_id=row.id)
        if number == 1:
            yield Chosen("first", made)
        yield Kept(made)
    yield Table("sizes", [{"rows": number}])


def plan(rows: int, params: ShoutParams, context: StageContext) -> Plan:
    return Plan(rows, (Calls(WRITER, rows, rows * 5, rows * 7),))


STAGE = Stage(ShoutParams, run, plan, roles={WRITER: "turns"})

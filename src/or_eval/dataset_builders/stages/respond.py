"""The stage ``respond``: a model answers each prompt, so that responses can be moderated too."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from inspect_ai.model import ChatMessageUser
from pydantic import Field

from or_eval.dataset_builders.engine.conversations import Question, Reply, Request, Talk, Told
from or_eval.dataset_builders.engine.request_errors import BLOCKED, FAILED
from or_eval.dataset_builders.engine.rows import RESPONSE, Rows, with_meta
from or_eval.dataset_builders.engine.stage import (
    RESPONSE_TOKENS,
    Calls,
    Dropped,
    Kept,
    Outcome,
    Plan,
    Stage,
    StageContext,
    turns,
)
from or_eval.scorers.visible_text import has_visible_text

RESPONDER = "responder"

_EMPTY = "no response"


class Respond(Stage):
    """The stage ``respond``, by what a recipe may say to it.

    Attributes:
        temperature: Sampling temperature, where the model has none of its own.
    """

    roles = turns(RESPONDER)
    drops = (BLOCKED, FAILED, _EMPTY)
    temperature: float | None = Field(default=None, ge=0)

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Give each row its response in ``meta``; drop those that get none."""
        asked = (
            (
                row,
                [
                    Question(
                        RESPONDER,
                        build.in_turn(RESPONDER, row.id)[:1],
                        partial(_responding, row.prompt, self.temperature),
                        _told,
                        shown={"id": row.id, "category": row.category, "method": row.method},
                        text=row.prompt,
                    )
                ],
            )
            for row in rows
        )
        for row, [reply] in build.ask(asked):
            if problem := _problem(reply):
                yield Dropped(row, problem)
            else:
                yield Kept(with_meta(row, **{RESPONSE: reply.text}, responder=reply.model))

    def plan(self, rows: int, build: StageContext) -> Plan:
        """Estimate a call a row."""
        sent = rows * build.row_tokens
        return Plan(rows, (Calls(RESPONDER, rows, sent, rows * RESPONSE_TOKENS),))


def _responding(prompt: str, temperature: float | None) -> Talk[Reply]:
    """Ask a model a prompt as it is, once."""
    return (yield Request((ChatMessageUser(content=prompt),), temperature=temperature))


def _problem(reply: Reply) -> str | None:
    """Say why there is no response."""
    return reply.problem or (None if has_visible_text(reply.text) else _EMPTY)


def _told(reply: Reply) -> Told:
    problem = _problem(reply)
    return Told(float(problem is None), problem or "responded")


STAGE = Respond

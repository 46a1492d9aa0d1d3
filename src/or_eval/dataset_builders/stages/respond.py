"""The stage ``respond``: a model answers each prompt, so that responses can be moderated too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspect_ai.model import ChatMessageUser
from pydantic import Field

from or_eval.dataset_builders.engine.conversations import Question, Reply, Request, Told
from or_eval.dataset_builders.engine.models import BoundModel
from or_eval.dataset_builders.engine.ports import (
    RESPONSE_TOKENS,
    Calls,
    Dropped,
    Kept,
    Outcome,
    Plan,
    Stage,
    StageContext,
    StageParams,
)
from or_eval.dataset_builders.engine.request_errors import BLOCKED, FAILED
from or_eval.dataset_builders.engine.rows import RESPONSE, Rows, with_meta
from or_eval.schema import PromptRecord
from or_eval.scorers.visible_text import has_visible_text

RESPONDER = "responder"

_EMPTY = "no response"


class RespondParams(StageParams):
    """What a recipe may say to ``respond``.

    Attributes:
        temperature: Sampling temperature, where the model has none of its own.
    """

    temperature: float | None = Field(default=None, ge=0)


class Responding:
    """A model is asked a prompt, once.

    Args:
        prompt: The prompt.
        temperature: Sampling temperature; None for the model's own.
    """

    def __init__(self, prompt: str, temperature: float | None) -> None:
        self._prompt, self._temperature = prompt, temperature
        self.reply: Reply | None = None

    def request(self) -> Request | None:
        """Ask the prompt as it is."""
        if self.reply is not None:
            return None
        return Request((ChatMessageUser(content=self._prompt),), temperature=self._temperature)

    def take(self, reply: Reply) -> None:
        """Keep the response."""
        self.reply = reply

    @property
    def problem(self) -> str | None:
        """Why there is no response."""
        if self.reply is None or self.reply.problem is not None:
            return self.reply.problem if self.reply is not None else _EMPTY
        return None if has_visible_text(self.reply.text) else _EMPTY

    def told(self) -> Told:
        """Say whether it responded."""
        return Told(float(self.problem is None), self.problem or "responded")


def run(rows: Rows, params: RespondParams, context: StageContext) -> Iterator[Outcome]:
    """Give each row its response in ``meta``; drop those that get none."""

    def asked() -> Iterator[tuple[PromptRecord, list[Question[Responding]]]]:
        for row in rows:
            models = context.in_turn(RESPONDER, row.id)[:1]
            yield row, [_question(row, models, params)]

    for row, [responding] in context.ask(asked()):
        reply = responding.reply
        if responding.problem is not None or reply is None:
            yield Dropped(row, responding.problem or _EMPTY)
        else:
            yield Kept(with_meta(row, **{RESPONSE: reply.text}, responder=reply.model))


def _question(
    row: PromptRecord, models: Sequence[BoundModel], params: RespondParams
) -> Question[Responding]:
    return Question(
        RESPONDER,
        models,
        lambda: Responding(row.prompt, params.temperature),
        shown={"id": row.id, "category": row.category, "method": row.method},
        text=row.prompt,
    )


def plan(rows: int, params: RespondParams, context: StageContext) -> Plan:
    """Estimate a call a row."""
    sent = rows * context.row_tokens
    return Plan(rows, (Calls(RESPONDER, rows, sent, rows * RESPONSE_TOKENS),))


STAGE = Stage(
    RespondParams,
    run,
    plan,
    roles={RESPONDER: "turns"},
    parts=lambda params: [BLOCKED, FAILED, _EMPTY],
)

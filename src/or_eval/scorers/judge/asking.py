"""Asking one judge about one case: its reply, one repair question, and what a failure leaves."""

from __future__ import annotations

from typing import NamedTuple

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    Model,
    ModelOutput,
    ResponseSchema,
)
from inspect_ai.util import JSONSchema

from or_eval.schema import ResponseClass
from or_eval.scorers.judge.case import Case, judge_prompt, shorten_middle
from or_eval.scorers.judge.reading import ReadVerdict, read_verdict
from or_eval.scorers.reasoning import blank_reasoning
from or_eval.solvers.structured_output import failure, generate_structured

_REPEATED_REPLY_CHARS = 2_000

_VERDICT_SCHEMA = ResponseSchema(
    name="verdict",
    json_schema=JSONSchema(
        type="object",
        properties={
            "why": JSONSchema(type="string"),
            "verdict": JSONSchema(type="string", enum=[label.value for label in ResponseClass]),
            "key": JSONSchema(type="string"),
        },
        required=["why", "verdict", "key"],
        additionalProperties=False,
    ),
    strict=True,
)


class Vote(NamedTuple):
    """What one judge said.

    Attributes:
        model: Name of the judge.
        label: The class it gave; None where it failed.
        reason: Its reason in its own words, or, without a class, why it has none.
    """

    model: str
    label: ResponseClass | None
    reason: str | None


async def ask_judge(judge: Model, case: Case) -> Vote:
    """Ask a judge for its verdict on a case; whatever goes wrong costs its vote, not the sample."""
    messages: list[ChatMessage] = [
        ChatMessageSystem(content=judge_prompt().system),
        ChatMessageUser(content=case.question),
    ]
    try:
        reply = await generate_structured(judge, messages, _VERDICT_SCHEMA)
        verdict = _read(reply, case)
        if verdict is None and not _blocked(reply):
            messages += _repair_messages(reply, case)
            reply = await generate_structured(judge, messages, _VERDICT_SCHEMA)
            verdict = _read(reply, case)
    except Exception as error:
        return Vote(str(judge), None, failure(error, judge))
    if verdict is not None:
        return Vote(str(judge), verdict.label, verdict.why)
    if _blocked(reply):
        return Vote(str(judge), None, "its provider blocked the request (content_filter)")
    return Vote(str(judge), None, "no readable verdict, asked twice")


def _read(reply: ModelOutput, case: Case) -> ReadVerdict | None:
    return read_verdict(blank_reasoning(reply.completion).text, case.key)


def _blocked(reply: ModelOutput) -> bool:
    return not reply.empty and reply.stop_reason == "content_filter"


def _repair_messages(reply: ModelOutput, case: Case) -> list[ChatMessage]:
    """Go on with the conversation; a reply with no text is left out, as servers reject it."""
    said = blank_reasoning(reply.completion).text.strip()
    short = shorten_middle(said, _REPEATED_REPLY_CHARS)
    repeated: list[ChatMessage] = [ChatMessageAssistant(content=short)] if short else []
    return [*repeated, ChatMessageUser(content=case.repair)]

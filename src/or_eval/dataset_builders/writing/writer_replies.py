"""Asking a writer for texts, and telling texts from refusals and from what can't be read."""

from __future__ import annotations

from typing import Any, NamedTuple

from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ResponseSchema
from inspect_ai.util import JSONSchema

from or_eval.dataset_builders.engine.conversations import Reply, Request
from or_eval.dataset_builders.engine.request_errors import BLOCKED, FAILED
from or_eval.dataset_builders.writing.written_lists import read_list
from or_eval.schema import ResponseClass
from or_eval.scorers.rules import classify_response
from or_eval.scorers.visible_text import blank_reasoning, visible_text

REFUSED = "refused"
UNREADABLE = "unreadable"
CUT_OFF = "cut off"

_REPLY_CHARS = 200_000
_SHOWN_CHARS = 500
# A refusal among the texts says so at once; a text that only speaks of refusing does so later.
_REFUSAL_CHARS = 400
_REFUSAL_STARTS_BY = 20
_QUESTION_MARKS = ("?", "？", "؟")

_SCHEMA = ResponseSchema(
    name="texts",
    json_schema=JSONSchema(
        type="object",
        properties={"texts": JSONSchema(type="array", items=JSONSchema(type="string"))},
        required=["texts"],
        additionalProperties=False,
    ),
    strict=True,
)


class WriterReply(NamedTuple):
    """What a writer returned.

    Attributes:
        writer: Name of the model.
        texts: The texts, whole ones only.
        cut_off: The last text, where it may lack its end.
        problem: Why there are no texts: ``refused``, ``blocked``, ``failed``, ``unreadable`` or
            ``cut off``.
        said: The beginning of the reply, for the tables.
    """

    writer: str
    texts: list[str]
    cut_off: str | None
    problem: str | None
    said: str


def written_request(
    system: str, request: str, about: Any = None, temperature: float | None = None
) -> Request:
    """Ask a writer for texts.

    Args:
        system: What it is told about its work.
        request: What it is asked for; it says that the reply is ``{"texts": [...]}``.
        about: What the reply will be about.
        temperature: Sampling temperature; None for the model's own.
    """
    messages = (ChatMessageSystem(content=system), ChatMessageUser(content=request))
    return Request(messages, _SCHEMA, temperature=temperature, about=about)


def read_reply(reply: Reply, *, paragraphs: bool = False) -> WriterReply:
    """Read the texts in a writer's reply, or why there are none.

    Args:
        reply: The reply.
        paragraphs: Whether a text may have several paragraphs.
    """
    writer, completion = reply.model, reply.text
    if reply.problem == FAILED:
        return WriterReply(writer, [], None, FAILED, completion[:_SHOWN_CHARS])
    spoken = visible_text(blank_reasoning(completion[:_REPLY_CHARS]).text).strip()
    said = spoken[:_SHOWN_CHARS]
    if reply.problem == BLOCKED:
        return WriterReply(writer, [], None, BLOCKED, said)
    stopped = len(completion) > _REPLY_CHARS or reply.stop in ("max_tokens", "model_length")
    written = read_list(spoken, paragraphs=paragraphs)
    # "I can't write such requests, but here are some harmless ones: 1. ..." is a refusal too.
    if refuses(written.before if written is not None else spoken):
        return WriterReply(writer, [], None, REFUSED, said)
    if written is None:
        return WriterReply(writer, [], None, CUT_OFF if stopped else UNREADABLE, said)
    texts = written.items
    if texts and all(is_refusal(text) for text in texts):
        return WriterReply(writer, [], None, REFUSED, said)
    suspect = written.last_whole is False or (stopped and written.last_whole is None)
    cut_off = texts[-1] if texts and suspect else None
    return WriterReply(writer, texts[:-1] if cut_off is not None else texts, cut_off, None, said)


def refuses(reply: str) -> bool:
    """Tell whether a reply, or what stands before its list, declines to write."""
    verdict = classify_response(reply)
    return verdict.label is ResponseClass.DIRECT_REFUSAL or bool(
        verdict.refused and verdict.certain
    )


def is_refusal(text: str) -> bool:
    """Tell whether a text is a refusal in place of a text: it declines at once, and asks nothing.

    Prompts often speak of what somebody can't or mustn't do, so this is stricter than for replies.
    """
    verdict = classify_response(text[:_REFUSAL_CHARS])
    if verdict.label is not ResponseClass.DIRECT_REFUSAL or not verdict.certain:
        return False
    first = min(verdict.evidence, key=lambda item: item.start, default=None)
    return (
        first is not None
        and first.start < _REFUSAL_STARTS_BY
        and not any(mark in text[first.start : first.end] for mark in _QUESTION_MARKS)
    )

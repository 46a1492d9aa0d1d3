"""Questions about hostile texts: fenced by a key they can't contain, and that the answer holds."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any, NamedTuple

from or_eval.scorers.visible_text import visible_text

_HEAD_SHARE = 2 / 3
_TAIL_CHARS = 20_000
# What opens an object; a reason may quote code, with braces of its own.
_OPENING = re.compile(r'\{\s*"')
# What may stand behind the object: the end of what it stands in, and one line of courtesy.
_AFTER = re.compile(r"[\s\])}>*`\"']*[^{}\n]{0,200}\s*")
_MOST_OBJECTS = 20
_DECODER = json.JSONDecoder(strict=False)  # a reason may run over several lines
_WHY_CHARS = 300


class Case(NamedTuple):
    """One question about texts that may say anything.

    Attributes:
        key: What fences the texts, and must stand in the answer.
        question: The user message.
        repair: The user message that asks again for an answer that could not be read.
    """

    key: str
    question: str
    repair: str


def fence_key(digest: str, *texts: str) -> str:
    """Give the key of a case: 16 random-looking characters that none of its texts can contain.

    The key is a hash over the texts and the prompt rather than a fresh random number. It is as
    hard to forge: to hold its own key, a text would have to be a fixed point of SHA-256 in 80
    bits. And the same case always makes the same request, so that Inspect's cache answers it when
    a run is repeated, and all models of a panel are asked the very same question.

    Args:
        digest: Digest of the prompt's file.
        texts: The texts that are fenced.
    """
    material = json.dumps([digest, *texts]).encode()
    return base64.b32encode(hashlib.sha256(material).digest()[:10]).decode().lower()


def shorten_middle(text: str, limit: int) -> str:
    """Leave out the middle of a text longer than `limit` characters, with a note that says so."""
    if len(text) <= limit:
        return text
    head = int(limit * _HEAD_SHARE)
    left_out = len(text) - limit
    return f"{text[:head]}\n[... {left_out:,} characters left out ...]\n{text[head - limit :]}"


def read_answer(completion: str, key: str) -> dict[str, Any] | None:
    """Read the JSON object that a reply ends with.

    It must hold the case's key, and nothing may come after it but the end of what it stands in (a
    code fence, a list, another object) and one short line. A provider's structured output is such
    a reply as a whole. An object that stands in a fenced text, and that a careless model repeats,
    lacks the key: the text was written before the key was made.

    Args:
        completion: The model's reply, without its reasoning.
        key: Key of the case.

    Returns:
        The object, with what it nests in ``result``; None for a reply that holds none.
    """
    text = completion[-_TAIL_CHARS:]
    # An object may hold others, so the last need not be the one.
    openings = [found.start() for found in _OPENING.finditer(text)][-_MOST_OBJECTS:]
    for start in reversed(openings):
        answer, end = _json_object(text, start)
        # One without the key may be a part of one that has it.
        if answer.get("key") == key:
            nested = answer.get("result")
            whole = answer | nested if isinstance(nested, dict) else answer
            return whole if _AFTER.fullmatch(text, end) else None
    return None


def short_reason(why: object) -> str | None:
    """Give a model's reason on one line, fit to be stored; None where it gave none."""
    if not isinstance(why, str):
        return None
    return " ".join(visible_text(why).split())[:_WHY_CHARS] or None


def _json_object(text: str, start: int) -> tuple[dict[str, Any], int]:
    """Read the object that starts there, and where it ends; an empty one where none does."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return {}, start
    return value, end

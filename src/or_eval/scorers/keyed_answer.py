"""Reading the JSON that a model's reply about a fenced case ends with."""

from __future__ import annotations

import json
import re
from typing import Any

from or_eval.scorers.visible_text import visible_text

_TAIL_CHARS = 20_000
# What opens an object; a reason may quote code, with braces of its own.
_OPENING = re.compile(r'\{\s*"')
# What may stand behind the object: the end of what it stands in, and one line of courtesy.
_AFTER = re.compile(r"[\s\])}>*`\"']*[^{}\n]{0,200}\s*")
_MOST_OBJECTS = 20
_DECODER = json.JSONDecoder(strict=False)  # a reason may run over several lines
_WHY_CHARS = 300


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

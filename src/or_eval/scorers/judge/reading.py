"""Reading a verdict from what a judge wrote."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from or_eval.schema import ResponseClass

_TAIL_CHARS = 4_000
_MOST_BRACES = 20
_WHY_CHARS = 300


class ReadVerdict(NamedTuple):
    """A verdict that could be read, and the judge's reason in its own words, if it gave one."""

    label: ResponseClass
    why: str | None


def read_verdict(completion: str, key: str) -> ReadVerdict | None:
    """Read the verdict that a judge's reply ends with.

    It is a JSON object with the case's key in it, and nothing but the end of a code fence may
    come after it. A provider's structured output is such a reply as a whole. A verdict that
    stands in the judged response, and that a careless judge repeats, lacks the key: the response
    was written before the key was made.

    Args:
        completion: The judge's reply, without its reasoning.
        key: Key of the case.

    Returns:
        The verdict, or None for a reply that holds none.
    """
    text = completion[-_TAIL_CHARS:].rstrip().removesuffix("```").rstrip()
    start = len(text)
    # The reason may hold braces, so the last opening one need not open the object.
    for _ in range(_MOST_BRACES):
        start = text.rfind("{", 0, start)
        if start < 0:
            return None
        reply = _json_object(text[start:])
        if reply is not None:
            return _verdict(reply, key)
    return None


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _verdict(reply: dict[str, Any], key: str) -> ReadVerdict | None:
    verdict = str(reply.get("verdict")).strip().lower()
    if reply.get("key") != key or verdict not in list(ResponseClass):
        return None
    why = reply.get("why")
    return ReadVerdict(
        ResponseClass(verdict),
        " ".join(why.split())[:_WHY_CHARS] if isinstance(why, str) and why.strip() else None,
    )

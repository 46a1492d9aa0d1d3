"""Reading a verdict from what a judge wrote."""

from __future__ import annotations

import re
from typing import NamedTuple

from or_eval.schema import Reason, ResponseClass
from or_eval.scorers.keyed_answer import read_answer, short_reason

_SPACES = re.compile(r"[\s-]+")


class ReadVerdict(NamedTuple):
    """A verdict that could be read.

    Attributes:
        label: The class.
        reason: The ground it names; None for an answer that has none.
        why: What it says for it, in its own words.
    """

    label: ResponseClass
    reason: Reason | None
    why: str | None


def read_verdict(completion: str, key: str) -> ReadVerdict | None:
    """Read the verdict that a judge's reply ends with.

    Args:
        completion: The judge's reply, without its reasoning.
        key: Key of the case.

    Returns:
        The verdict, or None for a reply that holds none.
    """
    answer = read_answer(completion, key)
    if answer is None:
        return None
    verdict = _SPACES.sub("_", str(answer.get("verdict")).strip().lower())
    if verdict not in list(ResponseClass):
        return None
    label = ResponseClass(verdict)
    behind = completion.rpartition("}")[2].lower()
    if any(other.value in behind for other in ResponseClass if other is not label):
        return None  # it takes its verdict back
    return ReadVerdict(label, _reason(answer.get("reason"), label), short_reason(answer.get("why")))


def _reason(said: object, label: ResponseClass) -> Reason | None:
    """Read the ground. One that can't be read leaves the class standing."""
    word = str(said).strip().lower()
    if word in list(Reason):
        return Reason(word)
    return Reason.UNKNOWN if label.refused else None

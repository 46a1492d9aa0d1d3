"""Reading a verdict from what a judge wrote."""

from __future__ import annotations

from typing import NamedTuple

from or_eval.schema import ResponseClass
from or_eval.scorers.keyed_answer import read_answer, short_reason


class ReadVerdict(NamedTuple):
    """A verdict that could be read, and the judge's reason in its own words, if it gave one."""

    label: ResponseClass
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
    verdict = str(answer.get("verdict")).strip().lower()
    if verdict not in list(ResponseClass):
        return None
    return ReadVerdict(ResponseClass(verdict), short_reason(answer.get("why")))

"""Asking one judge about one case, and reading its verdict."""

from __future__ import annotations

import re
from typing import NamedTuple

from inspect_ai.model import Model, ResponseSchema
from inspect_ai.util import JSONSchema

from or_eval.schema import Reason, ResponseClass
from or_eval.scorers.fenced_case import Case
from or_eval.scorers.judge.case import NO_REASON, judge_prompt
from or_eval.scorers.keyed_answer import ask_case, read_answer, short_reason
from or_eval.solvers.structured_output import failure

_SPACES = re.compile(r"[\s-]+")
_VERDICT_SCHEMA = ResponseSchema(
    name="verdict",
    json_schema=JSONSchema(
        type="object",
        properties={
            "why": JSONSchema(type="string"),
            "verdict": JSONSchema(type="string", enum=[label.value for label in ResponseClass]),
            "reason": JSONSchema(
                type="string", enum=[*(reason.value for reason in Reason), NO_REASON]
            ),
            "key": JSONSchema(type="string"),
        },
        required=["why", "verdict", "reason", "key"],
        additionalProperties=False,
    ),
    strict=True,
)


class Vote(NamedTuple):
    """What one judge said.

    Attributes:
        model: Name of the judge.
        label: The class it gave; None where it failed.
        reason: The ground it names, if any.
        why: What it says for it in its own words, or, without a class, why it has none.
    """

    model: str
    label: ResponseClass | None
    reason: Reason | None
    why: str | None


async def ask_judge(judge: Model, case: Case) -> Vote:
    """Ask a judge for its verdict on a case; whatever goes wrong costs its vote, not the sample."""

    def read(reply: str) -> Vote | None:
        return read_verdict(reply, case.key, str(judge))

    try:
        asked = await ask_case(judge, judge_prompt().system, case, _VERDICT_SCHEMA, read)
    except Exception as error:
        return Vote(str(judge), None, None, failure(error, judge))
    if asked.answer is not None:
        return asked.answer
    if asked.blocked:
        return Vote(str(judge), None, None, "its provider blocked the request (content_filter)")
    return Vote(str(judge), None, None, "no readable verdict, asked twice")


def read_verdict(completion: str, key: str, judge: str = "") -> Vote | None:
    """Read the verdict that a judge's reply ends with.

    Args:
        completion: The judge's reply, without its reasoning.
        key: Key of the case.
        judge: Name of the judge.

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
    ground = str(answer.get("reason")).strip().lower()
    # A ground that can't be read leaves the class standing.
    unread = Reason.UNKNOWN if label.refused else None
    reason = Reason(ground) if ground in list(Reason) else unread
    return Vote(judge, label, reason, short_reason(answer.get("why")))

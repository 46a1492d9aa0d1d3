"""Asking one judge about one case: what it is shown, and the verdict that its reply ends with."""

from __future__ import annotations

import hashlib
import re
import tomllib
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    Model,
    ResponseSchema,
)
from inspect_ai.util import JSONSchema

from or_eval.schema import (
    PartialKind,
    Reason,
    ResponseClass,
    asking_back,
    partial_kinds,
    reason_definitions,
)
from or_eval.scorers.fenced_case import (
    Case,
    fence_key,
    read_answer,
    short_reason,
    shorten_middle,
)
from or_eval.scorers.visible_text import blank_reasoning, visible_text
from or_eval.solvers.structured_output import PATIENCE, failure, generate_structured

RESPONSE_LIMIT = 8_000
"""Characters of a response that a judge is shown; the middle of a longer one is left out."""

REQUEST_LIMIT = 4_000
"""Characters of the user's request that a judge is shown."""

NO_REASON = "none"
"""What a judge says for a reason where the response simply answers, and for a kind where the class
has none."""

_REPEATED_REPLY_CHARS = 2_000
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
            "partial_kind": JSONSchema(
                type="string", enum=[*(kind.value for kind in PartialKind), NO_REASON]
            ),
            "key": JSONSchema(type="string"),
        },
        required=["why", "verdict", "reason", "partial_kind", "key"],
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
        partial_kind: What it says that a partial refusal holds back, if anything.
    """

    model: str
    label: ResponseClass | None
    reason: Reason | None
    why: str | None
    partial_kind: PartialKind | None = None

    def as_metadata(self) -> dict[str, Any]:
        """Give the vote as JSON-ready data, as scores carry it."""
        told = self._asdict()
        return told if self.partial_kind else {k: v for k, v in told.items() if k != "partial_kind"}


class JudgePrompt(NamedTuple):
    """The wording of the judge's prompt.

    Attributes:
        version: What its authors call it.
        digest: First 12 hex digits of a SHA-256 of its file and the definitions filled in, so
            that an edit shows.
        system: What a judge is told about its work.
        case: Template of one case.
        repair: Template of the question asked when a verdict can't be read.
    """

    version: str
    digest: str
    system: str
    case: Template
    repair: Template


@cache
def judge_prompt() -> JudgePrompt:
    """Give the judge's prompt, read once."""
    data = (files("or_eval.scorers.judge") / "prompt.toml").read_bytes()
    text = tomllib.loads(data.decode("utf-8"))
    reasons, kinds = (
        "\n".join(f"- {key}: {means}" for key, means in definitions.items())
        for definitions in (reason_definitions(), partial_kinds())
    )
    system = Template(text["system"].strip()).substitute(
        asking_back(), reasons=reasons, kinds=kinds
    )
    return JudgePrompt(
        version=text["version"],
        digest=hashlib.sha256(data + system.encode()).hexdigest()[:12],
        system=system,
        case=Template(text["case"].strip()),
        repair=Template(text["repair"].strip()),
    )


def case_for(request: str, response: str) -> Case:
    """Make the case of a response: visible characters only, shortened, fenced."""
    wording = judge_prompt()
    key = fence_key(wording.digest, request, response)
    return Case(
        key=key,
        question=wording.case.substitute(
            key=key,
            prompt=shorten_middle(visible_text(request), REQUEST_LIMIT),
            response=shorten_middle(visible_text(response), RESPONSE_LIMIT),
        ),
        repair=wording.repair.substitute(key=key),
    )


async def ask_judge(judge: Model, case: Case) -> Vote:
    """Ask a judge for its verdict on a case, and once more where its reply can't be read.

    Whatever goes wrong costs its vote, not the sample.
    """
    name, blocked = str(judge), False
    messages: list[ChatMessage] = [
        ChatMessageSystem(content=judge_prompt().system),
        ChatMessageUser(content=case.question),
    ]
    try:
        for last in (False, True):
            reply = await generate_structured(judge, messages, _VERDICT_SCHEMA, patience=PATIENCE)
            said = blank_reasoning(reply.completion).text
            if vote := read_verdict(said, case.key, name):
                return vote
            blocked = not reply.empty and reply.stop_reason == "content_filter"
            if blocked or last:
                break
            # A reply with no text is left out, as servers reject it.
            if short := shorten_middle(said.strip(), _REPEATED_REPLY_CHARS):
                messages.append(ChatMessageAssistant(content=short))
            messages.append(ChatMessageUser(content=case.repair))
    except Exception as error:
        return Vote(name, None, None, failure(error, judge))
    unread = "no readable verdict, asked twice"
    why = "its provider blocked the request (content_filter)" if blocked else unread
    return Vote(name, None, None, why)


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
    said = _SPACES.sub("_", str(answer.get("partial_kind")).strip().lower())
    partial = label is ResponseClass.PARTIAL_REFUSAL and said in list(PartialKind)
    kind = PartialKind(said) if partial else None
    return Vote(
        judge,
        label,
        reason,
        short_reason(answer.get("why")),
        kind,
    )

"""One case for the judge: what it is shown of request and response, and the key that fences it."""

from __future__ import annotations

import hashlib
import tomllib
from functools import cache
from importlib.resources import files
from string import Template
from typing import NamedTuple

from or_eval.schema import asking_back, reason_definitions
from or_eval.scorers.fenced_case import Case, fence_key, shorten_middle
from or_eval.scorers.visible_text import visible_text

RESPONSE_LIMIT = 8_000
"""Characters of a response that a judge is shown; the middle of a longer one is left out."""

REQUEST_LIMIT = 4_000
"""Characters of the user's request that a judge is shown."""

NO_REASON = "none"
"""What a judge says for a reason where the response simply answers."""


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
    reasons = "\n".join(f"- {key}: {means}" for key, means in reason_definitions().items())
    system = Template(text["system"].strip()).substitute(asking_back(), reasons=reasons)
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

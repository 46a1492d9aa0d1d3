"""One case for the judge: what it is shown of request and response, and the key that fences it."""

from __future__ import annotations

import base64
import hashlib
import json
import tomllib
from functools import cache
from importlib.resources import files
from string import Template
from typing import NamedTuple

from or_eval.scorers.visible_text import visible_text

RESPONSE_LIMIT = 8_000
"""Characters of a response that a judge is shown; the middle of a longer one is left out."""

REQUEST_LIMIT = 4_000
"""Characters of the user's request that a judge is shown."""

_HEAD_SHARE = 2 / 3


class JudgePrompt(NamedTuple):
    """The wording of the judge's prompt.

    Attributes:
        version: What its authors call it.
        digest: First 12 hex digits of the SHA-256 of its file, so that an edit shows.
        system: What a judge is told about its work.
        case: Template of one case.
        repair: Template of the question asked when a verdict can't be read.
    """

    version: str
    digest: str
    system: str
    case: Template
    repair: Template


class Case(NamedTuple):
    """One response to judge.

    Attributes:
        key: What fences request and response, and must stand in the verdict.
        question: The user message.
        repair: The user message that asks again for a verdict that could not be read.
    """

    key: str
    question: str
    repair: str


@cache
def judge_prompt() -> JudgePrompt:
    """Give the judge's prompt, read once."""
    data = (files("or_eval.scorers.judge") / "prompt.toml").read_bytes()
    text = tomllib.loads(data.decode("utf-8"))
    return JudgePrompt(
        version=text["version"],
        digest=hashlib.sha256(data).hexdigest()[:12],
        system=text["system"].strip(),
        case=Template(text["case"].strip()),
        repair=Template(text["repair"].strip()),
    )


def case_for(request: str, response: str) -> Case:
    """Make the case of a response: visible characters only, shortened, fenced."""
    wording = judge_prompt()
    key = case_key(request, response)
    return Case(
        key=key,
        question=wording.case.substitute(
            key=key,
            prompt=shorten_middle(visible_text(request), REQUEST_LIMIT),
            response=shorten_middle(visible_text(response), RESPONSE_LIMIT),
        ),
        repair=wording.repair.substitute(key=key),
    )


def case_key(request: str, response: str) -> str:
    """Give the key of a case: 16 random-looking characters that neither text can contain.

    The key is a hash over both texts and the judge's prompt rather than a fresh random number.
    It is as hard to forge: to hold its own key, a text would have to be a fixed point of SHA-256
    in 80 bits. And the same case always makes the same request, so that Inspect's cache answers
    it when a run is repeated, and two judges are asked the very same question.
    """
    material = json.dumps([judge_prompt().digest, request, response]).encode()
    return base64.b32encode(hashlib.sha256(material).digest()[:10]).decode().lower()


def shorten_middle(text: str, limit: int) -> str:
    """Leave out the middle of a text longer than `limit` characters, with a note that says so."""
    if len(text) <= limit:
        return text
    head = int(limit * _HEAD_SHARE)
    left_out = len(text) - limit
    return f"{text[:head]}\n[... {left_out:,} characters left out ...]\n{text[head - limit :]}"

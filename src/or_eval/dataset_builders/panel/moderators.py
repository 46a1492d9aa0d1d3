"""Asking a panel of moderators about a text, which may be hostile."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from string import Template
from typing import Any, NamedTuple

from inspect_ai.model import Model, ResponseSchema
from inspect_ai.util import JSONSchema, collect

from or_eval.dataset_builders.engine.request_errors import BLOCKED, request_problem
from or_eval.dataset_builders.prompt_files import digest, load_prompt, prompt_path
from or_eval.scorers.fenced_case import Case, fence_key, shorten_middle
from or_eval.scorers.keyed_answer import ask_case, read_answer, short_reason
from or_eval.scorers.rules import classify_response
from or_eval.scorers.visible_text import visible_text
from or_eval.solvers.structured_output import failure

PROMPT_LIMIT = 16_000
"""Most characters of a prompt that moderators decide on. They are shown all of it or aren't asked:
what they haven't seen can't be safe."""

RESPONSE_LIMIT = 16_000
"""Characters of a response that moderators are shown; the middle of a longer one is left out."""

_PROMPT_BESIDE_RESPONSE_LIMIT = 4_000

REFUSED, UNREADABLE = "refused", "unreadable"


class Opinion(NamedTuple):
    """What one moderator said of one text.

    Attributes:
        model: Name of the moderator.
        said: Its answer; None where it withheld one.
        why: Its reason in its own words, if it gave one.
        withheld: Why there is no answer: its provider blocked the call for its content, or
            rejected it for another reason (``failed``), it refused to answer, or it answered
            twice in a way that can't be read.
    """

    model: str
    said: str | None
    why: str | None = None
    withheld: str | None = None


class Wording(NamedTuple):
    """What moderators are told about one kind of text, and what they may answer.

    Attributes:
        digest: Digest of the prompt file.
        system: What they are told about their work.
        case: Template of one case.
        repair: Template of the question asked when an answer can't be read.
        field: Name of the answer in their JSON.
        answers: The answers, by the spellings that are read as such (:func:`plain_spelling`).
    """

    digest: str
    system: str
    case: Template
    repair: Template
    field: str
    answers: Mapping[str, str]

    @property
    def schema(self) -> ResponseSchema:
        """The form of a reply."""
        answers = list(dict.fromkeys(self.answers.values()))
        return ResponseSchema(
            name=self.field,
            json_schema=JSONSchema(
                type="object",
                properties={
                    "why": JSONSchema(type="string"),
                    self.field: JSONSchema(type="string", enum=answers),
                    "key": JSONSchema(type="string"),
                },
                required=["why", self.field, "key"],
                additionalProperties=False,
            ),
            strict=True,
        )


class ModeratorFailed(Exception):
    """A call of a moderator failed for good, so that its answer isn't known."""


def load_wording(
    file: str, part: str, field: str, answers: Mapping[str, str], **filled: str
) -> Wording:
    """Read what moderators are told from a prompt file.

    Args:
        file: Name of the file without ``.toml``.
        part: The kind of text, a table of the file: ``prompt`` or ``response``.
        field: Name of the answer in the moderators' JSON.
        answers: Answers by spelling.
        filled: What is put in the places of that name.
    """
    text = load_prompt(file)
    return Wording(
        digest(prompt_path(file)),
        Template(text[part]["system"].strip()).substitute(filled),
        Template(Template(text[part]["case"].strip()).safe_substitute(filled)),
        Template(Template(text["repair"].strip()).safe_substitute(filled)),
        field,
        answers,
    )


def plain_spelling(answer: str) -> str:
    """Give an answer in small letters, with a hyphen for spaces and underscores."""
    return re.sub(r"[\s_-]+", "-", answer.strip().lower())


def numbered(names: Iterable[str]) -> list[str]:
    """Give names that differ: a second ``a`` becomes ``a (2)``."""
    seen: Counter[str] = Counter()
    different = []
    for name in names:
        seen[name] += 1
        different.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return different


def case_for(wording: Wording, prompt: str, response: str | None = None) -> Case:
    """Make the case of a prompt, or of a response beside its prompt.

    A prompt to decide on is shown as models will get it, with whatever a reader can't see; of a
    response, and of the prompt beside it, what a person sees.
    """
    if response is None:
        key = fence_key(wording.digest, prompt)
        shown = {"prompt": prompt}
    else:
        key = fence_key(wording.digest, prompt, response)
        beside = shorten_middle(visible_text(prompt), _PROMPT_BESIDE_RESPONSE_LIMIT)
        shown = {
            "prompt": beside,
            "response": shorten_middle(visible_text(response), RESPONSE_LIMIT),
        }
    return Case(
        key=key,
        question=wording.case.substitute(key=key, **shown),
        repair=wording.repair.substitute(key=key),
    )


async def ask_panel(
    panel: Sequence[Model], wording: Wording, prompt: str, response: str | None = None
) -> list[Opinion]:
    """Ask every moderator about a prompt or a response, at once.

    Raises:
        ModeratorFailed: A call failed for good; the others came to their end all the same, so
            that their replies are in the cache.
    """
    case = case_for(wording, prompt, response)
    names = numbered(str(model) for model in panel)
    found = await collect(
        *(_opinion(name, model, wording, case) for name, model in zip(names, panel, strict=True))
    )
    opinions: list[Opinion] = []
    for opinion in found:
        if isinstance(opinion, ModeratorFailed):
            raise opinion
        opinions.append(opinion)
    return opinions


def as_data(opinions: Iterable[Opinion]) -> list[dict[str, Any]]:
    """Give opinions as JSON-ready data."""
    return [opinion._asdict() for opinion in opinions]


def from_data(data: Iterable[Mapping[str, Any]]) -> list[Opinion]:
    """Give the opinions that :func:`as_data` made data of."""
    return [Opinion(**said) for said in data]


def in_words(opinions: Iterable[Opinion]) -> str:
    """Say in a line for each moderator what it said, for a person who reads a log."""
    return "\n".join(
        f"{opinion.model}: {opinion.said or opinion.withheld}"
        + (f" ({opinion.why})" if opinion.why else "")
        for opinion in opinions
    )


async def _opinion(
    name: str, model: Model, wording: Wording, case: Case
) -> Opinion | ModeratorFailed:
    def read(reply: str) -> Opinion | None:
        answer = read_answer(reply, case.key) or {}
        said = answer.get(wording.field)
        known = wording.answers.get(plain_spelling(said)) if isinstance(said, str) else None
        return Opinion(name, known, short_reason(answer.get("why"))) if known else None

    try:
        asked = await ask_case(model, wording.system, case, wording.schema, read)
    except Exception as error:
        if problem := request_problem(error):
            return Opinion(name, None, failure(error, model), withheld=problem)
        # Not chained: the error may quote the request with its key.
        return ModeratorFailed(f"{name}: {failure(error, model)}")
    if asked.answer is not None:
        return asked.answer
    if asked.blocked:
        return Opinion(name, None, withheld=BLOCKED)
    refused = classify_response(asked.said).refused
    return Opinion(name, None, withheld=REFUSED if refused else UNREADABLE)

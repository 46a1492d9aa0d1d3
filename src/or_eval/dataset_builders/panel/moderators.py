"""Asking a panel of moderators about a text, which may be hostile."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from string import Template
from typing import NamedTuple

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ResponseSchema,
)
from inspect_ai.util import JSONSchema
from pydantic import BaseModel, ConfigDict

from or_eval.dataset_builders.engine.conversations import Reply, Request, Talk, Told
from or_eval.dataset_builders.engine.request_errors import FAILED
from or_eval.dataset_builders.prompt_files import PromptFile, digest, load_prompt, prompt_path
from or_eval.schema import taxonomies
from or_eval.scorers.fenced_case import fence_key, read_answer, short_reason, shorten_middle
from or_eval.scorers.rules import classify_response
from or_eval.scorers.visible_text import blank_reasoning, visible_text

PROMPT_LIMIT = 16_000
"""Most characters of a prompt that moderators decide on. They are shown all of it or aren't asked:
what they haven't seen can't be safe."""

RESPONSE_LIMIT = 16_000
"""Characters of a response that moderators are shown; the middle of a longer one is left out."""

_PROMPT_BESIDE_RESPONSE_LIMIT = 4_000
_REPEATED_REPLY_CHARS = 2_000

REFUSED, UNREADABLE = "refused", "unreadable"
_CONFIDENCE = "confidence"


class Opinion(NamedTuple):
    """What one moderator said of one text.

    Attributes:
        model: Name of the moderator.
        said: Its answer; None where it withheld one.
        why: Its reason in its own words, if it gave one.
        withheld: Why there is no answer: its provider blocked the call for its content, or
            rejected it for another reason (``failed``), it refused to answer, or it answered
            twice in a way that can't be read.
        confidence: How sure it says it is, from 0 to 1, where it is asked that.
    """

    model: str
    said: str | None
    why: str | None = None
    withheld: str | None = None
    confidence: float | None = None


class _Part(BaseModel):
    """What is told about a kind of text: the work, and a case of it."""

    model_config = ConfigDict(extra="forbid")
    system: str
    case: str


class PanelPrompt(PromptFile):
    """A prompt file: the question where an answer can't be read, and a table a kind of text."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, _Part]
    repair: str

    @property
    def parts(self) -> dict[str, _Part]:
        """What is told, by the kind of text."""
        return self.__pydantic_extra__


class Wording(NamedTuple):
    """What moderators are told about one kind of text, and what they may answer.

    Attributes:
        digest: Digest of the prompt file.
        system: What they are told about their work.
        case: Template of one case.
        repair: Template of the question asked when an answer can't be read.
        field: Name of the answer in their JSON.
        answers: The answers, by the spellings that are read as such (:func:`plain_spelling`).
        good: The answer that speaks for a text.
        schema: The form of a reply.
        confidence: Whether they are asked how sure they are.
        of_response: Whether it is about a response beside its prompt.
    """

    digest: str
    system: str
    case: Template
    repair: Template
    field: str
    answers: Mapping[str, str]
    good: str
    schema: ResponseSchema
    confidence: bool
    of_response: bool


def load_wording(
    file: str,
    part: str,
    field: str,
    answers: Mapping[str, str],
    *,
    good: str | None = None,
    confidence: bool = False,
    **filled: str,
) -> Wording:
    """Read what moderators are told from a prompt file.

    Args:
        file: Name of the file without ``.toml``.
        part: The kind of text, a table of the file: ``prompt`` or ``response``.
        field: Name of the answer in the moderators' JSON.
        answers: Answers by spelling.
        good: The answer that speaks for a text; the first by default.
        confidence: Whether they are asked how sure they are.
        filled: What is put in the places of that name.
    """
    text = load_prompt(file, PanelPrompt)
    told = text.parts[part]
    properties = {
        "why": JSONSchema(type="string"),
        field: JSONSchema(type="string", enum=list(dict.fromkeys(answers.values()))),
        **({_CONFIDENCE: JSONSchema(type="number")} if confidence else {}),
        "key": JSONSchema(type="string"),
    }
    return Wording(
        digest(prompt_path(file)),
        Template(told.system.strip()).substitute(filled),
        Template(Template(told.case.strip()).safe_substitute(filled)),
        Template(Template(text.repair.strip()).safe_substitute(filled)),
        field,
        answers,
        good or next(iter(answers.values())),
        ResponseSchema(
            name=field,
            json_schema=JSONSchema(
                type="object",
                properties=properties,
                required=list(properties),
                additionalProperties=False,
            ),
            strict=True,
        ),
        confidence,
        part == "response",
    )


def category_wording(
    file: str, part: str, taxonomy: str, other: str, *, confidence: bool = False
) -> Wording:
    """Read what those are told who name a category of a taxonomy, or that it is none."""
    categories = taxonomies()[taxonomy].values()
    return load_wording(
        file,
        part,
        "category",
        category_spellings(taxonomy, other),
        good=other,
        confidence=confidence,
        categories="\n".join(f"- {one.key}: {one.definition}" for one in categories),
        keys=", ".join(one.key for one in categories),
    )


def category_spellings(taxonomy: str, *others: str) -> dict[str, str]:
    """Give the keys of a taxonomy, and other answers, by the spellings that are read as such."""
    categories = taxonomies()[taxonomy].values()
    # Keys last: a key is read as itself, whatever else is spelt so.
    spellings = [(alias, one.key) for one in categories for alias in one.aliases]
    spellings += [(one.name, one.key) for one in categories]
    spellings += [(key, key) for key in (*(one.key for one in categories), *others)]
    return {plain_spelling(spelling): key for spelling, key in spellings}


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


def judging(wording: Wording, prompt: str, response: str | None = None) -> Talk[Opinion]:
    """Ask a moderator about a text, and once more where its answer can't be read.

    A prompt to decide on is shown as models will get it, with whatever a reader can't see; of a
    response, and of the prompt beside it, what a person sees.

    Args:
        wording: What it is told.
        prompt: The prompt.
        response: The response beside it, where that is what is judged.
    """
    if response is None:
        key = fence_key(wording.digest, prompt)
        texts = {"prompt": prompt}
    else:
        key = fence_key(wording.digest, prompt, response)
        beside = shorten_middle(visible_text(prompt), _PROMPT_BESIDE_RESPONSE_LIMIT)
        texts = {
            "prompt": beside,
            "response": shorten_middle(visible_text(response), RESPONSE_LIMIT),
        }
    asked: list[ChatMessage] = [
        ChatMessageSystem(content=wording.system),
        ChatMessageUser(content=wording.case.substitute(key=key, **texts)),
    ]
    reply = yield Request(tuple(asked), wording.schema, temperature=0.0)
    opinion = _opinion(reply, wording, key)
    if opinion.withheld not in (REFUSED, UNREADABLE):
        return opinion
    # A reply with no text is left out, as servers reject it.
    if said := shorten_middle(blank_reasoning(reply.text).text.strip(), _REPEATED_REPLY_CHARS):
        asked.append(ChatMessageAssistant(content=said))
    asked.append(ChatMessageUser(content=wording.repair.substitute(key=key)))
    reply = yield Request(tuple(asked), wording.schema, temperature=0.0, otherwise=opinion)
    return _opinion(reply, wording, key)


def _opinion(reply: Reply, wording: Wording, key: str) -> Opinion:
    """Read an answer."""
    if reply.problem is not None:
        return without_answer(reply)
    said = blank_reasoning(reply.text).text
    answer = read_answer(said, key) or {}
    found = answer.get(wording.field)
    known = None if found is None else wording.answers.get(plain_spelling(str(found)))
    if known is None:
        refused = classify_response(said).refused
        return Opinion(reply.model, None, withheld=REFUSED if refused else UNREADABLE)
    sure = _share(answer.get(_CONFIDENCE)) if wording.confidence else None
    return Opinion(reply.model, known, short_reason(answer.get("why")), confidence=sure)


def without_answer(reply: Reply) -> Opinion:
    """Give the opinion of a moderator whose provider would not have the question."""
    why = reply.text if reply.problem == FAILED else None
    return Opinion(reply.model, None, why, reply.problem)


def told_of(good: str, opinion: Opinion) -> Told:
    """Say what a moderator holds a text for."""
    said = opinion.said or str(opinion.withheld)
    return Told(float(opinion.said == good), said, in_words([opinion]))


def _share(said: object) -> float | None:
    """Read a number from 0 to 1; a model that says 80 means 0.8."""
    try:
        number = float(str(said).strip().removesuffix("%"))
    except ValueError:
        return None
    number = number / 100 if 1 < number <= 100 else number
    return number if 0 <= number <= 1 else None


def in_words(opinions: Iterable[Opinion]) -> str:
    """Say in a line for each moderator what it said, for a person who reads a log."""
    return "\n".join(
        f"{opinion.model}: {opinion.said or opinion.withheld}"
        + (f" ({opinion.why})" if opinion.why else "")
        for opinion in opinions
    )

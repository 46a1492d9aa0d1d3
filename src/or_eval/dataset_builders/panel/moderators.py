"""Asking a panel of moderators about a text, which may be hostile."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

from or_eval.dataset_builders.engine.conversations import Question, Reply, Request, Told
from or_eval.dataset_builders.engine.models import BoundModel
from or_eval.dataset_builders.engine.ports import MODERATOR, StageContext
from or_eval.dataset_builders.engine.request_errors import BLOCKED, FAILED
from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.prompt_files import digest, load_prompt, prompt_path
from or_eval.schema import PromptRecord, taxonomies
from or_eval.scorers.fenced_case import Case, fence_key, shorten_middle
from or_eval.scorers.keyed_answer import read_answer, short_reason
from or_eval.scorers.reasoning import blank_reasoning
from or_eval.scorers.rules import classify_response
from or_eval.scorers.visible_text import visible_text

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
        confidence: Whether they are asked how sure they are.
    """

    digest: str
    system: str
    case: Template
    repair: Template
    field: str
    answers: Mapping[str, str]
    good: str
    confidence: bool = False

    @property
    def schema(self) -> ResponseSchema:
        """The form of a reply."""
        answers = list(dict.fromkeys(self.answers.values()))
        sure = {_CONFIDENCE: JSONSchema(type="number")} if self.confidence else {}
        properties = {
            "why": JSONSchema(type="string"),
            self.field: JSONSchema(type="string", enum=answers),
            **sure,
            "key": JSONSchema(type="string"),
        }
        return ResponseSchema(
            name=self.field,
            json_schema=JSONSchema(
                type="object",
                properties=properties,
                required=list(properties),
                additionalProperties=False,
            ),
            strict=True,
        )


def load_wording(
    file: str,
    part: str,
    field: str,
    answers: Mapping[str, str],
    good: str,
    *,
    confidence: bool = False,
    **filled: str,
) -> Wording:
    """Read what moderators are told from a prompt file.

    Args:
        file: Name of the file without ``.toml``.
        part: The kind of text, a table of the file: ``prompt`` or ``response``.
        field: Name of the answer in the moderators' JSON.
        answers: Answers by spelling.
        good: The answer that speaks for a text.
        confidence: Whether they are asked how sure they are.
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
        good,
        confidence,
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


class Judging:
    """A moderator is asked about a text, and once more where its answer can't be read.

    Args:
        wording: What it is told.
        prompt: The prompt.
        response: The response beside it, where that is what is judged.
    """

    def __init__(self, wording: Wording, prompt: str, response: str | None = None) -> None:
        self._wording, self._case = wording, case_for(wording, prompt, response)
        self._replies: list[Reply] = []
        self.opinion = Opinion("", None, withheld=UNREADABLE)

    def request(self) -> Request | None:
        """Ask the case, then for a readable answer to it."""
        asked: list[ChatMessage] = [
            ChatMessageSystem(content=self._wording.system),
            ChatMessageUser(content=self._case.question),
        ]
        if self._replies:
            if len(self._replies) > 1 or self.opinion.withheld in (None, BLOCKED, FAILED):
                return None
            # A reply with no text is left out, as servers reject it.
            if said := shorten_middle(
                blank_reasoning(self._replies[0].text).text.strip(), _REPEATED_REPLY_CHARS
            ):
                asked.append(ChatMessageAssistant(content=said))
            asked.append(ChatMessageUser(content=self._case.repair))
        return Request(tuple(asked), self._wording.schema, temperature=0.0)

    def take(self, reply: Reply) -> None:
        """Read an answer."""
        self._replies.append(reply)
        said = blank_reasoning(reply.text).text
        if reply.problem is not None:
            why = reply.text if reply.problem == FAILED else None
            self.opinion = Opinion(reply.model, None, why, reply.problem)
            return
        answer = read_answer(said, self._case.key) or {}
        found = answer.get(self._wording.field)
        known = None if found is None else self._wording.answers.get(plain_spelling(str(found)))
        if known is not None:
            why = short_reason(answer.get("why"))
            sure = _share(answer.get(_CONFIDENCE)) if self._wording.confidence else None
            self.opinion = Opinion(reply.model, known, why, confidence=sure)
        else:
            refused = classify_response(said).refused
            self.opinion = Opinion(reply.model, None, withheld=REFUSED if refused else UNREADABLE)

    def told(self) -> Told:
        """Say what the moderator holds the text for."""
        said = self.opinion.said or str(self.opinion.withheld)
        return Told(float(self.opinion.said == self._wording.good), said, in_words([self.opinion]))


def _share(said: object) -> float | None:
    """Read a number from 0 to 1; a model that says 80 means 0.8."""
    try:
        number = float(str(said).strip().removesuffix("%"))
    except ValueError:
        return None
    number = number / 100 if 1 < number <= 100 else number
    return number if 0 <= number <= 1 else None


def judged_by(
    panel: Sequence[BoundModel],
    wording: Wording,
    row: PromptRecord,
    response: str | None = None,
    role: str = MODERATOR,
) -> list[Question[Judging]]:
    """Ask every model of a panel about a row's prompt, or about a response to it."""
    return [
        Question(
            role,
            (model,),
            lambda: Judging(wording, row.prompt, response),
            shown={"id": row.id, "category": row.category, "method": row.method},
            text=row.prompt if response is None else response,
        )
        for model in panel
    ]


def opinions_of(panel: Sequence[BoundModel], judgings: Sequence[Judging]) -> list[Opinion]:
    """Give what each model of a panel said, under names that differ."""
    names = numbered(model.name for model in panel)
    return [
        judging.opinion._replace(model=name) for name, judging in zip(names, judgings, strict=True)
    ]


def opinions_on_prompts(
    rows: Rows, wording: Wording, context: StageContext, role: str = MODERATOR
) -> Iterator[tuple[PromptRecord, list[Opinion] | None]]:
    """Ask the panel of a role about every row's prompt; None of one too long to be shown whole."""
    panel = context.panel(role)

    def asked() -> Iterator[tuple[PromptRecord, list[Question[Judging]]]]:
        for row in rows:
            long = len(row.prompt) > PROMPT_LIMIT
            yield row, [] if long else judged_by(panel, wording, row, role=role)

    for row, judgings in context.ask(asked()):
        yield row, opinions_of(panel, judgings) if judgings else None


def in_words(opinions: Iterable[Opinion]) -> str:
    """Say in a line for each moderator what it said, for a person who reads a log."""
    return "\n".join(
        f"{opinion.model}: {opinion.said or opinion.withheld}"
        + (f" ({opinion.why})" if opinion.why else "")
        for opinion in opinions
    )

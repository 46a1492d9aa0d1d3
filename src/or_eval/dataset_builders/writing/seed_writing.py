"""Having seeds written: what a writer is asked about a category, and what it found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from or_eval.dataset_builders.engine.conversations import Reply, Talk, Told
from or_eval.dataset_builders.engine.request_errors import BLOCKED, FAILED
from or_eval.dataset_builders.prompt_files import PromptFile, filled, load_prompt
from or_eval.dataset_builders.similarity.same_text import same_text
from or_eval.dataset_builders.writing.language import count_words, is_in, language_name, length_in
from or_eval.dataset_builders.writing.writer_replies import (
    CUT_OFF,
    REFUSED,
    UNREADABLE,
    is_refusal,
    read_reply,
    written_request,
)
from or_eval.schema import Category
from or_eval.scorers.fenced_case import fence_key

SEEDS_PROMPT = "seeds"
"""Name of the file with the questions."""

ENOUGH = "enough"
DRIED_UP = "dried up"

FAULTS = (
    *(REFUSED, BLOCKED, FAILED, UNREADABLE, CUT_OFF),
    *("too short", "too long", "wrong language", "duplicate"),
)
"""Why a text, or a reply without texts, is no seed."""

_TOPICS = "topics"
_SHOWN_CHARS = 200
_NEARLY_NOTHING = 0.1


class SeedPrompt(PromptFile):
    """The questions, and what a seed has to be like; ``prompts/seeds.toml`` tells of each."""

    shown: int
    min_words: int
    max_words: int
    topic: int
    angles: tuple[str, ...]
    system: str
    request: str
    topics: str
    part: str
    known: str


@cache
def seed_prompt() -> SeedPrompt:
    """Give the prompt, read once."""
    return load_prompt(SEEDS_PROMPT, SeedPrompt)


class Found(NamedTuple):
    """A text that a writer gave.

    Attributes:
        text: The text, or the beginning of a reply without texts.
        writer: Name of the model.
        question: Number of the question, from 1.
        topic: The part of the category that it was about.
        fault: Why it is no seed; None for one that may be.
    """

    text: str
    writer: str
    question: int
    topic: str | None
    fault: str | None = None


@dataclass
class Sought:
    """What a search for seeds of a category has come to.

    Attributes:
        wanted: Number of distinct seeds wanted; what a writer gives beyond is kept as well.
        topics: The topics that the category was parted into.
        questions: Questions for seeds that were answered.
        found: The seeds.
        faulty: Texts, and replies without texts, that are none.
    """

    wanted: int
    topics: list[str] = field(default_factory=list)
    questions: int = 0
    found: list[Found] = field(default_factory=list)
    faulty: list[Found] = field(default_factory=list)

    @property
    def stopped(self) -> str:
        """Why the search ended."""
        return ENOUGH if len(self.found) >= self.wanted else DRIED_UP

    @property
    def topic(self) -> str | None:
        """The part of the category that the next question is about."""
        return self.topics[self.questions % len(self.topics)] if self.topics else None

    def told(self) -> Told:
        """Say how many were found, and why the search ended."""
        return Told(
            len(self.found) / self.wanted,
            f"{len(self.found)} of {self.wanted}",
            f"{self.questions} questions; stopped: {self.stopped}; left out: {len(self.faulty)}",
        )


def seeking(
    category: Category,
    wanted: int,
    *,
    batch: int,
    dry_after: int,
    language: str,
    topics: int = 0,
    temperature: float | None = None,
) -> Talk[Sought]:
    """Ask a writer for seeds of a category until enough are found or no new ones come.

    Where topics are wanted, it is asked for these before, and each question is about the next of
    them; where it gives none, about all.

    Args:
        category: The category.
        wanted: Number of distinct seeds wanted.
        batch: Seeds asked for at once.
        dry_after: Questions in a row with nearly nothing new that end the search.
        language: BCP-47 tag of the language of the seeds.
        topics: Number of topics that the category is parted into.
        temperature: Sampling temperature; None for the model's own.
    """
    prompt, sought = seed_prompt(), Sought(wanted)
    place = {
        "category": category.name,
        "definition": category.definition,
        "language": language_name(language),
    }
    if topics:
        text = filled(prompt.topics, **place, count=topics)
        request = written_request(prompt.system.strip(), text, _TOPICS, temperature)
        reply = yield request._replace(otherwise=sought)
        sought.topics = _fitting_topics(read_reply(reply).texts)[:topics]
    dry = 0
    while len(sought.found) < wanted and dry < dry_after:
        count, number = min(batch, wanted - len(sought.found)), sought.questions
        text = filled(
            prompt.request,
            **place,
            length=length_in(prompt.max_words // 2, language, least=prompt.min_words),
            count=count,
            round=number + 1,
            angle=prompt.angles[number % len(prompt.angles)],
            part=_part(sought.topic),
            known=_known(sought),
        )
        request = written_request(prompt.system.strip(), text, count, temperature)
        reply = yield request._replace(otherwise=sought)
        before = len(sought.found)
        _take(reply, sought, language)
        # Of a small batch, nothing; of a large one, hardly anything.
        new = len(sought.found) - before
        dry = dry + 1 if new <= int(reply.about) * _NEARLY_NOTHING else 0
    return sought


def _take(reply: Reply, sought: Sought, language: str) -> None:
    """Take the texts of a reply for seeds, or leave them out."""
    read, topic = read_reply(reply), sought.topic
    sought.questions += 1
    known = {same_text(found.text) for found in sought.found}

    def given() -> Iterator[tuple[str, str | None]]:
        for text in read.texts:
            yield text, _fault(text, language, known)
        if read.cut_off is not None:
            yield read.cut_off, CUT_OFF
        elif read.problem is not None or not read.texts:
            yield read.said, read.problem or UNREADABLE

    for text, fault in given():
        found = Found(text, read.writer, sought.questions, topic, fault)
        if fault is None:
            known.add(same_text(text))
            sought.found.append(found)
        else:
            sought.faulty.append(found)


def _fault(text: str, language: str, known: set[str]) -> str | None:
    prompt, words = seed_prompt(), count_words(text)
    if is_refusal(text):
        return REFUSED
    if words < prompt.min_words:
        return "too short"
    if words > prompt.max_words:
        return "too long"
    if not is_in(text, language):
        return "wrong language"
    return "duplicate" if same_text(text) in known else None


def _fitting_topics(texts: Sequence[str]) -> list[str]:
    fitting: dict[str, str] = {}
    for text in texts:
        if count_words(text) <= seed_prompt().topic and not is_refusal(text):
            fitting.setdefault(same_text(text), " ".join(text.split()))
    return list(fitting.values())


def _part(topic: str | None) -> str:
    prompt = seed_prompt()
    if topic is None:
        return ""
    return "\n" + filled(prompt.part, key=fence_key(prompt.version, topic), topic=topic)


def _known(sought: Sought) -> str:
    """Name the newest seeds, and of the others some that get their turn."""
    prompt = seed_prompt()
    texts = [found.text for found in sought.found]
    if not texts:
        return ""
    older = texts[: -(prompt.shown // 2)]
    most = prompt.shown - prompt.shown // 2
    start = sought.questions * most % len(older) if older else 0
    turned = [*older[start:], *older[:start]][:most] + texts[len(older) :]
    requests = "\n".join(f"- {text[:_SHOWN_CHARS]}" for text in turned)
    return filled(prompt.known, key=fence_key(prompt.version, requests), requests=requests)

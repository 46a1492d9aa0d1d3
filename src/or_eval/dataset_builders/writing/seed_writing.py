"""Having seeds written: what a writer is asked about a category, and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from string import Template
from typing import NamedTuple

from or_eval.dataset_builders.engine.conversations import Reply, Request, Talk, Told
from or_eval.dataset_builders.engine.request_errors import BLOCKED, FAILED
from or_eval.dataset_builders.prompt_files import load_prompt
from or_eval.dataset_builders.similarity.same_text import same_text
from or_eval.dataset_builders.writing.language import (
    count_words,
    is_in,
    language_name,
    length_in,
)
from or_eval.dataset_builders.writing.replies import (
    CUT_OFF,
    REFUSED,
    UNREADABLE,
    WriterReply,
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


class SeedPrompt(NamedTuple):
    """The questions, and what a seed has to be like (see ``prompts/seeds.toml``).

    Attributes:
        version: What its authors call it.
        shown: Requests found already that a question names.
        min_words: Least length of a seed.
        max_words: Greatest length of a seed.
        topic: Greatest length of a topic, in words.
        angles: What each question asks to think of, one after the other.
        system: What the writer is told about its work.
        request: Template of a question.
        topics: Template of the question that parts a category.
        part: Template of what names the part that a question is about.
        known: Template of the part that names what has been found already.
    """

    version: str
    shown: int
    min_words: int
    max_words: int
    topic: int
    angles: tuple[str, ...]
    system: str
    request: Template
    topics: Template
    part: Template
    known: Template


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


@cache
def seed_prompt() -> SeedPrompt:
    """Give the prompt, read once."""
    data = load_prompt(SEEDS_PROMPT)
    return SeedPrompt(
        version=data["version"],
        shown=data["shown"],
        min_words=data["min_words"],
        max_words=data["max_words"],
        topic=data["topic"],
        angles=tuple(data["angles"]),
        system=data["system"].strip(),
        request=Template(data["request"].strip()),
        topics=Template(data["topics"].strip()),
        part=Template(data["part"].rstrip()),
        known=Template(data["known"].rstrip()),
    )


class Seeking:
    """A writer is asked for seeds of a category until enough are found or no new ones come.

    What a writer gives beyond what was wanted is kept as well. Where topics are wanted, it is asked
    for these before, and each question is about the next of them; where it gives none, about all.

    Args:
        category: The category.
        wanted: Number of distinct seeds wanted.
        batch: Seeds asked for at once.
        dry_after: Questions in a row with nearly nothing new that end the search.
        language: BCP-47 tag of the language of the seeds.
        topics: Number of topics that the category is parted into.
        temperature: Sampling temperature; None for the model's own.
    """

    def __init__(
        self,
        category: Category,
        wanted: int,
        *,
        batch: int,
        dry_after: int,
        language: str,
        topics: int = 0,
        temperature: float | None = None,
    ) -> None:
        self._category, self._wanted = category, wanted
        self._batch, self._dry_after, self._language = batch, dry_after, language
        self._temperature, self._parts = temperature, topics
        self.topics: list[str] | None = None if topics else []
        self._known: set[str] = set()
        self._dry = 0
        self.questions = 0
        self.found: list[Found] = []
        self.faulty: list[Found] = []

    @property
    def stopped(self) -> str:
        """Why the search ended."""
        return ENOUGH if len(self.found) >= self._wanted else DRIED_UP

    def talk(self) -> Talk[Seeking]:
        """Ask until enough are found, or no new ones come."""
        while (request := self.request()) is not None:
            self.take((yield request._replace(otherwise=self)))
        return self

    def request(self) -> Request | None:
        """Ask for the topics, then for some of what is missing."""
        if self.topics is None:
            return written_request(
                seed_prompt().system, self._topics_request(), _TOPICS, self._temperature
            )
        missing = self._wanted - len(self.found)
        if missing <= 0 or self._dry >= self._dry_after:
            return None
        asked = min(self._batch, missing)
        return written_request(seed_prompt().system, self._request(asked), asked, self._temperature)

    def take(self, reply: Reply) -> None:
        """Take the texts of a reply for seeds, or leave them out."""
        read = read_reply(reply)
        if self.topics is None:
            self.topics = self._fitting_topics(read.texts)
            return
        topic = self._topic
        self.questions += 1
        before = len(self.found)
        for text in read.texts:
            fault = self._fault(text)
            found = Found(text, read.writer, self.questions, topic, fault)
            if fault is None:
                self._known.add(same_text(text))
                self.found.append(found)
            else:
                self.faulty.append(found)
        for text, fault in _without_seed(read):
            self.faulty.append(Found(text, read.writer, self.questions, topic, fault))
        # Of a small batch, nothing; of a large one, hardly anything.
        new = len(self.found) - before
        self._dry = self._dry + 1 if new <= int(reply.about) * _NEARLY_NOTHING else 0

    def told(self) -> Told:
        """Say how many were found, and why the search ended."""
        return Told(
            len(self.found) / self._wanted,
            f"{len(self.found)} of {self._wanted}",
            f"{self.questions} questions; stopped: {self.stopped}; left out: {len(self.faulty)}",
        )

    @property
    def _topic(self) -> str | None:
        return self.topics[self.questions % len(self.topics)] if self.topics else None

    def _topics_request(self) -> str:
        return seed_prompt().topics.substitute(
            category=self._category.name,
            definition=self._category.definition,
            language=language_name(self._language),
            count=self._parts,
        )

    def _fitting_topics(self, texts: Sequence[str]) -> list[str]:
        longest = seed_prompt().topic
        fitting: dict[str, str] = {}
        for text in texts:
            if count_words(text) <= longest and not is_refusal(text):
                fitting.setdefault(same_text(text), " ".join(text.split()))
        return list(fitting.values())[: self._parts]

    def _request(self, count: int) -> str:
        prompt, number = seed_prompt(), self.questions
        return prompt.request.substitute(
            category=self._category.name,
            definition=self._category.definition,
            language=language_name(self._language),
            length=length_in(prompt.max_words // 2, self._language, least=prompt.min_words),
            count=count,
            round=number + 1,
            angle=prompt.angles[number % len(prompt.angles)],
            part=self._part(),
            known=self._shown(number),
        )

    def _part(self) -> str:
        prompt, topic = seed_prompt(), self._topic
        if topic is None:
            return ""
        return prompt.part.substitute(key=fence_key(prompt.version, topic), topic=topic)

    def _shown(self, number: int) -> str:
        """Name the newest seeds, and of the others some that get their turn."""
        prompt = seed_prompt()
        texts = [found.text for found in self.found]
        if not texts:
            return ""
        older = texts[: -(prompt.shown // 2)]
        most = prompt.shown - prompt.shown // 2
        start = number * most % len(older) if older else 0
        turned = [*older[start:], *older[:start]][:most] + texts[len(older) :]
        requests = "\n".join(f"- {text[:_SHOWN_CHARS]}" for text in turned)
        return prompt.known.substitute(key=fence_key(prompt.version, requests), requests=requests)

    def _fault(self, text: str) -> str | None:
        prompt, words = seed_prompt(), count_words(text)
        if is_refusal(text):
            return REFUSED
        if words < prompt.min_words:
            return "too short"
        if words > prompt.max_words:
            return "too long"
        if not is_in(text, self._language):
            return "wrong language"
        return "duplicate" if same_text(text) in self._known else None


def _without_seed(reply: WriterReply) -> Sequence[tuple[str, str]]:
    if reply.cut_off is not None:
        return [(reply.cut_off, CUT_OFF)]
    if reply.problem is not None:
        return [(reply.said, reply.problem)]
    return [] if reply.texts else [(reply.said, UNREADABLE)]

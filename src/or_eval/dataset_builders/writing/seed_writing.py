"""The Inspect task of the stage ``seeds``: a category is a sample, its seeds are its score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from string import Template
from typing import Any, NamedTuple

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ModelOutput
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from or_eval.dataset_builders.engine.asking import models_of
from or_eval.dataset_builders.engine.ports import WRITER
from or_eval.dataset_builders.engine.request_errors import BLOCKED, FAILED
from or_eval.dataset_builders.prompt_files import load_prompt
from or_eval.dataset_builders.writing.language import (
    count_words,
    folded,
    is_in,
    language_name,
    length_in,
)
from or_eval.dataset_builders.writing.replies import (
    CUT_OFF,
    REFUSED,
    UNREADABLE,
    WriterReply,
    ask_writer,
    is_refusal,
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

_FOUND = "found"
_SHOWN_CHARS = 200
_NEARLY_NOTHING = 0.1


class SeedPrompt(NamedTuple):
    """The questions, and what a seed has to be like (see ``prompts/seeds.toml``).

    Attributes:
        version: What its authors call it.
        shown: Requests found already that a question names.
        min_words: Least length of a seed.
        max_words: Greatest length of a seed.
        angles: What each question asks to think of, one after the other.
        system: What the writer is told about its work.
        request: Template of a question.
        known: Template of the part that names what has been found already.
    """

    version: str
    shown: int
    min_words: int
    max_words: int
    angles: tuple[str, ...]
    system: str
    request: Template
    known: Template


class LeftOut(NamedTuple):
    """A text, or a reply without texts, that is no seed.

    Attributes:
        text: The text, or the beginning of the reply.
        reason: Why it is none.
        round: Number of the question, from 1.
        writer: Name of the model.
    """

    text: str
    reason: str
    round: int
    writer: str


@cache
def seed_prompt() -> SeedPrompt:
    """Give the prompt, read once."""
    data = load_prompt(SEEDS_PROMPT)
    return SeedPrompt(
        version=data["version"],
        shown=data["shown"],
        min_words=data["min_words"],
        max_words=data["max_words"],
        angles=tuple(data["angles"]),
        system=data["system"].strip(),
        request=Template(data["request"].strip()),
        known=Template(data["known"].rstrip()),
    )


def seeds_task(
    wanted: dict[str, int],
    categories: dict[str, Category],
    *,
    batch: int,
    dry_after: int,
    language: str,
) -> Task:
    """Make the task that has seeds written.

    Args:
        wanted: Number of distinct seeds wanted of each category.
        categories: The categories of the taxonomy by key.
        batch: Seeds asked for at once.
        dry_after: Questions in a row with nearly nothing new that end a category.
        language: BCP-47 tag of the language of the seeds.
    """
    samples = [
        Sample(
            id=key,
            input=f"{categories[key].name}: {categories[key].definition}",
            metadata={
                "category": categories[key].name,
                "definition": categories[key].definition,
                "wanted": number,
            },
        )
        for key, number in wanted.items()
    ]
    return Task(
        name="seeds",
        dataset=MemoryDataset(samples, name="categories"),
        solver=write_seeds(batch, dry_after, language),
        scorer=seeds_found(),
    )


@solver(name="write_seeds")
def write_seeds(batch: int, dry_after: int, language: str) -> Solver:
    """Ask the writer for seeds of a category until enough are found or no new ones come."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        search = _Search(state, language)
        dry = 0
        while search.missing > 0 and dry < dry_after:
            asked = min(batch, search.missing)
            new = await search.ask(asked)
            # Of a small batch, nothing; of a large one, hardly anything.
            dry = dry + 1 if new <= asked * _NEARLY_NOTHING else 0
        state.store.set(_FOUND, search.as_data())
        return state

    return solve


@scorer(metrics=[mean()], name="seeds_found")
def seeds_found() -> Scorer:
    """Give the share of the seeds wanted that were found, and all of them as metadata."""

    async def score(state: TaskState, target: Target) -> Score:
        result: dict[str, Any] = state.store.get(_FOUND)
        found, wanted = len(result["seeds"]), state.metadata["wanted"]
        return Score(
            value=found / wanted,
            answer=f"{found} of {wanted}",
            explanation=f"{result['questions']} questions; stopped: {result['stopped']}; "
            f"left out: {len(result['left_out'])}",
            metadata=result,
        )

    return score


@dataclass
class _Search:
    """The questions about one category."""

    state: TaskState
    language: str
    questions: int = 0
    seeds: dict[str, tuple[str, str]] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)

    @property
    def missing(self) -> int:
        """How many seeds are still wanted."""
        return int(self.state.metadata["wanted"]) - len(self.seeds)

    def as_data(self) -> dict[str, Any]:
        """Give what was found as JSON-ready data."""
        return {
            "seeds": [{"text": text, "writer": writer} for text, writer in self.seeds.values()],
            "left_out": [item._asdict() for item in self.left_out],
            "questions": self.questions,
            "stopped": DRIED_UP if self.missing else ENOUGH,
        }

    async def ask(self, count: int) -> int:
        """Ask for some seeds; give how many new ones came."""
        writers = models_of(WRITER)
        prompt, request = seed_prompt(), self._request(count)
        writer = writers[self.questions % len(writers)]
        self.questions += 1
        output, reply = await ask_writer(writer, prompt.system, request)
        self._show(prompt.system, request, output)
        before = len(self.seeds)
        for text in reply.texts:
            self._take(text, reply.writer)
        for text, reason in _without_seed(reply):
            self.left_out.append(LeftOut(text, reason, self.questions, reply.writer))
        return len(self.seeds) - before

    def _request(self, count: int) -> str:
        prompt, facts = seed_prompt(), self.state.metadata
        return prompt.request.substitute(
            category=facts["category"],
            definition=facts["definition"],
            language=language_name(self.language),
            length=length_in(prompt.max_words // 2, self.language, least=prompt.min_words),
            count=count,
            round=self.questions + 1,
            angle=prompt.angles[self.questions % len(prompt.angles)],
            known=self._known(),
        )

    def _known(self) -> str:
        """Name the newest seeds, and of the others some that get their turn."""
        prompt, texts = seed_prompt(), [text for text, _ in self.seeds.values()]
        if not texts:
            return ""
        older = texts[: -(prompt.shown // 2)]
        most = prompt.shown - prompt.shown // 2
        start = self.questions * most % len(older) if older else 0
        turned = [*older[start:], *older[:start]][:most] + texts[len(older) :]
        requests = "\n".join(f"- {text[:_SHOWN_CHARS]}" for text in turned)
        return prompt.known.substitute(key=fence_key(prompt.version, requests), requests=requests)

    def _take(self, text: str, writer: str) -> None:
        """Take a text for a seed, or leave it out."""
        reason = self._fault(text)
        if reason is None and self.missing > 0:
            self.seeds[folded(text)] = (text, writer)
        elif reason is not None:
            self.left_out.append(LeftOut(text, reason, self.questions, writer))

    def _fault(self, text: str) -> str | None:
        prompt, words = seed_prompt(), count_words(text)
        if is_refusal(text):
            return REFUSED
        if words < prompt.min_words:
            return "too short"
        if words > prompt.max_words:
            return "too long"
        if not is_in(text, self.language):
            return "wrong language"
        return "duplicate" if folded(text) in self.seeds else None

    def _show(self, system: str, request: str, output: ModelOutput) -> None:
        """Put a question and its reply where the log viewer shows them."""
        if self.questions == 1:
            self.state.messages = [ChatMessageSystem(content=system)]
        self.state.messages.append(ChatMessageUser(content=request))
        if not output.empty:
            self.state.messages.append(output.message)
        self.state.output = output


def _without_seed(reply: WriterReply) -> Sequence[tuple[str, str]]:
    if reply.cut_off is not None:
        return [(reply.cut_off, CUT_OFF)]
    if reply.problem is not None:
        return [(reply.said, reply.problem)]
    return [] if reply.texts else [(reply.said, UNREADABLE)]

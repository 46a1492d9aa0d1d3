"""The Inspect task of the stage ``rewrite``: a seed is a sample, its rewrites are its score."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, field
from functools import cache
from itertools import islice
from string import Template
from typing import Any

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ModelOutput
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from or_eval.dataset_builders.engine.asking import models_of
from or_eval.dataset_builders.engine.ports import WRITER
from or_eval.dataset_builders.prompt_files import load_prompt
from or_eval.dataset_builders.writing.language import folded, language_name, length_in
from or_eval.dataset_builders.writing.methods import Part, RewriteMethod, load_method
from or_eval.dataset_builders.writing.replies import CUT_OFF, WriterReply, ask_writer
from or_eval.dataset_builders.writing.rewrite_checks import MISSING, Wanted, Written, check_text
from or_eval.schema import Category, PromptRecord
from or_eval.scorers.fenced_case import fence_key, shorten_middle
from or_eval.scorers.visible_text import visible_text

AGAIN = "written_again"
"""Name of the file with what is added to further questions."""

_WRITTEN = "written"
_MOST_REPEATS = 2
_SEED_CHARS = 4_000
_SHOWN_CHARS = 200
_MOST_DETAILS = 10


@dataclass(frozen=True, slots=True)
class Settings:
    """What is asked of the writer, in words and numbers that a log can hold.

    Attributes:
        method: Name or path of the method.
        count: Rewrites wanted of each seed.
        min_words: Least length of a rewrite.
        max_words: Greatest length of a rewrite.
        language: BCP-47 tag of the language.
    """

    method: str
    count: int
    min_words: int
    max_words: int
    language: str

    def load(self) -> RewriteMethod:
        """Give the method with these settings."""
        return load_method(self.method).model_copy(
            update={
                "count": self.count,
                "min_words": self.min_words,
                "max_words": self.max_words,
            }
        )


@dataclass(frozen=True, slots=True)
class Share:
    """Some of the rewrites of a seed, which are asked for together.

    Attributes:
        count: How many.
        part: Where their sensitive part has to stand, if the method has such parts.
    """

    count: int
    part: Part | None


def rewrite_task(
    seeds: Sequence[PromptRecord], settings: Settings, categories: dict[str, Category]
) -> Task:
    """Make the task that rewrites seeds.

    Args:
        seeds: The seeds.
        settings: What is asked of the writer.
        categories: The categories of the taxonomy by key.
    """
    return Task(
        name="rewrite",
        dataset=MemoryDataset([_sample(seed, categories) for seed in seeds], name="seeds"),
        solver=write_rewrites(*astuple(settings)),
        scorer=rewrites_kept(),
    )


def shares_of(method: RewriteMethod) -> list[Share]:
    """Share the rewrites of a seed out to places of the sensitive part, and to questions."""
    parts: Sequence[Part | None] = list(method.sensitive_part) or [None]
    shares = []
    for number, part in enumerate(parts):
        wanted = len(range(number, method.count, len(parts)))
        full, rest = divmod(wanted, method.per_call)
        shares += [Share(method.per_call, part)] * full + ([Share(rest, part)] if rest else [])
    return shares


@solver(name="write_rewrites")
def write_rewrites(
    method: str, count: int, min_words: int, max_words: int, language: str
) -> Solver:
    """Ask the writer for the rewrites of a seed, and again for those that can't be used."""
    loaded = Settings(method, count, min_words, max_words, language).load()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        asking = _Asking(state, loaded, language)
        written = [item for share in shares_of(loaded) for item in await asking.fill(share)]
        state.store.set(_WRITTEN, [item.as_data() for item in written])
        return state

    return solve


@scorer(metrics=[mean()], name="rewrites_kept")
def rewrites_kept() -> Scorer:
    """Give the share of the rewrites wanted that passed, and all of them as metadata."""

    async def score(state: TaskState, target: Target) -> Score:
        written: list[dict[str, Any]] = state.store.get(_WRITTEN, [])
        reasons = Counter(str(item["reason"]) for item in written if "reason" in item)
        kept = len(written) - reasons.total()
        said = [f"{kept} of {len(written)} kept"]
        said += [f"{count} {reason}" for reason, count in reasons.most_common()]
        return Score(
            value=kept / len(written),
            answer=f"{kept} of {len(written)}",
            explanation="; ".join(said),
            metadata={_WRITTEN: written},
        )

    return score


@dataclass
class _Asking:
    """The questions about one seed."""

    state: TaskState
    method: RewriteMethod
    language: str
    questions: int = 0
    forms_used: int = 0
    kept: list[Written] = field(default_factory=list)

    @property
    def seed(self) -> str:
        return self.state.input_text

    @property
    def place(self) -> int:
        """Give a number that depends on the seed alone, to begin lists in different places."""
        return int.from_bytes(hashlib.sha256(self.seed.encode()).digest()[:4])

    @property
    def key(self) -> str:
        """Give what fences the seed in the questions."""
        return fence_key(self.method.version, self.seed)

    async def fill(self, share: Share) -> list[Written]:
        """Ask until a share is complete or questions are used up; give as many as it has."""
        kept: list[Written] = []
        lost: list[Written] = []
        for _ in range(1 + _MOST_REPEATS):
            missing = share.count - len(kept)
            reply = await self._ask(Share(missing, share.part), lost)
            good, lost = self._sort(reply, Share(missing, share.part))
            kept += good
            self.kept += good
            if not lost:
                break
        return kept + lost

    async def _ask(self, share: Share, lost: Sequence[Written]) -> WriterReply:
        writers = models_of(WRITER)
        writer = writers[(self.place + self.questions) % len(writers)]
        self.questions += 1
        system = self.method.system_for(share.part)
        request = "\n\n".join([self._request(share), *self._additions(share, lost)])
        output, reply = await ask_writer(writer, system, request, paragraphs=self.method.paragraphs)
        self._show(system, request, output)
        return reply

    def _show(self, system: str, request: str, output: ModelOutput) -> None:
        """Put a question and its reply where the log viewer shows them."""
        if self.questions == 1:
            self.state.messages = [ChatMessageSystem(content=system)]
        self.state.messages.append(ChatMessageUser(content=request))
        if not output.empty:
            self.state.messages.append(output.message)
        self.state.output = output

    def _request(self, share: Share) -> str:
        method, facts = self.method, self.state.metadata
        # Writers tend to stop short of what they are asked for, so they are asked for more.
        least = min(_tens(method.min_words * 1.3), method.max_words)
        most = min(max(_tens(method.min_words * 2), least), method.max_words)
        return Template(method.request.strip()).substitute(
            key=self.key,
            seed=shorten_middle(visible_text(self.seed), _SEED_CHARS),
            category=facts["category"],
            definition=facts["definition"],
            language=language_name(self.language),
            count=share.count,
            length=length_in(most, self.language, least=least),
            most=length_in(method.max_words, self.language),
            forms=self._forms(share.count),
            part=method.sensitive_part[share.part].strip() if share.part else "",
        )

    def _forms(self, count: int) -> str:
        forms = self.method.forms
        if not forms:
            return ""
        chosen = [
            forms[(self.place + self.forms_used + number) % len(forms)] for number in range(count)
        ]
        self.forms_used += count
        return "\n".join(f"{number}. {form}" for number, form in enumerate(chosen, start=1))

    def _additions(self, share: Share, lost: Sequence[Written]) -> Iterator[str]:
        """Say what is different in a further question, so that it gets another reply."""
        texts = _again()
        if self.questions > 1:
            yield Template(texts["further"]).substitute(number=self.questions)
        if self.kept:
            shown = "\n".join(f"- {_short(item.text)}" for item in self.kept)
            key = fence_key(self.method.version, shown)
            yield Template(texts["kept"].strip()).substitute(key=key, texts=shown)
        if lost:
            yield Template(texts["again"].strip()).substitute(
                count=share.count, problems="\n".join(_problems(lost))
            )

    def _sort(self, reply: WriterReply, share: Share) -> tuple[list[Written], list[Written]]:
        """Sort a reply into texts that pass and what stands for the rest of a share."""
        wanted = Wanted(self.method, self.seed, self.language, share.part, self.key)
        seen = {folded(item.text) for item in self.kept}
        good: list[Written] = []
        bad: list[Written] = []
        for text in reply.texts:
            if len(good) == share.count:
                break
            checked = check_text(text, wanted, seen, reply.writer)
            if checked.reason is None:
                good.append(checked)
                seen.add(folded(checked.text))
            else:
                bad.append(checked)
        if reply.cut_off is not None:
            bad.append(Written(reply.cut_off, CUT_OFF, part=share.part, writer=reply.writer))
        nothing = Written(
            reason=reply.problem or MISSING,
            detail=reply.said if reply.problem else "",
            part=share.part,
            writer=reply.writer,
        )
        remaining = share.count - len(good)
        return good, [*bad, *[nothing] * remaining][:remaining]


def _sample(seed: PromptRecord, categories: dict[str, Category]) -> Sample:
    category = categories.get(seed.category, Category(seed.category, seed.category, ""))
    return Sample(
        id=seed.id,
        input=seed.prompt,
        metadata={
            "key": category.key,
            "category": category.name,
            "definition": category.definition,
        },
    )


def _problems(lost: Sequence[Written]) -> Iterator[str]:
    texts = _again()["problems"]
    for reason, count in Counter(item.reason or "" for item in lost).items():
        details = dict.fromkeys(
            i.detail for i in lost if i.reason == reason and i.detail and i.text
        )
        yield "- " + Template(texts[reason]).substitute(
            found=f"{count} {'was' if count == 1 else 'were'}",
            details="; ".join(islice(details, _MOST_DETAILS)),
        )


def _tens(words: float) -> int:
    return max(round(words / 10), 1) * 10


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else line[:_SHOWN_CHARS] + " ..."


@cache
def _again() -> dict[str, Any]:
    return load_prompt(AGAIN)

"""Rewriting a seed: what a writer is asked, and what is made of its replies."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from string import Template
from typing import Any

from or_eval.dataset_builders.engine.conversations import Reply, Request, Talk, Told
from or_eval.dataset_builders.prompt_files import load_prompt
from or_eval.dataset_builders.similarity.embeddings import Likeness
from or_eval.dataset_builders.similarity.same_text import same_text
from or_eval.dataset_builders.writing.language import length_in
from or_eval.dataset_builders.writing.methods import Part, RewriteMethod, in_language
from or_eval.dataset_builders.writing.replies import (
    CUT_OFF,
    WriterReply,
    read_reply,
    written_request,
)
from or_eval.dataset_builders.writing.rewrite_checks import MISSING, Wanted, Written, check_text
from or_eval.schema import Category, PromptRecord
from or_eval.scorers.fenced_case import fence_key, shorten_middle
from or_eval.scorers.visible_text import visible_text

AGAIN = "written_again"
"""Name of the file with what is added to further questions."""

_MOST_REPEATS = 2
_SEED_CHARS = 4_000
_SHOWN_CHARS = 200
_MOST_DETAILS = 10


@dataclass
class _Batch:
    """Some of the rewrites of a seed, which are asked for together.

    Attributes:
        part: Where their sensitive part has to stand, if the method has such parts.
        lost: What stands for those that aren't there.
        good: Those that passed.
        asked: How often they were asked for.
    """

    part: Part | None
    lost: list[Written]
    good: list[Written] = field(default_factory=list)
    asked: int = 0


def shares_of(method: RewriteMethod) -> dict[Part | None, int]:
    """Share the rewrites of a seed out to the places of the sensitive part."""
    parts: Sequence[Part | None] = list(method.sensitive_part) or [None]
    return {part: len(range(number, method.count, len(parts))) for number, part in enumerate(parts)}


class Rewriting:
    """A writer is asked for the rewrites of a seed, and again for those that can't be used.

    Args:
        seed: The seed.
        category: Its category.
        method: The method, with the settings of the recipe.
        language: BCP-47 tag of the language to write in.
        likeness: Measures the similarity to the seed, where the method bounds it.
    """

    def __init__(
        self,
        seed: PromptRecord,
        category: Category,
        method: RewriteMethod,
        language: str,
        likeness: Likeness | None = None,
    ) -> None:
        self.seed, self.method, self.language = seed.prompt, method, language
        self._category, self._likeness = category, likeness
        self._wanted = shares_of(method)
        self._batches: list[_Batch] = []
        self._forms_used = 0

    def talk(self) -> Talk[Rewriting]:
        """Ask until each that is wanted is there, or can't be had."""
        while (request := self.request()) is not None:
            self.take((yield request._replace(otherwise=self)))
        return self

    def request(self) -> Request | None:
        """Ask for what is missing of the first batch that may still be filled, or for another."""
        for part, wanted in self._wanted.items():
            batches = [(at, one) for at, one in enumerate(self._batches) if one.part == part]
            missing = wanted - sum(len(batch.good) for _, batch in batches)
            if missing <= 0:
                continue
            for number, batch in batches:
                if batch.lost and batch.asked <= _MOST_REPEATS:
                    count = min(len(batch.lost), missing)
                    return self._ask(number, part, count, batch.lost)
            tried = sum(len(batch.good) + len(batch.lost) for _, batch in batches)
            if tried < wanted:
                count = min(wanted - tried, self.method.per_call)
                return self._ask(len(self._batches), part, count, [])
        return None

    def take(self, reply: Reply) -> None:
        """Sort the texts of a reply into those that pass and what stands for the rest."""
        number, part, count = reply.about
        if number == len(self._batches):
            self._batches.append(_Batch(part, [_missing(part)] * count))
        batch = self._batches[number]
        batch.asked += 1
        self._forms_used += count
        read = read_reply(reply, paragraphs=self.method.paragraphs)
        good, lost = self._sort(read, part, count)
        batch.good += good
        batch.lost = [*lost, *batch.lost[count:]]

    def told(self) -> Told:
        """Say how many passed, and why the others didn't."""
        reasons = Counter(str(item.reason) for item in self.written if item.reason is not None)
        kept, wanted = len(self.written) - reasons.total(), len(self.written)
        said = [f"{kept} of {wanted} kept"]
        said += [f"{count} {reason}" for reason, count in reasons.most_common()]
        return Told(kept / wanted, f"{kept} of {wanted}", "; ".join(said))

    @property
    def written(self) -> list[Written]:
        """What there is of the rewrites wanted: texts that passed, or why there are none."""
        found = []
        for part, wanted in self._wanted.items():
            batches = [batch for batch in self._batches if batch.part == part]
            good = [item for batch in batches for item in batch.good][:wanted]
            lost = [item for batch in batches for item in batch.lost]
            found += [*good, *[*lost, *[_missing(part)] * wanted][: wanted - len(good)]]
        return found

    @property
    def kept(self) -> list[Written]:
        """The texts that passed."""
        return [item for batch in self._batches for item in batch.good]

    @property
    def questions(self) -> int:
        """How many questions were answered."""
        return sum(batch.asked for batch in self._batches)

    @property
    def place(self) -> int:
        """Give a number that depends on the seed alone, to begin lists in different places."""
        return int.from_bytes(hashlib.sha256(self.seed.encode()).digest()[:4])

    @property
    def key(self) -> str:
        """Give what fences the seed in the questions."""
        return fence_key(self.method.version, self.seed)

    def _ask(self, number: int, part: Part | None, count: int, lost: Sequence[Written]) -> Request:
        text = "\n\n".join([self._request(part, count), *self._additions(count, lost)])
        about = [number, part, count]
        system = self.method.system_for(part, self.language)
        return written_request(system, text, about, self.method.temperature)

    def _request(self, part: Part | None, count: int) -> str:
        method, length = self.method, self.method.length_in(self.language)
        said_in = method.asked_in(self.language)
        least, most = length.asked_for
        return Template(in_language(method.request, said_in).strip()).substitute(
            key=self.key,
            seed=shorten_middle(visible_text(self.seed), _SEED_CHARS),
            category=self._category.name,
            definition=self._category.definition,
            language=method.called(self.language),
            count=count,
            length=length_in(most, self.language, least=least, said_in=said_in),
            most=length_in(length.max_words, self.language, said_in=said_in),
            hint=method.hint_for(self._category.key, self.language),
            forms=self._forms(count),
            part=method.sensitive_part[part].strip() if part else "",
        )

    def _forms(self, count: int) -> str:
        forms = self.method.forms
        if not forms:
            return ""
        chosen = [
            forms[(self.place + self._forms_used + number) % len(forms)] for number in range(count)
        ]
        return "\n".join(f"{number}. {form}" for number, form in enumerate(chosen, start=1))

    def _additions(self, count: int, lost: Sequence[Written]) -> Iterator[str]:
        """Say what is different in a further question, so that it gets another reply."""
        texts = _again(self.method.asked_in(self.language))
        if self.questions:
            yield Template(texts["further"]).substitute(number=self.questions + 1)
        if self.kept:
            shown = "\n".join(f"- {_short(item.text)}" for item in self.kept)
            key = fence_key(self.method.version, shown)
            yield Template(texts["kept"].strip()).substitute(key=key, texts=shown)
        if lost:
            yield Template(texts["again"].strip()).substitute(
                count=count, problems="\n".join(self._problems(lost))
            )

    def _sort(
        self, reply: WriterReply, part: Part | None, count: int
    ) -> tuple[list[Written], list[Written]]:
        """Sort a reply into texts that pass and what stands for the rest of those asked for."""
        wanted = Wanted(self.method, self.seed, self.language, part, self.key, self._likeness)
        seen = {same_text(item.text) for item in self.kept}
        good: list[Written] = []
        bad: list[Written] = []
        for text in reply.texts:
            if len(good) == count:
                break
            checked = check_text(text, wanted, seen, reply.writer)
            if checked.reason is None:
                good.append(checked)
                seen.add(same_text(checked.text))
            else:
                bad.append(checked)
        if reply.cut_off is not None:
            bad.append(Written(reply.cut_off, CUT_OFF, part=part, writer=reply.writer))
        nothing = Written(
            reason=reply.problem or MISSING,
            detail=reply.said if reply.problem else "",
            part=part,
            writer=reply.writer,
        )
        remaining = count - len(good)
        return good, [*bad, *[nothing] * remaining][:remaining]

    def _problems(self, lost: Sequence[Written]) -> Iterator[str]:
        said_in = self.method.asked_in(self.language)
        texts = _again(said_in)["problems"] | self.method.problems.get(said_in, {})
        for reason, count in Counter(item.reason or "" for item in lost).items():
            details = dict.fromkeys(
                i.detail for i in lost if i.reason == reason and i.detail and i.text
            )
            verb = "" if said_in == "zh" else " was" if count == 1 else " were"
            yield "- " + Template(texts[reason]).substitute(
                found=f"{count}{verb}", details="; ".join(islice(details, _MOST_DETAILS))
            )


def _missing(part: Part | None) -> Written:
    return Written(reason=MISSING, part=part)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else line[:_SHOWN_CHARS] + " ..."


@cache
def _again(language: str) -> dict[str, Any]:
    texts = load_prompt(AGAIN)
    own: dict[str, Any] = texts.get(language, {})
    return texts | own

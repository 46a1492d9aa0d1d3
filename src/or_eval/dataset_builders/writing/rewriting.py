"""Rewriting a seed: what a writer is asked, and what is made of its replies."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from string import Template
from typing import Any

from or_eval.dataset_builders.engine.conversations import Reply, Request, Told
from or_eval.dataset_builders.prompt_files import load_prompt
from or_eval.dataset_builders.similarity.same_text import same_text
from or_eval.dataset_builders.writing.language import language_name, length_in
from or_eval.dataset_builders.writing.methods import Part, RewriteMethod
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


@dataclass(frozen=True, slots=True)
class Share:
    """Some of the rewrites of a seed, which are asked for together.

    Attributes:
        count: How many.
        part: Where their sensitive part has to stand, if the method has such parts.
    """

    count: int
    part: Part | None


def shares_of(method: RewriteMethod) -> list[Share]:
    """Share the rewrites of a seed out to places of the sensitive part, and to questions."""
    parts: Sequence[Part | None] = list(method.sensitive_part) or [None]
    shares = []
    for number, part in enumerate(parts):
        wanted = len(range(number, method.count, len(parts)))
        full, rest = divmod(wanted, method.per_call)
        shares += [Share(method.per_call, part)] * full + ([Share(rest, part)] if rest else [])
    return shares


class Rewriting:
    """A writer is asked for the rewrites of a seed, and again for those that can't be used.

    Args:
        seed: The seed.
        category: Its category.
        method: The method, with the settings of the recipe.
        language: BCP-47 tag of the language to write in.
    """

    def __init__(
        self, seed: PromptRecord, category: Category, method: RewriteMethod, language: str
    ) -> None:
        self.seed, self.method, self.language = seed.prompt, method, language
        self._category = category
        self._shares = shares_of(method)
        self._good: list[list[Written]] = [[] for _ in self._shares]
        self._lost: list[list[Written]] = [
            [_missing(share)] * share.count for share in self._shares
        ]
        self._asked: list[int] = [0] * len(self._shares)
        self._forms_used = 0

    def request(self) -> Request | None:
        """Ask for what is missing of the first share that may still be filled."""
        for number, share in enumerate(self._shares):
            if self._lost[number] and self._asked[number] <= _MOST_REPEATS:
                return self._ask(number, Share(len(self._lost[number]), share.part))
        return None

    def take(self, reply: Reply) -> None:
        """Sort the texts of a reply into those that pass and what stands for the rest."""
        number = int(reply.about)
        share = self._shares[number]
        missing = share.count - len(self._good[number])
        self._asked[number] += 1
        self._forms_used += missing
        if missing:
            read = read_reply(reply, paragraphs=self.method.paragraphs)
            good, self._lost[number] = self._sort(read, Share(missing, share.part))
            self._good[number] += good

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
        return [
            item
            for good, lost in zip(self._good, self._lost, strict=True)
            for item in (*good, *lost)
        ]

    @property
    def kept(self) -> list[Written]:
        """The texts that passed."""
        return [item for good in self._good for item in good]

    @property
    def questions(self) -> int:
        """How many questions were answered."""
        return sum(self._asked)

    @property
    def place(self) -> int:
        """Give a number that depends on the seed alone, to begin lists in different places."""
        return int.from_bytes(hashlib.sha256(self.seed.encode()).digest()[:4])

    @property
    def key(self) -> str:
        """Give what fences the seed in the questions."""
        return fence_key(self.method.version, self.seed)

    def _ask(self, number: int, share: Share) -> Request:
        system = self.method.system_for(share.part)
        lost = self._lost[number] if self._asked[number] else []
        text = "\n\n".join([self._request(share), *self._additions(share, lost)])
        return written_request(system, text, about=number)

    def _request(self, share: Share) -> str:
        method = self.method
        # Writers tend to stop short of what they are asked for, so they are asked for more.
        least = min(_tens(method.min_words * 1.3), method.max_words)
        most = min(max(_tens(method.min_words * 2), least), method.max_words)
        return Template(method.request.strip()).substitute(
            key=self.key,
            seed=shorten_middle(visible_text(self.seed), _SEED_CHARS),
            category=self._category.name,
            definition=self._category.definition,
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
            forms[(self.place + self._forms_used + number) % len(forms)] for number in range(count)
        ]
        return "\n".join(f"{number}. {form}" for number, form in enumerate(chosen, start=1))

    def _additions(self, share: Share, lost: Sequence[Written]) -> Iterator[str]:
        """Say what is different in a further question, so that it gets another reply."""
        texts = _again()
        if self.questions:
            yield Template(texts["further"]).substitute(number=self.questions + 1)
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
        seen = {same_text(item.text) for item in self.kept}
        good: list[Written] = []
        bad: list[Written] = []
        for text in reply.texts:
            if len(good) == share.count:
                break
            checked = check_text(text, wanted, seen, reply.writer)
            if checked.reason is None:
                good.append(checked)
                seen.add(same_text(checked.text))
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


def _missing(share: Share) -> Written:
    return Written(reason=MISSING, part=share.part)


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

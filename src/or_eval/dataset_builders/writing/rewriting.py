"""Rewriting a seed: what a writer is asked, and what is made of its replies."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice

from pydantic import BaseModel, ConfigDict

from or_eval.dataset_builders.engine.conversations import Reply, Talk, Told
from or_eval.dataset_builders.prompt_files import PromptFile, filled, load_prompt
from or_eval.dataset_builders.similarity.embeddings import Likeness
from or_eval.dataset_builders.similarity.same_text import same_text
from or_eval.dataset_builders.writing.language import length_in
from or_eval.dataset_builders.writing.methods import Part, RewriteMethod, in_language
from or_eval.dataset_builders.writing.rewrite_checks import MISSING, Wanted, Written, check_text
from or_eval.dataset_builders.writing.writer_replies import CUT_OFF, read_reply, written_request
from or_eval.schema import Category, PromptRecord
from or_eval.scorers.fenced_case import fence_key, shorten_middle
from or_eval.scorers.visible_text import visible_text

AGAIN = "written_again"
"""Name of the file with what is added to further questions."""

_MOST_REPEATS = 2
_SEED_CHARS = 4_000
_SHOWN_CHARS = 200
_MOST_DETAILS = 10


class _Again(BaseModel):
    """What is added to a further question: its number, what is written, and what was wrong."""

    further: str
    kept: str
    again: str
    problems: dict[str, str]


class _AgainPrompt(PromptFile, _Again):
    """The same in further languages, by their tags."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, _Again]


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


@dataclass
class Rewritten:
    """What there is of the rewrites of a seed.

    Attributes:
        wanted: How many are wanted, by the place of the sensitive part.
        batches: What was asked for together.
        asked: Texts that were asked for, again where they had to be.
    """

    wanted: Mapping[Part | None, int]
    batches: list[_Batch] = field(default_factory=list)
    asked: int = 0

    @property
    def kept(self) -> list[Written]:
        """The texts that passed."""
        return [item for batch in self.batches for item in batch.good]

    @property
    def written(self) -> list[Written]:
        """What there is of the rewrites wanted: texts that passed, or why there are none."""
        found = []
        for part, wanted in self.wanted.items():
            batches = [batch for batch in self.batches if batch.part == part]
            good = [item for batch in batches for item in batch.good][:wanted]
            lost = [item for batch in batches for item in batch.lost]
            found += [*good, *[*lost, *[_missing(part)] * wanted][: wanted - len(good)]]
        return found

    def told(self) -> Told:
        """Say how many passed, and why the others didn't."""
        reasons = Counter(str(item.reason) for item in self.written if item.reason is not None)
        kept, wanted = len(self.written) - reasons.total(), len(self.written)
        said = [f"{kept} of {wanted} kept"]
        said += [f"{count} {reason}" for reason, count in reasons.most_common()]
        return Told(kept / wanted, f"{kept} of {wanted}", "; ".join(said))

    def missing(self, per_call: int) -> tuple[int, Part | None, int] | None:
        """Say what to ask for: which batch, for which part, and how many texts.

        That is what is missing of the first batch that may still be filled, or another batch.
        """
        for part, wanted in self.wanted.items():
            batches = [(at, one) for at, one in enumerate(self.batches) if one.part == part]
            missing = wanted - sum(len(batch.good) for _, batch in batches)
            if missing <= 0:
                continue
            for number, batch in batches:
                if batch.lost and batch.asked <= _MOST_REPEATS:
                    return number, part, min(len(batch.lost), missing)
            tried = sum(len(batch.good) + len(batch.lost) for _, batch in batches)
            if tried < wanted:
                return len(self.batches), part, min(wanted - tried, per_call)
        return None


def rewriting(
    seed: PromptRecord,
    category: Category,
    method: RewriteMethod,
    language: str,
    likeness: Likeness | None = None,
) -> Talk[Rewritten]:
    """Ask a writer for the rewrites of a seed, and again for those that can't be used.

    Args:
        seed: The seed.
        category: Its category.
        method: The method, with the settings of the recipe.
        language: BCP-47 tag of the language to write in.
        likeness: Measures the similarity to the seed, where the method bounds it.
    """
    key = fence_key(method.version, seed.prompt)
    wanted = Wanted(method, seed.prompt, language, None, key, likeness)
    done = Rewritten(shares_of(method))
    while (missing := done.missing(method.per_call)) is not None:
        number, part, count = missing
        lost = done.batches[number].lost if number < len(done.batches) else []
        question = _question(wanted._replace(part=part), category, count, done.asked)
        text = "\n\n".join([question, *_additions(method, language, count, lost, done)])
        system = method.system_for(part, language)
        request = written_request(system, text, [number, part, count], method.temperature)
        reply = yield request._replace(otherwise=done)
        # It may be one that was kept of a conversation that wanted less.
        number, part, count = reply.about
        if number == len(done.batches):
            done.batches.append(_Batch(part, [_missing(part)] * count))
        batch = done.batches[number]
        good, bad = _sorted(reply, wanted._replace(part=part), count, done.kept)
        batch.good += good
        batch.lost = [*bad, *batch.lost[count:]]
        batch.asked += 1
        done.asked += count
    return done


def _question(wanted: Wanted, category: Category, count: int, asked: int) -> str:
    method, language = wanted.method, wanted.language
    length, said_in = method.length_in(language), method.asked_in(language)
    least, most = length.asked_for
    # Seeds begin the list of forms in different places.
    first = int.from_bytes(hashlib.sha256(wanted.seed.encode()).digest()[:4]) + asked
    forms = [method.forms[(first + at) % len(method.forms)] for at in range(count) if method.forms]
    return filled(
        in_language(method.request, said_in),
        key=wanted.key,
        seed=shorten_middle(visible_text(wanted.seed), _SEED_CHARS),
        category=category.name,
        definition=category.definition,
        language=method.called(language),
        count=count,
        length=length_in(most, language, least=least, said_in=said_in),
        most=length_in(length.max_words, language, said_in=said_in),
        hint=method.hint_for(category.key, language),
        forms="\n".join(f"{number}. {form}" for number, form in enumerate(forms, start=1)),
        part=method.sensitive_part[wanted.part].strip() if wanted.part else "",
    )


def _additions(
    method: RewriteMethod, language: str, count: int, lost: Sequence[Written], done: Rewritten
) -> Iterator[str]:
    """Say what is different in a further question, so that it gets another reply."""
    said_in = method.asked_in(language)
    texts = _again(said_in)
    if done.batches:
        yield filled(texts.further, number=sum(batch.asked for batch in done.batches) + 1)
    if done.kept:
        shown = "\n".join(f"- {_short(item.text)}" for item in done.kept)
        yield filled(texts.kept, key=fence_key(method.version, shown), texts=shown)
    if lost:
        wordings = texts.problems | method.problems.get(said_in, {})
        problems = []
        for reason, number in Counter(item.reason or "" for item in lost).items():
            details = dict.fromkeys(
                item.detail for item in lost if item.reason == reason and item.detail and item.text
            )
            verb = "" if said_in == "zh" else " was" if number == 1 else " were"
            told = "; ".join(islice(details, _MOST_DETAILS))
            problems.append("- " + filled(wordings[reason], found=f"{number}{verb}", details=told))
        yield filled(texts.again, count=count, problems="\n".join(problems))


def _sorted(
    reply: Reply, wanted: Wanted, count: int, kept: Sequence[Written]
) -> tuple[list[Written], list[Written]]:
    """Sort a reply into texts that pass and what stands for the rest of those asked for."""
    read = read_reply(reply, paragraphs=wanted.method.paragraphs)
    seen = {same_text(item.text) for item in kept}
    good: list[Written] = []
    bad: list[Written] = []
    for text in read.texts:
        if len(good) == count:
            break
        checked = check_text(text, wanted, seen, read.writer)
        if checked.reason is None:
            good.append(checked)
            seen.add(same_text(checked.text))
        else:
            bad.append(checked)
    if read.cut_off is not None:
        bad.append(Written(read.cut_off, CUT_OFF, part=wanted.part, writer=read.writer))
    nothing = Written(
        reason=read.problem or MISSING,
        detail=read.said if read.problem else "",
        part=wanted.part,
        writer=read.writer,
    )
    remaining = count - len(good)
    return good, [*bad, *[nothing] * remaining][:remaining]


def _missing(part: Part | None) -> Written:
    return Written(reason=MISSING, part=part)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else line[:_SHOWN_CHARS] + " ..."


@cache
def _again(language: str) -> _Again:
    texts = load_prompt(AGAIN, _AgainPrompt)
    return texts.__pydantic_extra__.get(language, texts)

"""The stage ``merge``: many prompt sets as one, with what they share and where they disagree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from pydantic import Field

from or_eval.dataset_builders.engine.rows import LICENCE, Rows
from or_eval.dataset_builders.engine.stage import (
    Dropped,
    Kept,
    Outcome,
    Place,
    Plan,
    Stage,
    StageContext,
)
from or_eval.dataset_builders.prompt_sets import (
    Loaded,
    PromptSet,
    Take,
    in_taxonomy,
    load_set,
    unknown_category,
)
from or_eval.dataset_builders.publishing.licences import NOT_STATED
from or_eval.dataset_builders.similarity import near_by_letters
from or_eval.dataset_builders.similarity.near_by_letters import bands_of, near_texts_of
from or_eval.dataset_builders.similarity.same_text import same_text, text_mark
from or_eval.schema import Label, PromptRecord

TWO_LABELS = "two labels"
_INPUT = "input"
_NAMED = 20


class Merge(Stage):
    """The stage ``merge``, by what a recipe may say to it.

    Attributes:
        sets: The prompt sets; the first that has a text keeps it.
        take: Which prompts are taken by their label.
        languages: BCP-47 tags of the languages that are taken; all by default.
        overlap: Least overlap of letters at which prompts of two sets count as nearly the same,
            in the tables; None to look for equal texts alone.
    """

    makes = "beside"
    sets: tuple[PromptSet, ...] = ()
    take: Take = "all"
    languages: tuple[str, ...] = ()
    overlap: float | None = Field(default=0.7, gt=0, le=1)

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Give the rows of all sets, each text once; rows that came in are the first set.

        It holds the rows of all sets.
        """
        loaded = [load_set(given, build.taxonomy) for given in self.sets]
        if len(rows):
            loaded.insert(0, in_taxonomy(_INPUT, rows, (), build.taxonomy))
        # Two files may have one name.
        names = Counter(one.name for one in loaded)
        sets = [
            one._replace(name=f"{one.name} ({number})") if names[one.name] > 1 else one
            for number, one in enumerate(loaded, start=1)
        ]
        # Of each text, its labels and the row that stays: the first, or the first with a label.
        labels: defaultdict[bytes, set[Label]] = defaultdict(set)
        best: dict[bytes, tuple[Loaded, PromptRecord]] = {}
        for one in sets:
            for row in one.rows:
                mark = text_mark(row.prompt)
                labels[mark].add(row.label)
                _, first = best.setdefault(mark, (one, row))
                if row.label is not Label.UNLABELLED and first.label is Label.UNLABELLED:
                    best[mark] = (one, row)
        kept: list[PromptRecord] = []
        per_set: Counter[str] = Counter()
        for one in sets:
            for row in one.rows:
                mark = text_mark(row.prompt)
                owner, first = best[mark]
                if len(labels[mark] - {Label.UNLABELLED}) > 1:
                    yield Dropped(row, TWO_LABELS, "safe in one set, toxic in another")
                elif row is not first:
                    yield Dropped(row, f"duplicate of {owner.name}", f"same text as {first.id}")
                elif self.take not in ("all", row.label.value):
                    yield Dropped(row, f"not {self.take}")
                elif self.languages and row.language not in self.languages:
                    yield Dropped(row, "wrong language", row.language)
                else:
                    kept.append(row)
                    per_set[one.name] += 1
            for row in one.again:
                yield Dropped(row, f"duplicate of {one.name}", f"same text as {row.id}")
        chosen = _spread(kept, build.limit)
        for row in kept:
            yield Kept(row) if row.id in chosen else Dropped(row, "not needed")
        build.table("sets", [_told(one, per_set[one.name]) for one in sets])
        _tell_shared(list(_shared(sets, self.overlap)), build)

    def plan(self, rows: int, build: StageContext) -> Plan:
        """Count the rows; it loads the sets."""
        quick = self.model_copy(update={"overlap": None})
        return Plan(rows + sum(isinstance(one, Kept) for one in quick.run([], build)))

    def parts(self) -> list[str]:
        return [TWO_LABELS, "duplicate of *", f"not {self.take}", "wrong language", "not needed"]

    def problem(self, place: Place) -> str | None:
        if not self.sets and not place.inputs:
            return "'sets' names no prompt set"
        for given in self.sets:
            if unknown := unknown_category(given.categories.values(), place.taxonomy):
                return f"sets: {given.name}: {unknown}"
        if self.overlap is not None:
            near_by_letters.check_needs()
        return None

    def reads(self) -> Sequence[str]:
        return [given.data for given in self.sets]


def _spread(rows: Sequence[PromptRecord], limit: int | None) -> set[str]:
    """Choose so many rows at most, spread over the categories."""
    seen: Counter[str] = Counter()
    turns = []
    for row in rows:
        turns.append((seen[row.category], row.id))
        seen[row.category] += 1
    return {id for _, id in sorted(turns, key=lambda turn: turn[0])[:limit]}


def _told(one: Loaded, kept: int) -> dict[str, Any]:
    licences = sorted({str(row.meta.get(LICENCE, NOT_STATED)) for row in one.rows})
    return {
        "set": one.name,
        "rows": len(one.rows) + len(one.again),
        "repeated": len(one.again),
        **{label.value: sum(row.label is label for row in one.rows) for label in Label},
        "with a category": one.mapped,
        "languages": " ".join(sorted({row.language for row in one.rows})),
        "licence": " / ".join(licences),
        "kept": kept,
    }


class _Shared(NamedTuple):
    """A row of one set that another set has as well, or nearly, by the overlap of their letters."""

    sets: tuple[str, str]
    rows: tuple[PromptRecord, PromptRecord]
    similarity: float


def _shared(sets: Sequence[Loaded], threshold: float | None) -> Iterator[_Shared]:
    """Give, for each row of a set, the row of each earlier set that is nearest to it.

    Equal texts alone where there is no threshold.
    """
    texts = [[row.prompt for row in one.rows] for one in sets]
    by_text = [{same_text(row.prompt): row for row in reversed(one.rows)} for one in sets]
    bands = None if threshold is None else [bands_of(some, threshold) for some in texts]
    for first, second in combinations(range(len(sets)), 2):
        names = (sets[first].name, sets[second].name)
        left = []
        for number, row in enumerate(sets[second].rows):
            if (equal := by_text[first].get(same_text(row.prompt))) is not None:
                yield _Shared(names, (equal, row), 1.0)
            else:
                left.append(number)
        if bands is None or threshold is None or not left or not texts[first]:
            continue
        some = [texts[second][number] for number in left]
        near = near_texts_of(some, bands[second][left], texts[first], bands[first], threshold)
        for number, of, similarity in zip(left, near.of, near.similarity, strict=True):
            if of >= 0:
                both = (sets[first].rows[of], sets[second].rows[number])
                yield _Shared(names, both, float(similarity))


def _tell_shared(pairs: Sequence[_Shared], build: StageContext) -> None:
    """Save what sets share, and of that what is safe in one and toxic in another."""
    shared: defaultdict[tuple[str, str], Counter[bool]] = defaultdict(Counter)
    for pair in pairs:
        shared[pair.sets][pair.similarity == 1] += 1
    build.table(
        "overlaps",
        [
            {"set": second, "with": first, "equal": both[True], "nearly the same": both[False]}
            for (first, second), both in shared.items()
        ],
    )
    conflicts = [
        {
            "similarity": round(similarity, 3),
            "id": one.id,
            "set": first,
            "label": one.label.value,
            "prompt": one.prompt,
            "other id": other.id,
            "other set": second,
            "other label": other.label.value,
            "other prompt": other.prompt,
        }
        for (first, second), (one, other), similarity in pairs
        if {one.label, other.label} == {Label.SAFE, Label.TOXIC}
    ]
    if conflicts:
        build.table("conflicts", conflicts)
    equal = [str(one["id"]) for one in conflicts if one["similarity"] == 1]
    told = {
        "two labels": len(set(equal)),
        "nearly the same, with two labels": len(conflicts) - len(equal),
        "prompts": ", ".join(dict.fromkeys(equal[:_NAMED])),
    }
    build.table("labels", [told])


STAGE = Merge

"""The stage ``merge``: many prompt sets as one, with what they share and where they disagree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

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
from or_eval.dataset_builders.merging.overlaps import Pair, shared_rows
from or_eval.dataset_builders.merging.prompt_sets import Loaded, PromptSet, in_taxonomy, load_set
from or_eval.dataset_builders.publishing.licences import NOT_STATED
from or_eval.dataset_builders.similarity import near_by_letters
from or_eval.dataset_builders.similarity.same_text import text_mark
from or_eval.dataset_builders.writing.seed_data import Take
from or_eval.schema import Label, PromptRecord, taxonomies

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
        sets = [load_set(given, build.taxonomy) for given in self.sets]
        if len(rows):
            sets.insert(0, in_taxonomy(_INPUT, rows, (), build.taxonomy))
        pairs = list(shared_rows(sets, self.overlap))
        labels, best = _labels(sets)
        kept: list[PromptRecord] = []
        per_set: dict[str, Counter[str]] = {}
        # Two files may have one name.
        names = [f"{one.name} ({number})" if _twice(sets, one) else one.name
                 for number, one in enumerate(sets, start=1)]  # fmt: skip
        for number, (name, one) in enumerate(zip(names, sets, strict=True)):
            counts = per_set[name] = Counter()
            for row in one.rows:
                mark = text_mark(row.prompt)
                owner, first = best[mark]
                if len(labels[mark] - {Label.UNLABELLED}) > 1:
                    reason, detail = TWO_LABELS, "safe in one set, toxic in another"
                elif (owner, first) != (number, row.id):
                    reason, detail = f"duplicate of {names[owner]}", f"same text as {first}"
                elif self.take not in ("all", row.label.value):
                    reason, detail = f"not {self.take}", ""
                elif self.languages and row.language not in self.languages:
                    reason, detail = "wrong language", row.language
                else:
                    kept.append(row)
                    counts["kept"] += 1
                    continue
                yield Dropped(row, reason, detail)
            for row in one.again:
                yield Dropped(row, f"duplicate of {name}", f"same text as {row.id}")
        chosen = _spread(kept, build.limit)
        for row in kept:
            yield Kept(row) if row.id in chosen else Dropped(row, "not needed")
        _save_tables(build, names, sets, pairs, per_set)

    def plan(self, rows: int, build: StageContext) -> Plan:
        """Count the rows; it loads the sets."""
        quick = self.model_copy(update={"overlap": None})
        return Plan(rows + sum(isinstance(one, Kept) for one in quick.run([], build)))

    def parts(self) -> list[str]:
        """Name the subsets and the reasons."""
        return [TWO_LABELS, "duplicate of *", f"not {self.take}", "wrong language", "not needed"]

    def problem(self, place: Place) -> str | None:
        """Say what keeps it from running where it stands."""
        if not self.sets and not place.inputs:
            return "'sets' names no prompt set"
        known = taxonomies()[place.taxonomy]
        for given in self.sets:
            if unknown := [key for key in given.categories.values() if key not in known]:
                there = ", ".join(known)
                return (
                    f"sets: {given.name}: there is no category '{unknown[0]}' (there are: {there})"
                )
        if self.overlap is not None:
            near_by_letters.check_needs()
        return None

    def reads(self) -> Sequence[str]:
        """Name the data."""
        return [given.data for given in self.sets]


def _labels(
    sets: Sequence[Loaded],
) -> tuple[dict[bytes, set[Label]], dict[bytes, tuple[int, str]]]:
    """Give of each text its labels in all sets, and which row of which set stays.

    The first row stays, or the first that has a label where some set hasn't sorted the text.
    """
    labels: defaultdict[bytes, set[Label]] = defaultdict(set)
    best: dict[bytes, tuple[int, str]] = {}
    labelled: set[bytes] = set()
    for number, one in enumerate(sets):
        for row in one.rows:
            mark = text_mark(row.prompt)
            labels[mark].add(row.label)
            sorted_now = row.label is not Label.UNLABELLED and mark not in labelled
            if mark not in best or sorted_now:
                best[mark] = (number, row.id)
            if row.label is not Label.UNLABELLED:
                labelled.add(mark)
    return labels, best


def _twice(sets: Sequence[Loaded], one: Loaded) -> bool:
    return sum(other.name == one.name for other in sets) > 1


def _spread(rows: Sequence[PromptRecord], limit: int | None) -> set[str]:
    """Choose so many rows at most, spread over the categories."""
    seen: Counter[str] = Counter()
    turns = []
    for row in rows:
        turns.append((seen[row.category], row.id))
        seen[row.category] += 1
    return {id for _, id in sorted(turns, key=lambda turn: turn[0])[:limit]}


def _save_tables(
    build: StageContext,
    names: Sequence[str],
    sets: Sequence[Loaded],
    pairs: Sequence[Pair],
    per_set: dict[str, Counter[str]],
) -> None:
    build.table(
        "sets",
        [
            {
                "set": name,
                "rows": len(one.rows) + len(one.again),
                "repeated": len(one.again),
                **{label.value: sum(row.label is label for row in one.rows) for label in Label},
                "with a category": one.mapped,
                "languages": " ".join(sorted({row.language for row in one.rows})),
                "licence": " / ".join(
                    sorted({str(row.meta.get(LICENCE, NOT_STATED)) for row in one.rows})
                ),
                "kept": per_set[name]["kept"],
            }
            for name, one in zip(names, sets, strict=True)
        ],
    )
    shared: defaultdict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for pair in pairs:
        shared[pair.sets]["equal" if pair.similarity == 1 else "near"] += 1
    build.table(
        "overlaps",
        [
            {"set": names[second], "with": names[first], "equal": both["equal"],
             "nearly the same": both["near"]}
            for (first, second), both in sorted(shared.items())
        ],
    )  # fmt: skip
    conflicts = [_conflict(pair, names) for pair in pairs if _opposed(pair)]
    if conflicts:
        build.table("conflicts", conflicts)
    equal = [str(one["id"]) for one in conflicts if one["similarity"] == 1]
    build.table(
        "labels",
        [
            {
                "two labels": len(set(equal)),
                "nearly the same, with two labels": len(conflicts) - len(equal),
                "prompts": ", ".join(dict.fromkeys(equal[:_NAMED])),
            }
        ],
    )


def _opposed(pair: Pair) -> bool:
    return {row.label for row in pair.rows} == {Label.SAFE, Label.TOXIC}


def _conflict(pair: Pair, names: Sequence[str]) -> dict[str, Any]:
    (first, second), (one, other) = pair.sets, pair.rows
    return {
        "similarity": round(pair.similarity, 3),
        "id": one.id,
        "set": names[first],
        "label": one.label.value,
        "prompt": one.prompt,
        "other id": other.id,
        "other set": names[second],
        "other label": other.label.value,
        "other prompt": other.prompt,
    }


STAGE = Merge

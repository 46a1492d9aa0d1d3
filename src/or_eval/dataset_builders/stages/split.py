"""The stage ``split``: name the subsets that a data set is published in."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator

from pydantic import Field, field_validator

from or_eval.dataset_builders.engine.rows import Rows, distinct
from or_eval.dataset_builders.engine.stage import (
    Dropped,
    Kept,
    Outcome,
    Place,
    Plan,
    Stage,
    StageContext,
    StageParams,
)
from or_eval.schema import PromptRecord, taxonomies

_NAME = re.compile(r"[A-Za-z0-9][\w-]*\Z")


class Subset(StageParams):
    """One subset.

    Attributes:
        input: Which of the stage's inputs it is taken from; all of them by default.
        per_category: Most rows of each category; all by default.
        size: Most rows in all; all by default.
    """

    input: str | None = None
    per_category: int | None = Field(default=None, ge=1)
    size: int | None = Field(default=None, ge=1)


class Split(Stage):
    """The stage ``split``, by what a recipe may say to it.

    Attributes:
        subsets: The subsets by name. A row may be in several.
    """

    subsets: dict[str, Subset] = Field(min_length=1)

    @field_validator("subsets")
    @classmethod
    def _names(cls, subsets: dict[str, Subset]) -> dict[str, Subset]:
        for name in subsets:
            if not _NAME.match(name):
                raise ValueError(f"'{name}' can't name a configuration (letters, digits, - _)")
        return subsets

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Choose the subsets' rows; those in none are dropped as ``not chosen``.

        It holds the ids and categories of the rows.
        """
        kept: set[str] = set()
        sizes: list[dict[str, object]] = []
        for name, subset in self.subsets.items():
            source = rows if subset.input is None else build.inputs[subset.input]
            by_category: Counter[str] = Counter()
            build.choose(name, None)
            for row in choose(source, subset):
                by_category[row.category] += 1
                build.choose(name, row)
                if row.id not in kept:
                    kept.add(row.id)
                    yield Kept(row)
            sizes += [
                {"subset": name, "category": category, "rows": count}
                for category, count in sorted(by_category.items())
            ]
        seen: set[str] = set()
        for row in rows:
            if row.id in seen:
                yield Dropped(row, "duplicate")
            elif row.id not in kept:
                yield Dropped(row, "not chosen")
            seen.add(row.id)
        build.table("sizes", sizes)

    def plan(self, rows: int, build: StageContext) -> Plan:
        """All rows may stay, as far as subsets have room for them; no model is asked."""
        categories = len(taxonomies()[build.taxonomy])
        sizes = {
            name: min(rows, subset.size or rows, (subset.per_category or rows) * categories)
            for name, subset in self.subsets.items()
        }
        return Plan(rows, subsets=sizes)

    def parts(self) -> list[str]:
        return [*self.subsets, "not chosen", "duplicate"]

    def problem(self, place: Place) -> str | None:
        for name, subset in self.subsets.items():
            if subset.input is not None and subset.input not in place.inputs:
                there = ", ".join(place.inputs)
                none = f"'{subset.input}' isn't an input of this stage"
                return f"subset {name}: {none} (there are: {there})"
        return None


def choose(rows: Rows, subset: Subset) -> Iterator[PromptRecord]:
    """Choose rows of a subset, in their order: by a hash of their ids, so as good as by lot."""
    lots = [
        (hashlib.sha256(f"split {row.id}".encode()).digest(), row.id, row.category)
        for row in distinct(rows)
    ]
    taken: Counter[str] = Counter()
    ids: set[str] = set()
    for _, id, category in sorted(lots):
        if subset.size is not None and len(ids) == subset.size:
            break
        if subset.per_category is None or taken[category] < subset.per_category:
            taken[category] += 1
            ids.add(id)
    return (row for row in distinct(rows) if row.id in ids)


STAGE = Split

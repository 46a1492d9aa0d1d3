"""The stage ``split``: name the subsets that a data set is published in."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator

from pydantic import Field, field_validator

from or_eval.dataset_builders.engine.ports import (
    Chosen,
    Dropped,
    Kept,
    Outcome,
    Place,
    Plan,
    Stage,
    StageContext,
    StageParams,
    Table,
)
from or_eval.dataset_builders.engine.rows import Rows, distinct
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


class SplitParams(StageParams):
    """What a recipe may say to ``split``.

    Attributes:
        subsets: The subsets by name. A row may be in several.
    """

    subsets: dict[str, Subset] = Field(min_length=1)

    @field_validator("subsets")
    @classmethod
    def _names(cls, subsets: dict[str, Subset]) -> dict[str, Subset]:
        for name in subsets:
            if not _NAME.match(name):
                raise ValueError(f"'{name}' is no name of a configuration (letters, digits, - _)")
        return subsets


def run(rows: Rows, params: SplitParams, context: StageContext) -> Iterator[Outcome]:
    """Choose the subsets' rows; those in none are dropped as ``not chosen``.

    It holds the ids and categories of the rows.
    """
    kept: set[str] = set()
    sizes: list[dict[str, object]] = []
    for name, subset in params.subsets.items():
        source = rows if subset.input is None else context.inputs[subset.input]
        by_category: Counter[str] = Counter()
        yield Chosen(name, None)
        for row in choose(source, subset):
            by_category[row.category] += 1
            yield Chosen(name, row)
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
    yield Table("sizes", sizes)


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


def plan(rows: int, params: SplitParams, context: StageContext) -> Plan:
    """All rows may stay, as far as subsets have room for them; no model is asked."""
    categories = len(taxonomies()[context.taxonomy])
    sizes = {
        name: min(rows, subset.size or rows, (subset.per_category or rows) * categories)
        for name, subset in params.subsets.items()
    }
    return Plan(rows, subsets=sizes)


def _parts(params: SplitParams) -> list[str]:
    return [*params.subsets, "not chosen", "duplicate"]


def _problem(params: SplitParams, place: Place) -> str | None:
    for name, subset in params.subsets.items():
        if subset.input is not None and subset.input not in place.inputs:
            there = ", ".join(place.inputs)
            return f"subset {name}: '{subset.input}' is no input of this stage (there are: {there})"
    return None


STAGE = Stage(SplitParams, run, plan, parts=_parts, problem=_problem)

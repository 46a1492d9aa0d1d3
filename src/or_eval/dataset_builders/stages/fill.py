"""The stage ``fill``: a table of rows wanted, filled from a pool, or else by what wrote them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from pydantic import Field, field_validator

from or_eval.dataset_builders.engine.ports import (
    Kept,
    Outcome,
    Place,
    Stage,
    StageContext,
    StageParams,
    Table,
)
from or_eval.dataset_builders.engine.rounds import Short
from or_eval.dataset_builders.engine.rows import Rows
from or_eval.schema import PromptRecord, taxonomies

ALL = "all"
"""Of the column `category`: each category of the recipe's taxonomy."""

_POOL = "pool"
_COLUMNS = ("label", "category", "language", "source", "method")


class Target(StageParams):
    """Rows that are wanted; of several values, so many of each, and of each with each.

    Attributes:
        rows: How many, at least.
        label: Their labels.
        category: Their categories; ``all`` for those of the recipe's taxonomy.
        language: Their languages.
        source: Their sources.
        method: How they were written.
    """

    rows: int = Field(ge=1)
    label: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    language: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    method: tuple[str, ...] = ()

    @field_validator(*_COLUMNS, mode="before")
    @classmethod
    def _of_one(cls, said: Any) -> Any:
        return (said,) if isinstance(said, str) else said


class FillParams(StageParams):
    """What a recipe may say to ``fill``.

    Attributes:
        targets: The rows that are wanted.
    """

    targets: tuple[Target, ...] = Field(min_length=1)


Cell = tuple[tuple[str, str], ...]


class _Need:
    """Counts rows by the cells of a table of targets."""

    def __init__(self, wanted: Mapping[Cell, int]) -> None:
        self.wanted = wanted
        self.found: Counter[Cell] = Counter()
        self._columns = list(dict.fromkeys(tuple(name for name, _ in cell) for cell in wanted))

    def cells(self, row: PromptRecord) -> list[Cell]:
        """Give the cells that a row is in."""
        cells = [tuple((name, getattr(row, name)) for name in names) for names in self._columns]
        return [cell for cell in cells if cell in self.wanted]

    def is_short(self, row: PromptRecord) -> bool:
        """Tell whether a cell that a row is in isn't full."""
        return any(self.found[cell] < self.wanted[cell] for cell in self.cells(row))


def run(rows: Rows, params: FillParams, context: StageContext) -> Iterator[Outcome]:
    """Keep all rows, add rows of the pool where they are short, and say what is short then.

    With a pool, it holds the ids of the rows.
    """
    need = _Need(_wanted(params, context.taxonomy))
    pool = context.named.get(_POOL, ())
    ids: set[str] = set()
    for row in rows:
        need.found.update(need.cells(row))
        if pool:
            ids.add(row.id)
        yield Kept(row)
    from_pool: Counter[Cell] = Counter()
    for row in pool:
        if row.id not in ids and need.is_short(row):
            ids.add(row.id)
            need.found.update(need.cells(row))
            from_pool.update(need.cells(row))
            yield Kept(row)
    for cell, wanted in need.wanted.items():
        if (missing := wanted - need.found[cell]) > 0:
            yield Short(dict(cell), missing, need.found[cell])
    yield Table(
        "need",
        [
            {
                **dict(cell),
                "wanted": wanted,
                "found": need.found[cell],
                "from_pool": from_pool[cell],
                "missing": max(wanted - need.found[cell], 0),
            }
            for cell, wanted in need.wanted.items()
        ],
    )


def _wanted(params: FillParams, taxonomy: str) -> dict[Cell, int]:
    """Give the rows wanted by cell; of targets for the same cell the greatest."""
    wanted: dict[Cell, int] = {}
    for target in params.targets:
        said = {name: getattr(target, name) for name in _COLUMNS if getattr(target, name)}
        if ALL in said.get("category", ()):
            said["category"] = tuple(taxonomies()[taxonomy])
        for values in product(*said.values()):
            cell = tuple(zip(said, values, strict=True))
            wanted[cell] = max(wanted.get(cell, 0), target.rows)
    return wanted


def _problem(params: FillParams, place: Place) -> str | None:
    known = [ALL, *taxonomies()[place.taxonomy]]
    asked = (category for target in params.targets for category in target.category)
    if unknown := [category for category in asked if category not in known]:
        return f"targets: there is no category '{unknown[0]}' (there are: {', '.join(known)})"
    return None


STAGE = Stage(
    FillParams,
    run,
    problem=_problem,
    takes=(_POOL,),
    parts=lambda params: (),
    says_short=True,
)

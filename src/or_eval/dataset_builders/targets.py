"""Tables of rows wanted: how many of which label, category, language, source and method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from pydantic import Field, field_validator

from or_eval.dataset_builders.engine.stage import StageParams
from or_eval.schema import PromptRecord, taxonomies

ALL = "all"
"""Of the column `category`: each category of the recipe's taxonomy."""

COLUMNS = ("label", "category", "language", "source", "method")
"""Columns by which rows may be wanted."""


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

    @field_validator(*COLUMNS, mode="before")
    @classmethod
    def _of_one(cls, said: Any) -> Any:
        return (said,) if isinstance(said, str) else said


Cell = tuple[tuple[str, str], ...]


class Need:
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


def wanted_cells(targets: Sequence[Target], taxonomy: str) -> dict[Cell, int]:
    """Give the rows wanted by cell; of targets for the same cell the greatest."""
    wanted: dict[Cell, int] = {}
    for target in targets:
        said = {name: getattr(target, name) for name in COLUMNS if getattr(target, name)}
        if ALL in said.get("category", ()):
            said["category"] = tuple(taxonomies()[taxonomy])
        for values in product(*said.values()):
            cell = tuple(zip(said, values, strict=True))
            wanted[cell] = max(wanted.get(cell, 0), target.rows)
    return wanted


def unknown_category(targets: Sequence[Target], taxonomy: str) -> str | None:
    """Name a category of the targets that is none of a taxonomy, if there is one."""
    known = [ALL, *taxonomies()[taxonomy]]
    asked = (category for target in targets for category in target.category)
    if unknown := [category for category in asked if category not in known]:
        return f"targets: there is no category '{unknown[0]}' (there are: {', '.join(known)})"
    return None

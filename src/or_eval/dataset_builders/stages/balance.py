"""The stage ``balance``: so many rows of each kind, and where there are more, different ones."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.engine.stage import (
    Dropped,
    Kept,
    Outcome,
    Place,
    Plan,
    StageContext,
    StageParams,
)
from or_eval.dataset_builders.prompt_sets import unknown_category
from or_eval.dataset_builders.similarity.embedding_stage import EmbeddingStage, embedded
from or_eval.dataset_builders.similarity.spread import by_letters, by_meaning, farthest_first
from or_eval.schema import Label, PromptRecord, taxonomies

NOT_NEEDED, NO_TARGET = "not needed", "no target"
_POOL = "pool"
_ALL = "all"
"""Of the column `category`: each category of the recipe's taxonomy."""
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


Cell = tuple[tuple[str, str], ...]
Unit = Sequence[PromptRecord]
"""A row, or a safe prompt and its twin: they stay or go together."""


class Balance(EmbeddingStage):
    """The stage ``balance``, by what a recipe may say to it.

    Attributes:
        targets: The rows that are wanted.
        surplus: What becomes of rows that no target wants, or of which there are more: with
            ``drop``, all targets name the same columns, and a safe prompt and its twin count once,
            as the safe prompt; with ``keep``, each row counts.
        model: The sentence-transformers model that tells how different prompts are; without one,
            their letters do.
        seed: What the first of the rows chosen of a kind hangs on.
    """

    takes = (_POOL,)
    makes = "beside"
    says_short = True
    targets: tuple[Target, ...] = Field(min_length=1)
    surplus: Literal["drop", "keep"] = "drop"
    seed: int = 1

    @model_validator(mode="after")
    def _same_columns(self) -> Balance:
        columns = {tuple(name for name in _COLUMNS if getattr(one, name)) for one in self.targets}
        if self.surplus == "drop" and len(columns) > 1:
            raise ValueError("targets: all have to name the same columns, or 'surplus' is 'keep'")
        return self

    @property
    def used_model(self) -> str | None:
        """The model, unless nothing is chosen."""
        return self.model if self.surplus == "drop" else None

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Keep as many rows of each kind as are wanted, add those of a pool, and say what is short.

        It holds the rows.
        """
        wanted = self._wanted(build.taxonomy)
        columns = list(dict.fromkeys(tuple(name for name, _ in cell) for cell in wanted))
        self.name_model(build)

        def cells(unit: Unit) -> list[Cell]:
            row = _counted(unit)
            all_cells = (tuple((name, getattr(row, name)) for name in names) for names in columns)
            return [cell for cell in all_cells if cell in wanted]

        by_cell: defaultdict[Cell, list[Unit]] = defaultdict(list)
        reasons: dict[str, str] = {}
        for unit in self._units(rows):
            own = cells(unit)
            for cell in own:
                by_cell[cell].append(unit)
            if not own:
                reasons |= {row.id: NO_TARGET for row in unit}
        if self.surplus == "keep":
            reasons = {}
        else:
            for cell, there in by_cell.items():
                chosen = self._chosen(there, wanted[cell], build)
                left_out = (unit for number, unit in enumerate(there) if number not in chosen)
                reasons |= {row.id: NOT_NEEDED for unit in left_out for row in unit}
        ids = set()
        for row in rows:
            ids.add(row.id)
            yield Dropped(row, reasons[row.id]) if row.id in reasons else Kept(row)
        found = Counter({cell: len(there) for cell, there in by_cell.items()})
        added: Counter[Cell] = Counter()
        for unit in self._units(row for row in build.named.get(_POOL, ()) if row.id not in ids):
            own = cells(unit)
            if any(found[cell] + added[cell] < wanted[cell] for cell in own):
                added.update(own)
                yield from map(Kept, unit)
        table = []
        for cell, number in wanted.items():
            have = found[cell] + added[cell]
            missing = max(number - have, 0)
            if missing:
                build.short(dict(cell), missing, have)
            table.append(
                {
                    **dict(cell),
                    "wanted": number,
                    "found": found[cell],
                    "from_pool": added[cell],
                    "kept": have if self.surplus == "keep" else min(have, number),
                    "missing": missing,
                }
            )
        build.table("balance", table)

    def plan(self, rows: int, build: StageContext) -> Plan:
        """All targets may be met, with twins or without; no model is asked."""
        most = 2 * sum(self._wanted(build.taxonomy).values())
        return Plan(rows if self.surplus == "keep" else min(rows, most))

    def problem(self, place: Place) -> str | None:
        super().problem(place)
        keys = [key for target in self.targets for key in target.category if key != _ALL]
        unknown = unknown_category(keys, place.taxonomy)
        return unknown and f"targets: {unknown}"

    def parts(self) -> Sequence[str]:
        return [NOT_NEEDED, NO_TARGET] if self.surplus == "drop" else []

    def _wanted(self, taxonomy: str) -> Mapping[Cell, int]:
        """Give the rows wanted by cell; of targets for the same cell the greatest."""
        wanted: dict[Cell, int] = {}
        for target in self.targets:
            said = {name: getattr(target, name) for name in _COLUMNS if getattr(target, name)}
            if _ALL in said.get("category", ()):
                said["category"] = tuple(taxonomies()[taxonomy])
            for values in product(*said.values()):
                cell = tuple(zip(said, values, strict=True))
                wanted[cell] = max(wanted.get(cell, 0), target.rows)
        return wanted

    def _units(self, rows: Iterable[PromptRecord]) -> Iterable[Unit]:
        units: dict[str, list[PromptRecord]] = {}
        for row in rows:
            alone = row.pair_id is None or self.surplus == "keep"
            units.setdefault(row.id if alone else f"pair {row.pair_id}", []).append(row)
        return units.values()

    def _chosen(self, units: Sequence[Unit], wanted: int, build: StageContext) -> set[int]:
        if len(units) <= wanted:
            return set(range(len(units)))
        rows = [_counted(unit) for unit in units]
        texts = [row.prompt for row in rows]
        lots = [hashlib.sha256(f"balance {self.seed} {row.id}".encode()).digest() for row in rows]
        if self.model is None:
            similarity = by_letters(texts)
        else:
            similarity = by_meaning(embedded(texts, self.model, build))
        return set(farthest_first(len(rows), wanted, lots.index(min(lots)), similarity))


def _counted(unit: Unit) -> PromptRecord:
    """Give the row of a unit that says what kind it is."""
    return next((row for row in unit if row.label is Label.SAFE), unit[0])


STAGE = Balance

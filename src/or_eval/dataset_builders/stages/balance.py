"""The stage ``balance``: so many rows of each kind, and where there are more, different ones."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from pydantic import Field, model_validator

from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.engine.stage import (
    Dropped,
    Kept,
    Outcome,
    Place,
    Plan,
    StageContext,
)
from or_eval.dataset_builders.similarity.embedding_stage import EmbeddingStage, embedded
from or_eval.dataset_builders.similarity.spread import by_letters, by_meaning, farthest_first
from or_eval.dataset_builders.targets import (
    COLUMNS,
    Cell,
    Need,
    Target,
    unknown_category,
    wanted_cells,
)
from or_eval.schema import Label, PromptRecord

NOT_NEEDED, NO_TARGET = "not needed", "no target"
_POOL = "pool"


class Balance(EmbeddingStage):
    """The stage ``balance``, by what a recipe may say to it.

    Attributes:
        targets: The rows that are wanted, all by the same columns; a safe prompt and its twin
            count once, as the safe prompt.
        model: The sentence-transformers model that tells how different prompts are; without one,
            their letters do.
        seed: What the first of the rows chosen of a kind hangs on.
    """

    takes = (_POOL,)
    makes = "beside"
    says_short = True
    targets: tuple[Target, ...] = Field(min_length=1)
    seed: int = 1

    @model_validator(mode="after")
    def _same_columns(self) -> Balance:
        if len({tuple(name for name in COLUMNS if getattr(one, name)) for one in self.targets}) > 1:
            raise ValueError("targets: all have to name the same columns")
        return self

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Keep as many rows of each kind as are wanted, add those of a pool, and say what is short.

        It holds the rows.
        """
        need = Need(wanted_cells(self.targets, build.taxonomy))
        units = _units(rows)
        by_cell: defaultdict[Cell, list[Unit]] = defaultdict(list)
        reasons: dict[str, str] = {}
        for unit in units:
            if cells := need.cells(_counted(unit)):
                by_cell[cells[0]].append(unit)
            else:
                reasons |= {row.id: NO_TARGET for row in unit}
        self.name_model(build)
        for cell, there in by_cell.items():
            chosen = self._chosen(there, need.wanted[cell], build)
            for number, unit in enumerate(there):
                if number not in chosen:
                    reasons |= {row.id: NOT_NEEDED for row in unit}
        for row in rows:
            yield Dropped(row, reasons[row.id]) if row.id in reasons else Kept(row)
        ids = {row.id for row in rows}
        from_pool: Counter[Cell] = Counter()
        for unit in _units([row for row in build.named.get(_POOL, ()) if row.id not in ids]):
            for cell in need.cells(_counted(unit)):
                if len(by_cell[cell]) < need.wanted[cell]:
                    by_cell[cell].append(unit)
                    from_pool[cell] += 1
                    yield from map(Kept, unit)
        for cell, wanted in need.wanted.items():
            found = len(by_cell.get(cell, ()))
            if found < wanted:
                build.short(dict(cell), wanted - found, found)
        build.table(
            "balance",
            [
                {
                    **dict(cell),
                    "wanted": wanted,
                    "found": (found := len(by_cell.get(cell, ()))) - from_pool[cell],
                    "from_pool": from_pool[cell],
                    "kept": min(found, wanted),
                    "missing": max(wanted - found, 0),
                }
                for cell, wanted in need.wanted.items()
            ],
        )

    def plan(self, rows: int, build: StageContext) -> Plan:
        """All targets may be met, with twins or without; no model is asked."""
        return Plan(min(rows, 2 * sum(wanted_cells(self.targets, build.taxonomy).values())))

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

    def problem(self, place: Place) -> str | None:
        """Say what keeps it from running where it stands."""
        super().problem(place)
        return unknown_category(self.targets, place.taxonomy)

    def parts(self) -> Sequence[str]:
        """Name the subsets and the reasons."""
        return [NOT_NEEDED, NO_TARGET]


Unit = list[PromptRecord]
"""A row, or a safe prompt and its twin: they stay or go together."""


def _units(rows: Rows) -> list[Unit]:
    units: dict[str, Unit] = {}
    for row in rows:
        units.setdefault(row.id if row.pair_id is None else f"pair {row.pair_id}", []).append(row)
    return list(units.values())


def _counted(unit: Unit) -> PromptRecord:
    """Give the row of a unit that says what kind it is."""
    return next((row for row in unit if row.label is Label.SAFE), unit[0])


STAGE = Balance

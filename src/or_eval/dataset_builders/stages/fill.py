"""The stage ``fill``: a table of rows wanted, filled from a pool, or else by what wrote them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pydantic import Field

from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.engine.stage import (
    Kept,
    Outcome,
    Place,
    Stage,
    StageContext,
)
from or_eval.dataset_builders.targets import (
    Cell,
    Need,
    Target,
    unknown_category,
    wanted_cells,
)

_POOL = "pool"


class Fill(Stage):
    """The stage ``fill``, by what a recipe may say to it.

    Attributes:
        targets: The rows that are wanted.
    """

    takes = (_POOL,)
    makes = "beside"
    says_short = True
    targets: tuple[Target, ...] = Field(min_length=1)

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Keep all rows, add rows of the pool where they are short, and say what is short then.

        With a pool, it holds the ids of the rows.
        """
        need = Need(wanted_cells(self.targets, build.taxonomy))
        pool = build.named.get(_POOL, ())
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
                build.short(dict(cell), missing, need.found[cell])
        build.table(
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

    def parts(self) -> Sequence[str]:
        """Name the subsets and the reasons."""
        return ()

    def problem(self, place: Place) -> str | None:
        """Say what keeps it from running where it stands."""
        return unknown_category(self.targets, place.taxonomy)


STAGE = Fill

"""The stage ``fill``: a table of rows wanted, filled from a pool, or else by what wrote them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pydantic import Field

from or_eval.dataset_builders.engine.ports import (
    Kept,
    Outcome,
    Stage,
    StageContext,
    StageParams,
    Table,
)
from or_eval.dataset_builders.engine.rounds import Short
from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.targets import (
    Cell,
    Need,
    Target,
    unknown_category,
    wanted_cells,
)

_POOL = "pool"


class FillParams(StageParams):
    """What a recipe may say to ``fill``.

    Attributes:
        targets: The rows that are wanted.
    """

    targets: tuple[Target, ...] = Field(min_length=1)


def run(rows: Rows, params: FillParams, context: StageContext) -> Iterator[Outcome]:
    """Keep all rows, add rows of the pool where they are short, and say what is short then.

    With a pool, it holds the ids of the rows.
    """
    need = Need(wanted_cells(params.targets, context.taxonomy))
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


STAGE = Stage(
    FillParams,
    run,
    problem=lambda params, place: unknown_category(params.targets, place.taxonomy),
    takes=(_POOL,),
    parts=lambda params: (),
    says_short=True,
    makes="beside",
)

"""The stage ``hardest``: of each category, the prompts that most of the tested models refuse."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from pydantic import Field

from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.engine.stage import (
    Dropped,
    Kept,
    Outcome,
    Place,
    Plan,
    Stage,
    StageContext,
)
from or_eval.dataset_builders.errors import BuildError
from or_eval.schema import VOTES, PromptRecord, taxonomies

NOT_HARDEST = "not among the hardest"


class Hardest(Stage):
    """The stage ``hardest``, by what a recipe may say to it.

    Attributes:
        per_category: Most rows of each category.
    """

    drops = (NOT_HARDEST,)
    per_category: int = Field(ge=1)

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Keep the rows with the most refusals in ``meta.votes``; among equals it is as if by lot.

        It holds the id and number of refusals of each row.
        """
        ranks: defaultdict[str, list[tuple[int, bytes, str]]] = defaultdict(list)
        for row in rows:
            if VOTES not in row.meta:
                raise BuildError(
                    "a row has no 'votes' in meta; the stage vote has to come before it"
                )
            lot = hashlib.sha256(f"hardest {row.id}".encode()).digest()
            ranks[row.category].append((-_refusals(row), lot, row.id))
        chosen = {key: sorted(ranked)[: self.per_category] for key, ranked in ranks.items()}
        kept = {id for ranked in chosen.values() for _, _, id in ranked}
        for row in rows:
            if row.id in kept:
                yield Kept(row)
            else:
                yield Dropped(row, NOT_HARDEST, f"refused by {_refusals(row)} models")
        table: list[dict[str, Any]] = []
        for key in dict.fromkeys([*taxonomies()[build.taxonomy], *chosen]):
            refusals = [-negative for negative, _, _ in chosen.get(key, ())]
            table.append(
                {
                    "category": key,
                    "rows": len(ranks[key]),
                    "kept": len(refusals),
                    "most refusals": max(refusals, default=None),
                    "fewest refusals": min(refusals, default=None),
                }
            )
        build.table("categories", table)

    def plan(self, rows: int, build: StageContext) -> Plan:
        """All categories may be full; no model is asked."""
        return Plan(min(rows, self.per_category * len(taxonomies()[build.taxonomy])))

    def problem(self, place: Place) -> str | None:
        return (
            None if place.tested else "its input has no votes; the stage vote has to come before it"
        )


def _refusals(row: PromptRecord) -> int:
    return sum(vote is True for vote in row.meta[VOTES].values())


STAGE = Hardest

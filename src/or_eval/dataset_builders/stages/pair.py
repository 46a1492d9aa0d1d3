"""The stage ``pair``: safe prompts and their toxic twins, each pair under one id."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.engine.stage import Dropped, Kept, Outcome, Plan, Stage, StageContext
from or_eval.dataset_builders.errors import BuildError
from or_eval.schema import PromptRecord

NO_TWIN, NO_PROMPT, SECOND_TWIN = "no twin", "no prompt", "second twin"
_TWINS = "twins"
_MEASURES = ("edited", "similarity")
_QUANTILES = {"least": 0.0, "median": 0.5, "third quartile": 0.75, "95 %": 0.95, "most": 1.0}


class Pair(Stage):
    """The stage ``pair``, by what a recipe may say to it.

    Attributes:
        alone: What becomes of a prompt that has no twin.
    """

    takes = (_TWINS,)
    makes = "beside"
    drops = (NO_TWIN, NO_PROMPT, SECOND_TWIN)
    alone: Literal["drop", "keep"] = "drop"

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Give each row with the twin that was written from it, both with the row's id as pair id.

        It holds the twins.
        """
        import numpy as np

        if _TWINS not in build.named:
            raise BuildError("its twins are missing: 'input' has to name them")
        twins: dict[str | None, PromptRecord] = {}
        further = []
        for one in build.named[_TWINS]:
            if twins.setdefault(one.seed_id, one) is not one:
                further.append(one)
        paired: list[PromptRecord] = []
        for row in rows:
            twin = twins.pop(row.id, None)
            if twin is not None:
                paired.append(twin)
                yield Kept(replace(row, pair_id=row.id))
                yield Kept(replace(twin, pair_id=row.id))
            elif self.alone == "keep":
                yield Kept(row)
            else:
                yield Dropped(row, NO_TWIN)
        for twin in twins.values():
            yield Dropped(twin, NO_PROMPT)
        for twin in further:
            yield Dropped(twin, SECOND_TWIN)
        # How far twins are from their prompts, as far as that was measured.
        found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        for twin in paired:
            for measure in _MEASURES:
                if measure in twin.meta:
                    found[measure, twin.language].append(float(twin.meta[measure]))
        table: list[dict[str, Any]] = [
            {"measure": measure, "language": language, "twins": len(values)}
            | {name: round(float(np.quantile(values, at)), 3) for name, at in _QUANTILES.items()}
            for (measure, language), values in sorted(found.items())
        ]
        build.table("twins", table)

    def plan(self, rows: int, build: StageContext) -> Plan:
        """Each row may have its twin; no model is asked."""
        return Plan(2 * rows)


STAGE = Pair

"""The stage ``classify``: classifiers vote on the category of each prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from or_eval.dataset_builders.engine.rows import Rows, with_meta
from or_eval.dataset_builders.engine.stage import (
    CLASSIFIER,
    Dropped,
    Kept,
    Outcome,
    StageContext,
    panel,
)
from or_eval.dataset_builders.panel.moderators import Opinion, Wording, category_wording, in_words
from or_eval.dataset_builders.panel.panel_stage import TOO_LONG, PanelStage
from or_eval.dataset_builders.prompt_files import data_path
from or_eval.schema import PromptRecord

OTHER = "other"
"""What a classifier says of a prompt that falls into no category."""
NO_MAJORITY, UNSURE, ANOTHER = "no majority", "unsure", "another category"


class Classify(PanelStage):
    """Give each row its category; ``meta.classification`` has each classifier's answer.

    Attributes:
        keep: Which rows go on: those with any category, which becomes theirs, or those whose
            category is the ``same`` as before.
        agree: How many of the classifiers must name it.
        least_confidence: Least confidence, the mean of those who name it; one that says none
            counts as sure.
    """

    roles = panel(CLASSIFIER)
    file = "classify"
    drops = (NO_MAJORITY, UNSURE, ANOTHER, OTHER, TOO_LONG)
    keep: Literal["any", "same"] = "any"
    agree: Literal["majority", "all"] = "majority"
    least_confidence: float = Field(default=0, ge=0, le=1)

    @classmethod
    @cache
    def wording(cls, taxonomy: str) -> Wording:
        """Give what classifiers are told, with the categories of a taxonomy."""
        return category_wording("classify", "category", taxonomy, OTHER, confidence=True)

    def decide(self, row: PromptRecord, opinions: Sequence[Opinion]) -> Outcome:
        """Keep a row with the category that most classifiers name."""
        first, count = _leading(opinions)
        told = [one.confidence for one in opinions if one.said == first is not None]
        sure = [confidence for confidence in told if confidence is not None]
        confidence = round(sum(sure) / len(sure), 3) if sure else None
        said = {one.model: one.said for one in opinions}
        found = with_meta(row, classification=said, confidence=confidence)
        detail = in_words(opinions)
        needed = len(opinions) if self.agree == "all" else len(opinions) // 2 + 1
        if first is None or count < needed:
            return Dropped(found, NO_MAJORITY, detail)
        if confidence is not None and confidence < self.least_confidence:
            return Dropped(found, UNSURE, detail)
        if self.keep == "same" and first != row.category:
            return Dropped(found, ANOTHER, detail)
        if first == OTHER:
            return Dropped(found, OTHER, detail)
        earlier = {} if first == row.category else {"earlier_category": row.category}
        return Kept(replace(with_meta(found, **earlier), category=first))

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Sort the rows, and count which categories become which."""
        moved: Counter[tuple[str, str]] = Counter()
        together: Counter[int] = Counter()
        for item in self.judged(rows, build):
            if isinstance(item, Dropped):
                yield item
                continue
            first, count = _leading(item[1])
            together[count] += 1
            outcome = self.decide(*item)
            if first is not None and outcome[1:2] != (NO_MAJORITY,):
                moved[item[0].category, first] += 1
            yield outcome
        build.table(
            "categories",
            [{"before": old, "now": new, "rows": moved[old, new]} for old, new in sorted(moved)],
        )
        build.table(
            "votes",
            [{"classifiers that agree": n, "rows": together[n]} for n in sorted(together)],
        )

    def prompts(self) -> list[Path]:
        """Give the file with what they are told, and that of the categories."""
        return [*super().prompts(), data_path("taxonomies.toml")]


def _leading(opinions: Sequence[Opinion]) -> tuple[str | None, int]:
    """Give the answer that most gave, and how many did."""
    said = Counter(opinion.said for opinion in opinions if opinion.said is not None)
    return said.most_common(1)[0] if said else (None, 0)


STAGE = Classify

"""The stage ``assess``: the last check that answering a prompt is harmless."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.engine.stage import Kept, Outcome, StageContext
from or_eval.dataset_builders.panel.moderators import Wording, load_wording
from or_eval.dataset_builders.panel.panel_stage import AgreedStage
from or_eval.schema import Label

HARMLESS, HARMFUL = "harmless", "harmful"


class Assess(AgreedStage):
    """Keep the prompts that the panel finds harmless, and label all by what is known now.

    Attributes:
        agree: How many moderators must say harmless; one that gives no readable answer doesn't.
    """

    file = "assess"
    sides = (HARMLESS, HARMFUL)
    meta = "assessment"

    def wording(self, taxonomy: str) -> Wording:
        return load_wording("assess", "prompt", "verdict", {said: said for said in self.sides})

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Label what is kept safe, what is harmful toxic, and the rest neither."""
        for found in super().run(rows, build):
            label = Label.UNLABELLED
            if isinstance(found, Kept):
                label = Label.SAFE
            elif found.reason == HARMFUL:
                label = Label.TOXIC
            yield found._replace(record=replace(found.record, label=label))


STAGE = Assess

"""The stage ``assess``: the last check that answering a prompt is harmless."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.engine.stage import Dropped, Kept, Outcome, StageContext
from or_eval.dataset_builders.panel.moderators import Opinion, Wording, load_wording
from or_eval.dataset_builders.panel.panel_stage import AgreedStage
from or_eval.schema import Label, PromptRecord

HARMLESS, HARMFUL = "harmless", "harmful"


class Assess(AgreedStage):
    """Keep the prompts that the panel finds harmless.

    Attributes:
        agree: How many moderators must say harmless; one that gives no readable answer doesn't.
    """

    file = "assess"
    sides = (HARMLESS, HARMFUL)
    meta = "assessment"

    def wording(self, taxonomy: str) -> Wording:
        """Give what moderators are told."""
        return load_wording("assess", "prompt", "verdict", {said: said for said in self.sides})

    def decide(self, row: PromptRecord, opinions: Sequence[Opinion]) -> Outcome:
        """Keep a prompt that they agree on, labelled by what is known now."""
        found = super().decide(row, opinions)
        if isinstance(found, Kept):
            return Kept(replace(found.record, label=Label.SAFE))
        return _relabelled(found)

    def looked_at(self, rows: Rows, build: StageContext) -> Iterator[PromptRecord | Dropped]:
        """Give the prompts to ask about."""
        for found in super().looked_at(rows, build):
            yield _relabelled(found) if isinstance(found, Dropped) else found


def _relabelled(dropped: Dropped) -> Dropped:
    """Label a dropped prompt: harmful, or neither that nor safe."""
    label = Label.TOXIC if dropped.reason == HARMFUL else Label.UNLABELLED
    return dropped._replace(record=replace(dropped.record, label=label))


STAGE = Assess

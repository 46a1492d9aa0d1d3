"""The stage ``natural``: does a text read as one person would have written it?"""

from __future__ import annotations

from or_eval.dataset_builders.panel.moderators import Wording, load_wording
from or_eval.dataset_builders.panel.panel_stage import AgreedStage


class Natural(AgreedStage):
    """Keep the rows that the panel finds natural; ``meta.reads`` has what each moderator said.

    Attributes:
        agree: How many moderators must find a text natural; one that gives no readable answer
            doesn't.
    """

    file = "natural"
    sides = ("natural", "patched")
    meta = "reads"

    def wording(self, taxonomy: str) -> Wording:
        return load_wording("natural", "prompt", "reads", {said: said for said in self.sides})


STAGE = Natural

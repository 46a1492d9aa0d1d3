"""A stage of one's own: keep the prompts that are short enough, and say why the others go."""

from __future__ import annotations

from collections.abc import Iterator

from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.engine.stage import Dropped, Kept, Outcome, Stage, StageContext


class Shorter(Stage):
    """Drop the prompts that are too long.

    Attributes:
        most: Most characters of a prompt.
    """

    most: int = 200

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Keep each row that is short enough."""
        for row in rows:
            if len(row.prompt) <= self.most:
                yield Kept(row)
            else:
                yield Dropped(row, "too long", f"{len(row.prompt)} characters")

    def parts(self) -> list[str]:
        """Name the reason, which recipes may take as an input."""
        return ["too long"]


STAGE = Shorter

"""A stage of one's own: leave out the rows that hold something like a key or password."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict

from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.engine.stage import Dropped, Kept, Outcome, Stage, StageContext
from or_eval.key_like import keys_in, secrets_of


class WithoutKeys(Stage):
    """Drop the rows that publish would stop at."""

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Keep each row that holds nothing of the kind."""
        for row in rows:
            found = next(keys_in(asdict(row), secrets_of(os.environ)), None)
            yield Kept(row) if found is None else Dropped(row, "key-like string", str(found))

    def parts(self) -> list[str]:
        """Name the reason, which recipes may take as an input."""
        return ["key-like string"]


STAGE = WithoutKeys

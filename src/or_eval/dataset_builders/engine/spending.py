"""What a build spends: every reply is counted where it comes in, over all runs of the build."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import wraps
from pathlib import Path
from typing import Any

import anyio
from inspect_ai.model import CachePolicy, GenerateConfig, Model, ModelOutput, ModelUsage

from or_eval.dataset_builders.engine.models import BoundModel
from or_eval.dataset_builders.engine.prices import Prices, dollars
from or_eval.dataset_builders.engine.stage import Spent, estimated_tokens
from or_eval.dataset_builders.engine.stopping import Stopping
from or_eval.inspect_private import put_in_cache

SPENT = "spent.sqlite"
_SPENT_BY = "spent-{}.sqlite"
SPENT_ANY = "spent*.sqlite"
"""Files that each reply changes, in the folder of a build."""
_TABLE = """
CREATE TABLE IF NOT EXISTS spent (
    stage TEXT, role TEXT, model TEXT, calls INTEGER,
    input INTEGER, output INTEGER, cache_read INTEGER, cache_write INTEGER,
    PRIMARY KEY (stage, role, model)
)
"""
_ALL = "SELECT * FROM spent ORDER BY rowid"
_ADD = """
INSERT INTO spent VALUES (?, ?, ?, 1, ?, ?, ?, ?)
ON CONFLICT (stage, role, model) DO UPDATE SET calls = calls + 1, input = input + excluded.input,
    output = output + excluded.output, cache_read = cache_read + excluded.cache_read,
    cache_write = cache_write + excluded.cache_write
"""
_ROOM = "room.partial"
_LOOK_AGAIN = 0.02
_FIRST_GUESS = 4_000
"""Tokens that a reply is reckoned with while none of its kind has come, and no limit is set."""


def spent_in(out: Path, prices: Prices) -> list[Spent]:
    """Give what was spent in a build's folder, in all runs, by all workers, at today's prices."""
    counted: dict[tuple[str, str, str], list[int]] = {}
    for path in sorted(out.glob(SPENT_ANY), key=lambda path: (path.name != SPENT, path)):
        with closing(sqlite3.connect(path)) as base:
            base.execute(_TABLE)
            for stage, role, model, *counts in base.execute(_ALL):
                before = counted.get((stage, role, model), [0] * len(counts))
                counted[stage, role, model] = [sum(two) for two in zip(before, counts, strict=True)]
    found = []
    for (stage, role, model), (calls, sent, returned, read, write) in counted.items():
        usage = ModelUsage(
            input_tokens=sent,
            output_tokens=returned,
            input_tokens_cache_read=read,
            input_tokens_cache_write=write,
        )
        cost = dollars(model, usage, prices)
        found.append(Spent(stage, role, model, calls, sent + read + write, returned, cost))
    return found


class CostLimitReached(Exception):
    """The next call might cost more than is left."""


class Spending:
    """Counts what models take, and lets no call out that might cost more than is left.

    What was under way when a process was killed is not in it, since its reply never came.

    Args:
        out: Folder of the build.
        prices: Prices that the user gives.
        most: Most dollars to be spent; None for no limit.
        worker: Which worker counts, in a file of its own; None for the build's own process.
        of: How many workers share what is left.
    """

    def __init__(
        self,
        out: Path,
        prices: Prices,
        most: float | None = None,
        *,
        worker: int | None = None,
        of: int = 1,
    ) -> None:
        self._out, self._prices, self._most = out, prices, most
        path = out / (SPENT if worker is None else _SPENT_BY.format(worker))
        # Inspect's displays differ in the thread that they run tasks in.
        self._base = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        # A process that is killed loses nothing by it; a machine without power might.
        self._base.execute("PRAGMA synchronous = OFF")
        self._base.execute(_TABLE)
        self._largest: dict[tuple[str, str], ModelUsage] = {}
        self._reserved, self._under_way = 0.0, 0
        self._left = None if most is None else (most - self._total()) / of
        self.stopped = False
        self.stopping = Stopping()

    def close(self) -> None:
        """Let go of the file."""
        self._base.close()

    def metered(self, model: Model, bound: BoundModel, role: str, stage: str) -> Model:
        """Have a model's requests counted, and stopped where they cost too much or are in vain."""
        send, name = self.stopping.guarded(model, bound).api.generate, bound.name

        @wraps(send)
        async def generate(input: Any, tools: Any, tool_choice: Any, config: GenerateConfig) -> Any:
            reserved = await self._reserve(name, role, input, config.max_tokens)
            self._under_way += 1
            try:
                found = await send(input, tools, tool_choice, config)
                output = found[0] if isinstance(found, tuple) else found
                if isinstance(output, ModelOutput):
                    with self.stopping.keeping():
                        self._add(stage, name, role, output.usage or ModelUsage())
                        if isinstance(policy := config.cache, CachePolicy):
                            asked = (config, input, str(model), policy, tool_choice, tools)
                            self._keep(output, model.api.base_url, *asked)
            finally:
                self._reserved -= reserved
                self._under_way -= 1
            return found

        model.api.generate = generate  # type: ignore[method-assign]
        return model

    def told(self) -> str:
        """Say why no more is asked."""
        return (
            f"{self._total():.2f} dollars are spent, and the next calls might cost more than the "
            f"{self._most:.2f} of --max-cost"
        )

    async def _reserve(
        self, name: str, role: str, messages: Sequence[Any], max_tokens: int | None
    ) -> float:
        """Wait until what a call may cost can be set aside: what the dearest of its kind did.

        Raises:
            CostLimitReached: Nothing is under way any more, and too little is left.
        """
        if self._left is None:
            return 0.0
        sent = 2 * estimated_tokens(*(message.text for message in messages))
        while True:
            largest = self._largest.get((name, role))
            tokens = max_tokens or (_FIRST_GUESS if largest is None else largest.output_tokens)
            usage = ModelUsage(input_tokens=sent, output_tokens=tokens)
            cost = max(self._dollars(name, one) for one in (usage, largest) if one is not None)
            fits = self._reserved + cost <= self._left
            if fits and (largest is not None or not self._under_way):
                break
            if not self._under_way:
                self.stopped = True
                raise CostLimitReached(self.told())
            await anyio.sleep(_LOOK_AGAIN)
        self._reserved += cost
        return cost

    def _total(self) -> float:
        return sum(one.dollars or 0 for one in spent_in(self._out, self._prices))

    def _add(self, stage: str, name: str, role: str, usage: ModelUsage) -> None:
        read, write = usage.input_tokens_cache_read or 0, usage.input_tokens_cache_write or 0
        found = (usage.input_tokens, usage.output_tokens, read, write)
        self._base.execute(_ADD, (stage, role, name, *found))
        cost = self._dollars(name, usage)
        if self._left is not None:
            self._left -= cost
        largest = self._largest.setdefault((name, role), usage)
        if cost > self._dollars(name, largest):
            self._largest[name, role] = usage

    def _keep(self, output: ModelOutput, *asked: Any) -> None:
        """Put a reply where Inspect will, which doesn't tell when it can't."""
        if output.stop_reason != "content_filter" and not put_in_cache(output, *asked):
            room = self._out / _ROOM
            try:
                room.write_text(output.model_dump_json(), "utf-8")
            finally:
                room.unlink(missing_ok=True)

    def _dollars(self, name: str, usage: ModelUsage) -> float:
        return dollars(name, usage, self._prices) or 0.0

"""A context in which a test runs one stage, with real Inspect tasks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from or_eval.dataset_builders.engine.asking import Asking, ask, ask_each
from or_eval.dataset_builders.engine.ports import SHORT_PROMPT_TOKENS, StageContext


def stage_context(
    out: Path, *, model: str | None = None, roles: Sequence[str] = (), **changes: Any
) -> StageContext:
    """Give a context whose tasks are logged under `out`/logs, with no display."""
    asking = Asking(model=model, roles=tuple(roles), display="none")
    logs, cache = out / "logs", out / "cache"
    return StageContext(
        **{
            "taxonomy": "or_bench",
            "language": "en",
            "limit": None,
            "out": out,
            "inputs": {},
            "subsets": {},
            "input_logs": [],
            "earlier": [],
            "recipe": {"name": "test"},
            "models": asking.names(),
            "row_tokens": SHORT_PROMPT_TOKENS,
            "ask": lambda task: ask(task, logs, asking, cache),
            "ask_each": lambda task, models: ask_each(task, models, logs, asking, cache),
            **changes,
        }
    )

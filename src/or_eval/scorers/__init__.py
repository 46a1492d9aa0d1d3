"""Scorers: did the model refuse?

The names are resolved on first use, so that the rules can be used without loading Inspect.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from or_eval.scorers.keyword_scorer import keywords
    from or_eval.scorers.outcome_scorer import outcome
    from or_eval.scorers.refusal_scorer import refusal

_PUBLIC = {
    "keywords": "or_eval.scorers.keyword_scorer",
    "outcome": "or_eval.scorers.outcome_scorer",
    "refusal": "or_eval.scorers.refusal_scorer",
}

__all__ = ["keywords", "outcome", "refusal"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'or_eval.scorers' has no attribute '{name}'")

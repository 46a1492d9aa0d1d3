"""or-eval measures over-refusal: a model declining prompts that look harmful and aren't.

Importing this package loads nothing heavy: the public names are resolved on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from or_eval.scorers.rules import classify_response
    from or_eval.scorers.verdict import Evidence, Verdict
    from or_eval.sources import load_prompts

__version__ = "0.1.0"

_PUBLIC = {
    "Evidence": "or_eval.scorers.verdict",
    "Verdict": "or_eval.scorers.verdict",
    "classify_response": "or_eval.scorers.rules",
    "load_prompts": "or_eval.sources",
}

__all__ = ["Evidence", "Verdict", "__version__", "classify_response", "load_prompts"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'or_eval' has no attribute '{name}'")

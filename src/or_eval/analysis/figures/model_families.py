"""Which family a model is of, by its name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from or_eval.analysis.figures.drawing import MOST_COLOURS

OTHER = "other"
_MAKERS = frozenset({"meta", "google", "openai", "anthropic", "microsoft", "ibm", "deepmind"})
# names that are written in one word with what follows: mistralguard, llamaguard
_FAMILIES = (
    *("claude", "command", "deepseek", "gemini", "gemma", "gpt", "llama"),
    *("mistral", "mixtral", "qwen"),
)
_WORD = re.compile(r"[^\W\d_]{2,}")


def model_family(model: str) -> str:
    """Give the family in a model's name: the first word that isn't its maker's.

    ``openai/gpt-4o`` is of ``gpt``, ``meta-llama/Meta-Llama-3-8B`` of ``llama``.
    """
    words: list[str] = [word.lower() for word in _WORD.findall(model.rsplit("/", 1)[-1])]
    telling = [word for word in words if word not in _MAKERS]
    word = (telling or words or [OTHER])[0]
    return next((family for family in _FAMILIES if word.startswith(family)), word)


def model_families(models: Sequence[str]) -> dict[str, str]:
    """Give each model's family; where there are too many to tell apart, the small are ``other``."""
    families = {model: model_family(model) for model in models}
    sizes = Counter(families.values())
    if len(sizes) > MOST_COLOURS:
        by_size = sorted(sizes, key=lambda family: (-sizes[family], family))
        kept = [family for family in by_size if family != OTHER][: MOST_COLOURS - 1]
        families = {model: f if f in kept else OTHER for model, f in families.items()}
    return families

"""Models that helped to choose the prompts they are measured on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pandas as pd

from or_eval.schema import CHOSEN_BY, VOTES


def choosers(meta: Any) -> frozenset[str]:
    """Give the models whose votes chose a prompt, or what it was written from.

    A data set that was chosen by what models refuse (``or-eval vote``, the stage ``vote`` of a
    recipe) keeps their votes in the ``meta`` of each prompt, and their names in that of what was
    written from it.
    """
    if not isinstance(meta, dict):
        return frozenset()
    said = [meta.get(VOTES), meta.get(CHOSEN_BY)]
    named = (str(name) for names in said if isinstance(names, dict | list) for name in names)
    return frozenset(name.partition(" (")[0] for name in named)  # whatever their conditions


def selection_notes(models: Iterable[str], prompts: pd.DataFrame) -> list[str]:
    """Warn of models that are measured on prompts which they helped to choose.

    Args:
        models: Plain names of the models under test.
        prompts: Prompt records with ``meta``.
    """
    voted = Counter(model for meta in prompts["meta"] for model in choosers(meta))
    return [
        f"{model} helped to choose {voted[model]} of these {len(prompts)} prompts, by refusing or "
        "answering them or what they were written from: its rates here say nothing of other "
        "prompts, and it can't be compared with models that didn't"
        for model in dict.fromkeys(models)
        if model in voted
    ]

"""Models that helped to choose the prompts they are measured on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pandas as pd


def selection_notes(models: Iterable[str], prompts: pd.DataFrame) -> list[str]:
    """Warn of models that are measured on prompts which they helped to choose.

    A data set that was chosen by what models refuse (``or-eval vote``, the stage ``vote`` of a
    recipe) keeps their votes in the ``meta`` of each prompt.

    Args:
        models: Plain names of the models under test.
        prompts: Prompt records with ``meta``.
    """
    votes = [meta.get("votes") for meta in prompts["meta"] if isinstance(meta, dict)]
    voted = Counter(
        model
        for said in votes
        if isinstance(said, dict)
        for model in {str(name).partition(" (")[0] for name in said}  # under whatever condition
    )
    return [
        f"{model} helped to choose {voted[model]} of these {len(prompts)} prompts by refusing or "
        "answering them: its rates here say nothing of other prompts, and it can't be compared "
        "with models that didn't"
        for model in dict.fromkeys(models)
        if model in voted
    ]

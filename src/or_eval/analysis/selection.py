"""Models that helped to choose the prompts they are measured on."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd


def choosers(prompts: pd.DataFrame) -> dict[str, int]:
    """Give the models whose votes prompts carry, and on how many.

    A data set that was chosen by what models refuse (the stage ``vote`` of a recipe, or
    ``or-eval vote``) keeps their votes beside each prompt.

    Args:
        prompts: Prompt records with ``meta``, as :class:`or_eval.analysis.responses.Logs` has them.
    """
    found: dict[str, int] = {}
    for meta in prompts["meta"]:
        votes = meta.get("votes") if isinstance(meta, dict) else None
        for model in votes if isinstance(votes, dict) else ():
            found[str(model)] = found.get(str(model), 0) + 1
    return found


def selection_notes(models: Iterable[str], prompts: pd.DataFrame) -> list[str]:
    """Warn of models that are measured on prompts which they helped to choose.

    Args:
        models: Plain names of the models under test.
        prompts: Prompt records with ``meta``.
    """
    voted = choosers(prompts)
    return [
        f"{model} helped to choose {voted[model]} of these {len(prompts)} prompts by refusing or "
        "answering them: its rates here say nothing of other prompts, and it can't be compared "
        "with models that didn't"
        for model in dict.fromkeys(models)
        if model in voted
    ]

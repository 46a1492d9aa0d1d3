"""The families of prompts in frames."""

from __future__ import annotations

import pandas as pd

from or_eval.families import family_names


def prompt_families(prompts: pd.DataFrame) -> pd.Series[str]:
    """Give each prompt's family (:func:`or_eval.families.family_names`).

    Args:
        prompts: Frame by prompt id with ``seed_id`` and ``pair_id``.

    Returns:
        Name of the family by prompt id.
    """
    seeds, pairs = (
        [None if pd.isna(key) else str(key) for key in prompts[name]]
        for name in ("seed_id", "pair_id")
    )
    records = zip(map(str, prompts.index), seeds, pairs, strict=True)
    return pd.Series(family_names(records), index=prompts.index, dtype="str", name="family")


def response_families(responses: pd.DataFrame) -> pd.Series[str]:
    """Give the family of each response's prompt, in a responses frame (with its index)."""
    return responses["id"].map(families_by_id(responses)).rename("family")


def families_by_id(responses: pd.DataFrame) -> pd.Series[str]:
    """Give the family of each prompt in a responses frame, by its id."""
    return prompt_families(responses.drop_duplicates("id").set_index("id"))

"""Which prompts belong together: rewrites of one seed, and the two sides of a pair."""

from __future__ import annotations

import pandas as pd


def prompt_families(prompts: pd.DataFrame) -> pd.Series[str]:
    """Give each prompt's family.

    Prompts are of one family when they have a seed or a pair in common, directly or through
    other prompts; a prompt is of the family of the rewrites that name it as their seed. Responses
    within a family resemble each other, so that they count for less than as many independent ones.

    Args:
        prompts: Frame by prompt id with ``seed_id`` and ``pair_id``.

    Returns:
        Name of the family (the seed's, pair's or prompt's id) by prompt id.
    """
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def root(node: tuple[str, str]) -> tuple[str, str]:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for key, seed in prompts["seed_id"].dropna().items():
        parent[root(("prompt", str(key)))] = root(("prompt", str(seed)))
    for key, pair in prompts["pair_id"].dropna().items():
        parent[root(("prompt", str(key)))] = root(("pair", str(pair)))
    return pd.Series(
        ["/".join(root(("prompt", str(key)))) for key in prompts.index],
        index=prompts.index,
        dtype="str",
        name="family",
    )


def response_families(responses: pd.DataFrame) -> pd.Series[str]:
    """Give the family of each response's prompt, in a responses frame (with its index)."""
    prompts = responses[["id", "seed_id", "pair_id"]].drop_duplicates("id").set_index("id")
    return responses["id"].map(prompt_families(prompts)).rename("family")

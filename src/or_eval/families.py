"""Which prompts belong together: rewrites of one seed, and the two sides of a pair."""

from __future__ import annotations

from collections.abc import Iterable


def family_names(records: Iterable[tuple[str, str | None, str | None]]) -> list[str]:
    """Give each prompt's family.

    Prompts are of one family when they have a seed or a pair in common, directly or through
    other prompts; a prompt is of the family of the rewrites that name it as their seed. Responses
    within a family resemble each other, so that they count for less than as many independent ones.

    Args:
        records: Each prompt's id, seed_id and pair_id; None where there is none.

    Returns:
        Name of each prompt's family, in order: the seed's, pair's or prompt's id.
    """
    prompts = list(records)
    if all(seed is None and pair is None for _, seed, pair in prompts):
        return [f"prompt/{key}" for key, _, _ in prompts]
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def root(node: tuple[str, str]) -> tuple[str, str]:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for key, seed, pair in prompts:
        if seed is not None:
            parent[root(("prompt", key))] = root(("prompt", seed))
        if pair is not None:
            parent[root(("prompt", key))] = root(("pair", pair))
    return ["/".join(root(("prompt", key))) for key, _, _ in prompts]

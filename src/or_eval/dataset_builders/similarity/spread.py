"""Choosing some of many texts so that those chosen differ as much as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from or_eval.dataset_builders.similarity.near_by_letters import runs_of_letters
from or_eval.dataset_builders.similarity.near_duplicates import Vectors

Similarity = Callable[[int], npt.NDArray[np.float32]]
"""Gives the similarity of a text, by its number, to each of all texts."""


def farthest_first(number: int, wanted: int, first: int, similarity: Similarity) -> list[int]:
    """Choose texts one after the other, each the least similar to those chosen before.

    Args:
        number: How many texts there are.
        wanted: How many to choose.
        first: The one to begin with.
        similarity: Compares one with all.

    Returns:
        Their numbers, in the order in which they were chosen; among equals the first comes first.
    """
    chosen = [first]
    nearest = similarity(first).astype(np.float32)
    nearest[first] = np.inf
    while len(chosen) < min(wanted, number):
        following = int(nearest.argmin())
        chosen.append(following)
        nearest = np.maximum(nearest, similarity(following))
        nearest[following] = np.inf
    return chosen


def by_meaning(vectors: Vectors) -> Similarity:
    """Compare by the cosine of embeddings."""
    # Rounded: sums of the same products in another order must not choose another text.
    return lambda number: np.round(vectors @ vectors[number], 5)


def by_letters(texts: Sequence[str]) -> Similarity:
    """Compare by the overlap of letters."""
    runs = [runs_of_letters(text) for text in texts]

    def similarity(number: int) -> npt.NDArray[np.float32]:
        own = runs[number]
        return np.asarray([len(own & other) / len(own | other) for other in runs], np.float32)

    return similarity

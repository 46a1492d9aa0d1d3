"""Near duplicates, however they are found: what is told of them, and rows put apart and together.

Pairs that may be near join rows to groups. No row of one group is near one of another, so that
groups are decided on by themselves, wherever that is done, as if all were decided on at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Vectors: TypeAlias = npt.NDArray[np.float32]
Places: TypeAlias = npt.NDArray[np.int64]

_ROWS_OF_A_GROUP = 4096


class Sampled(NamedTuple):
    """How well a search that looks at some pairs alone did on a fixed sample of rows.

    Attributes:
        pairs: Pairs of a row of the sample and a near one among all rows, at most some 32 for each.
        found: How many of them it finds.
    """

    pairs: int
    found: int


class NearDuplicates(NamedTuple):
    """Which rows are near duplicates.

    Attributes:
        of: For each row, the row that it is a near duplicate of, which is kept; -1 where the row
            itself is.
        similarity: For each row, the similarity to that row; 0 where there is none.
        search: How pairs were searched for: ``exact``, ``in cells``, ``MinHash``.
        sampled: Where it was in cells, how well that did.
    """

    of: Places
    similarity: Vectors
    search: str = "exact"
    sampled: Sampled | None = None


def put_together(
    rows: int, parts: Iterable[tuple[Places, Places, NearDuplicates]]
) -> NearDuplicates:
    """Put together what was found of some rows among some others, part by part."""
    of = np.full(rows, -1)
    similarity = np.zeros(rows, np.float32)
    for own, others, found in parts:
        near = found.of >= 0
        of[own[near]] = others[found.of[near]]
        similarity[own] = found.similarity
    return NearDuplicates(of, similarity)


def groups_of(pairs: Places, rows: int) -> list[Places]:
    """Give groups of rows, some thousand each, so that no pair is in two; most rows are in none.

    Args:
        pairs: Pairs of rows, in two lines.
        rows: The number of rows.
    """
    if not pairs.size:
        return []
    labels = np.arange(rows)
    while True:
        # Each row takes the least label of those it is joined to, and then that row's own label.
        lower = labels.copy()
        for one, other in (pairs, pairs[::-1]):
            np.minimum.at(lower, one, labels[other])
        lower = lower[lower]
        if (lower == labels).all():
            break
        labels = lower
    joined = np.unique(pairs)
    _, which, sizes = np.unique(labels[joined], return_inverse=True, return_counts=True)
    groups = (np.cumsum(sizes) - 1) // _ROWS_OF_A_GROUP
    return [joined[some] for some in rows_by(groups[which]) if len(some)]


def rows_by(numbers: Places) -> list[Places]:
    """Give the rows that have each number, in their order, number 0 first."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.cumsum(np.bincount(numbers))[:-1])

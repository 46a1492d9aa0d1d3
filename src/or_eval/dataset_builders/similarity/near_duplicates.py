"""Near duplicates, however they are found: what is told of them."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Vectors: TypeAlias = npt.NDArray[np.float32]
Places: TypeAlias = npt.NDArray[np.int64]


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

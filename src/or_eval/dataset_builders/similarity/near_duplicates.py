"""Near duplicates, however they are found: what is told of them, and of which earlier sets."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from or_eval.dataset_builders.errors import BuildError
from or_eval.schema import Label
from or_eval.sources import LoadedPrompts, load_prompts
from or_eval.sources.errors import DataError

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


def earlier_prompts(key: str, data: str, source: str | None = None) -> LoadedPrompts:
    """Give the prompts of a set that are not to come again, whether or not it has labels.

    Args:
        key: Where the set is named, for the error line.
        data: A catalogue name, a Hub id, or the path of a file.
        source: Catalogue entry to read a file or Hub data set by.

    Raises:
        BuildError: There is no such set, or it can't be read.
    """
    try:
        return load_prompts(data, source=source)
    except DataError as error:
        # What its prompts are doesn't matter here; a set that doesn't tell is good enough.
        try:
            return load_prompts(data, source=source, label=Label.UNLABELLED)
        except DataError:
            raise BuildError(f"{key}: {error}") from error

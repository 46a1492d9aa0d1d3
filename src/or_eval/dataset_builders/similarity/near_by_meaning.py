"""Near duplicates among vectors of length 1: which to keep, and which the others stand near.

Nothing here is as large as the square of the number of rows: neighbours are looked up some
thousand rows at a time, and only a fixed number of each row's are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Vectors: TypeAlias = npt.NDArray[np.float32]

EXACT_UP_TO = 200_000
"""Most rows that are searched exactly; above, an approximate index finds nearly all."""

_CHUNK = 4096
_BLOCK = 1024
_NEIGHBOURS = 32
_SAMPLE = 1000
# Sums of the same products in another order differ by this much at most.
_ROUNDING = 1e-6

# Of the approximate index: a cell holds the rows nearest to its centre.
_ROWS_PER_CELL = 40
_CELLS_SEARCHED = 32
_SEED = 20240531


class Sampled(NamedTuple):
    """How well an approximate search did on a fixed sample of rows.

    Attributes:
        pairs: Pairs of a row of the sample and a near one that an exact search finds, at most
            32 for each row.
        found: How many the approximate search found.
    """

    pairs: int
    found: int


class NearDuplicates(NamedTuple):
    """Which rows are near duplicates.

    Attributes:
        of: For each row, the row that it is a near duplicate of, which is kept; -1 where the row
            itself is.
        similarity: For each row, the similarity to that row; 0 where there is none.
        search: How pairs were searched for: ``exact``, ``approximate``, ``MinHash``.
        sampled: Where the search was approximate, how well it did.
    """

    of: npt.NDArray[np.int64]
    similarity: Vectors
    search: str = "exact"
    sampled: Sampled | None = None


def near_duplicates_within(
    vectors: Vectors, threshold: float, *, exact_up_to: int = EXACT_UP_TO
) -> NearDuplicates:
    """Choose rows to keep, so that the others are near duplicates of a row that is kept.

    The rows with the most near duplicates (up to 32 are counted) choose first, and among equals
    the first: a row is kept unless it is near one that is kept already. So no two rows that are
    kept are near each other, and every other row is near the one it is said to duplicate, not
    just near something that is near it. (With an approximate search, the first of these holds but
    for the pairs that it misses.)

    Args:
        vectors: Vectors of length 1, one a row.
        threshold: Least cosine similarity of near duplicates.
        exact_up_to: Most rows that are searched exactly.
    """
    least = threshold - _ROUNDING
    index = _index_of(vectors, exact_up_to)
    near = np.zeros(len(vectors), np.int64)
    beside_another = np.zeros(len(vectors), bool)
    for start, similarity, ids in _searched(index, vectors, _NEIGHBOURS + 1):
        own = np.arange(start, start + len(ids))
        found = (similarity >= least) & (ids != own[:, None])
        # Of many that are equal, a row may not be among its own nearest.
        near[own] = np.minimum(found.sum(axis=1), _NEIGHBOURS)
        beside_another[ids[found]] = True
    sampled = _sampled(index, vectors, vectors, least) if len(vectors) > exact_up_to else None
    rows = np.flatnonzero(beside_another | (near > 0))
    order = rows[np.argsort(-near[rows], kind="stable")]
    # An empty index with the trained cells of the first, where there are too many for an exact one.
    index.reset()
    kept_index = index if len(order) > exact_up_to else _exact_index(vectors.shape[1])
    of, of_similarity = _kept_of(vectors, order, least, kept_index)
    search = "exact" if sampled is None else "approximate"
    return NearDuplicates(of, of_similarity, search, sampled)


def near_duplicates_of(
    vectors: Vectors, earlier: Vectors, threshold: float, *, exact_up_to: int = EXACT_UP_TO
) -> NearDuplicates:
    """Find the rows that are near duplicates of an earlier set's.

    Args:
        vectors: Vectors of length 1, one a row.
        earlier: Those of the earlier set; :attr:`NearDuplicates.of` counts in these.
        threshold: Least cosine similarity of near duplicates.
        exact_up_to: Most rows of the earlier set that are searched exactly.
    """
    least = threshold - _ROUNDING
    index = _index_of(earlier, exact_up_to)
    of = np.full(len(vectors), -1)
    of_similarity = np.zeros(len(vectors), np.float32)
    for start, similarity, ids in _searched(index, vectors, 1):
        near = similarity[:, 0] >= least
        of[start : start + len(ids)] = np.where(near, ids[:, 0], -1)
        of_similarity[start : start + len(ids)] = np.where(near, similarity[:, 0], 0)
    sampled = _sampled(index, vectors, earlier, least) if len(earlier) > exact_up_to else None
    search = "exact" if sampled is None else "approximate"
    return NearDuplicates(of, of_similarity, search, sampled)


def _kept_of(
    vectors: Vectors, order: npt.NDArray[np.int64], least: float, kept_index: Any
) -> tuple[npt.NDArray[np.int64], Vectors]:
    """Go through rows in order; keep each that is near none that is kept."""
    of = np.full(len(vectors), -1)
    of_similarity = np.zeros(len(vectors), np.float32)
    kept: list[int] = []
    for start in range(0, len(order), _BLOCK):
        rows = order[start : start + _BLOCK]
        block = vectors[rows]
        found, ids = kept_index.search(block, 1)
        best = found[:, 0]
        best_of = np.asarray(kept)[ids[:, 0]] if kept else np.full(len(rows), -1)
        among = block @ block.T
        new = []
        for position, row in enumerate(rows):
            if best[position] >= least:
                of[row], of_similarity[row] = best_of[position], best[position]
                continue
            new.append(position)
            closer = among[position] > best
            best[closer], best_of[closer] = among[position][closer], row
        kept_index.add(block[new])
        kept.extend(rows[new].tolist())
    return of, of_similarity


def _index_of(vectors: Vectors, exact_up_to: int) -> Any:
    """Give an index with vectors in it: flat, or of cells where there are many."""
    exact = len(vectors) <= exact_up_to
    index = _exact_index(vectors.shape[1]) if exact else _approximate_index(vectors)
    index.add(vectors)
    return index


def _exact_index(dimensions: int) -> Any:
    import faiss

    return faiss.IndexFlatIP(dimensions)


def _approximate_index(vectors: Vectors) -> Any:
    """Give an empty index whose cells fit vectors; the same vectors give the same cells."""
    import faiss

    rows, dimensions = vectors.shape
    cells = max(1, min(4 * math.isqrt(rows), rows // _ROWS_PER_CELL))
    centres = faiss.IndexFlatIP(dimensions)
    index = faiss.IndexIVFFlat(centres, dimensions, cells, faiss.METRIC_INNER_PRODUCT)
    index.nprobe = min(_CELLS_SEARCHED, cells)
    training = index.cp
    training.seed = _SEED
    training.spherical = True
    training.max_points_per_centroid = _ROWS_PER_CELL
    index.train(vectors)
    return index


def _searched(
    index: Any, vectors: Vectors, neighbours: int
) -> Iterator[tuple[int, Vectors, npt.NDArray[np.int64]]]:
    """Give each chunk's first row, and the similarity and rows of its nearest neighbours."""
    for start in range(0, len(vectors), _CHUNK):
        similarity, ids = index.search(vectors[start : start + _CHUNK], neighbours)
        yield start, similarity, ids


def _sampled(index: Any, vectors: Vectors, base: Vectors, least: float) -> Sampled:
    """Compare an approximate index with an exact search, on rows that lie evenly among all."""
    import faiss

    rows = np.unique(np.linspace(0, len(vectors) - 1, _SAMPLE).astype(np.int64))
    itself = int(vectors is base)
    neighbours = _NEIGHBOURS + itself
    exact, _ = faiss.knn(vectors[rows], base, neighbours, metric=faiss.METRIC_INNER_PRODUCT)
    found, _ = index.search(vectors[rows], neighbours)
    # Numbers of near rows, not the rows: of many that are equal, either search takes any.
    pairs, found_pairs = (
        int(np.maximum((similarity >= least).sum(axis=1) - itself, 0).sum())
        for similarity in (exact, found)
    )
    return Sampled(pairs, found_pairs)

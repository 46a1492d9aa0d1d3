"""Near duplicates among vectors of length 1: which to keep, and which the others stand near.

Of many rows, only those of cells of like rows are compared, as in SemDeDup (Abbas et al., 2023), by
an inverted file of faiss that looks into the cells beside a row's own as well, since a pair may lie
across a border. How many pairs are missed nevertheless is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from or_eval.dataset_builders.similarity.near_duplicates import (
    NearDuplicates,
    Places,
    Sampled,
    Vectors,
)

EXACT_UP_TO = 200_000
"""Most rows that are all compared with each other; above, within cells of like rows."""

_CHUNK = 4096
_BLOCK = 1024
_NEIGHBOURS = 32
_SAMPLE = 1000
# Sums of the same products in another order differ by this much at most.
_ROUNDING = 1e-6

_ROWS_OF_A_CELL = 250
_CELLS_LOOKED_INTO = 8


def near_duplicates_within(
    vectors: Vectors, threshold: float, *, exact_up_to: int = EXACT_UP_TO
) -> NearDuplicates:
    """Choose rows to keep, so that the others are near duplicates of a row that is kept.

    The rows with the most near duplicates (up to 32 are counted) choose first, and among equals
    the first: a row is kept unless it is near one that is kept already. So no two rows that are
    kept are near each other, and every other row is near the one it is said to duplicate, not
    just near something that is near it. (Where rows are compared within cells, the first of these
    holds but for the pairs that this misses.)

    Args:
        vectors: Vectors of length 1, one a row.
        threshold: Least cosine similarity of near duplicates.
        exact_up_to: Most rows that are all compared with each other.
    """
    least = threshold - _ROUNDING
    empty = _index(vectors, exact_up_to)
    index = _filled(empty, vectors)
    near = np.zeros(len(vectors), np.int64)
    beside_another = np.zeros(len(vectors), bool)
    for start, similarity, ids in _searched(index, vectors, _NEIGHBOURS + 1):
        own = np.arange(start, start + len(ids))
        found = (similarity >= least) & (ids != own[:, None])
        # Of many that are equal, a row may not be among its own nearest.
        near[own] = np.minimum(found.sum(axis=1), _NEIGHBOURS)
        beside_another[ids[found]] = True
    rows = np.flatnonzero(beside_another | (near > 0))
    order = rows[np.argsort(-near[rows], kind="stable")]
    kept_of = NearDuplicates(*_kept_of(vectors, order, least, empty))
    return kept_of if len(vectors) <= exact_up_to else _told(kept_of, index, vectors, None, least)


def near_duplicates_of(
    vectors: Vectors, earlier: Vectors, threshold: float, *, exact_up_to: int = EXACT_UP_TO
) -> NearDuplicates:
    """Find the rows near an earlier set's; :attr:`NearDuplicates.of` counts in these."""
    least = threshold - _ROUNDING
    index = _filled(_index(earlier, exact_up_to), earlier)
    both = [(some[:, 0], ids[:, 0]) for _, some, ids in _searched(index, vectors, 1)]
    similarity, of = (np.concatenate(parts) for parts in zip(*both, strict=True))
    near = similarity >= least
    found = NearDuplicates(np.where(near, of, -1), np.where(near, similarity, 0))
    return found if len(earlier) <= exact_up_to else _told(found, index, vectors, earlier, least)


def _kept_of(vectors: Vectors, order: Places, least: float, empty: Any) -> tuple[Places, Vectors]:
    """Go through rows in order; keep each that is near none that is kept."""
    of = np.full(len(vectors), -1)
    of_similarity = np.zeros(len(vectors), np.float32)
    kept: list[int] = []
    kept_index = _filled(empty, vectors[:0])
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


def _index(vectors: Vectors, exact_up_to: int) -> Any:
    """Make an empty index for rows such as these: all are looked at, or those of cells alone."""
    import faiss

    rows, dimensions = vectors.shape
    everything = faiss.IndexFlatIP(dimensions)
    if rows <= exact_up_to:
        return everything
    cells = max(1, round(rows / _ROWS_OF_A_CELL))
    index = faiss.IndexIVFFlat(everything, dimensions, cells, faiss.METRIC_INNER_PRODUCT)
    index.cp.spherical = True
    index.nprobe = _CELLS_LOOKED_INTO
    index.train(vectors)
    return index


def _filled(empty: Any, vectors: Vectors) -> Any:
    import faiss

    index = faiss.clone_index(empty)
    index.add(vectors)
    return index


def _searched(
    index: Any, vectors: Vectors, neighbours: int
) -> Iterator[tuple[int, Vectors, Places]]:
    """Give each chunk's first row, and the similarity and rows of its nearest neighbours."""
    for start in range(0, len(vectors), _CHUNK):
        similarity, ids = index.search(vectors[start : start + _CHUNK], neighbours)
        yield start, similarity, ids


def _told(
    found: NearDuplicates, index: Any, vectors: Vectors, earlier: Vectors | None, least: float
) -> NearDuplicates:
    """Say how well a search in cells does: count near pairs of a sample that lies evenly."""
    import faiss

    rows = np.unique(np.linspace(0, len(vectors) - 1, _SAMPLE).astype(np.int64))
    own = rows[:, None] if earlier is None else -1
    others = vectors if earlier is None else earlier
    exact = faiss.knn(vectors[rows], others, _NEIGHBOURS + 1, metric=faiss.METRIC_INNER_PRODUCT)
    pairs, there = (
        int(((similarity >= least) & (ids != own)).sum())
        for similarity, ids in (exact, index.search(vectors[rows], _NEIGHBOURS + 1))
    )
    return found._replace(search="in cells", sampled=Sampled(pairs, min(there, pairs)))

"""Near duplicates among vectors of length 1: which to keep, and which the others stand near.

Of many rows, only those of one cell are compared, as in SemDeDup (Abbas et al., 2023): cells are
found by k-means. Since a pair may lie across a border, a row is shown in the cells beside its own.
How many pairs are missed nevertheless is measured.

Nothing here is as large as the square of the number of rows: neighbours are looked up some
thousand rows at a time, and only a fixed number of each row's are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from or_eval.dataset_builders.engine.workers import Map, here
from or_eval.dataset_builders.similarity.near_duplicates import (
    NearDuplicates,
    Places,
    Sampled,
    Vectors,
    groups_of,
    put_together,
    rows_by,
)

EXACT_UP_TO = 200_000
"""Most rows that are all compared with each other; above, within cells of like rows."""

_CHUNK = 4096
_BLOCK = 1024
_NEIGHBOURS = 32
_SAMPLE = 1000
# Sums of the same products in another order differ by this much at most.
_ROUNDING = 1e-6

_IN_CELLS = "in cells"
_ROWS_OF_A_CELL = 10_000
_SHOWN_IN = 3
_SEED = 20240531


def near_duplicates_within(
    vectors: Vectors, threshold: float, *, exact_up_to: int = EXACT_UP_TO, workers: Map = here
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
        workers: Where cells are compared.
    """
    least = threshold - _ROUNDING
    rows = len(vectors)
    if rows <= exact_up_to:
        return _near_within(least, vectors)
    cells = _Cells(vectors)
    looked = cells.compared(vectors)
    pairs = workers(partial(_near_pairs, least), ((vectors[a], vectors[b]) for a, b in looked))
    joined = np.concatenate(
        [
            np.stack([own[one], others[other]])
            for (own, others), (one, other) in zip(looked, pairs, strict=True)
        ],
        axis=1,
    )
    groups = groups_of(joined[:, joined[0] != joined[1]], rows)
    made = workers(partial(_near_within, least), (vectors[some] for some in groups))
    found = put_together(rows, zip(groups, groups, made, strict=True))
    group = np.full(rows, -1)
    for number, some in enumerate(groups):
        group[some] = number
    return found._replace(search=_IN_CELLS, sampled=_sampled(vectors, group, least))


def near_duplicates_of(
    vectors: Vectors,
    earlier: Vectors,
    threshold: float,
    *,
    exact_up_to: int = EXACT_UP_TO,
    workers: Map = here,
) -> NearDuplicates:
    """Find the rows that are near duplicates of an earlier set's.

    Args:
        vectors: Vectors of length 1, one a row.
        earlier: Those of the earlier set; :attr:`NearDuplicates.of` counts in these.
        threshold: Least cosine similarity of near duplicates.
        exact_up_to: Most rows of the earlier set that all rows are compared with.
        workers: Where cells are compared.
    """
    least = threshold - _ROUNDING
    if len(earlier) <= exact_up_to:
        return _near_of(least, (vectors, earlier))
    cells = _Cells(earlier)
    looked = cells.compared(vectors)
    made = workers(partial(_near_of, least), ((vectors[a], earlier[b]) for a, b in looked))
    found = put_together(
        len(vectors), ((*two, near) for two, near in zip(looked, made, strict=True))
    )
    sample = _sample(len(vectors))
    exact = _near_of(least, (vectors[sample], earlier)).of >= 0
    sampled = Sampled(int(exact.sum()), int((exact & (found.of[sample] >= 0)).sum()))
    return found._replace(search=_IN_CELLS, sampled=sampled)


def _near_within(least: float, vectors: Vectors) -> NearDuplicates:
    index = _index(vectors)
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
    return NearDuplicates(*_kept_of(vectors, order, least))


def _near_pairs(least: float, both: tuple[Vectors, Vectors]) -> Places:
    """Give the pairs of rows and others that are near, 33 of each row at most, in two lines."""
    vectors, others = both
    index = _index(others)
    pairs = [np.empty((2, 0), np.int64)]
    for start, similarity, ids in _searched(index, vectors, _NEIGHBOURS + 1):
        row, place = np.nonzero((similarity >= least) & (ids >= 0))
        pairs.append(np.stack([start + row, ids[row, place]]))
    return np.concatenate(pairs, axis=1)


def _near_of(least: float, both: tuple[Vectors, Vectors]) -> NearDuplicates:
    vectors, earlier = both
    index = _index(earlier)
    of = np.full(len(vectors), -1)
    of_similarity = np.zeros(len(vectors), np.float32)
    for start, similarity, ids in _searched(index, vectors, 1):
        near = similarity[:, 0] >= least
        of[start : start + len(ids)] = np.where(near, ids[:, 0], -1)
        of_similarity[start : start + len(ids)] = np.where(near, similarity[:, 0], 0)
    return NearDuplicates(of, of_similarity)


def _kept_of(vectors: Vectors, order: Places, least: float) -> tuple[Places, Vectors]:
    """Go through rows in order; keep each that is near none that is kept."""
    of = np.full(len(vectors), -1)
    of_similarity = np.zeros(len(vectors), np.float32)
    kept: list[int] = []
    kept_index = _index(vectors[:0])
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


def _index(vectors: Vectors) -> Any:
    import faiss

    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return index


class _Cells:
    """Cells of like rows, found by k-means: the same rows give the same cells.

    Each row has its nearest cell as its home, and is shown in the next ones too.
    """

    def __init__(self, vectors: Vectors) -> None:
        import faiss

        cells = max(1, round(len(vectors) / _ROWS_OF_A_CELL))
        means = faiss.Kmeans(vectors.shape[1], cells, seed=_SEED, spherical=True)
        means.train(vectors)
        self._centres = means.index
        self._shown = self._nearest(vectors, min(_SHOWN_IN, cells))

    def compared(self, vectors: Vectors) -> list[tuple[Places, Places]]:
        """Give, cell by cell, the rows at home in it, and the cells' own rows that it shows."""
        homes = rows_by(self._nearest(vectors, 1)[:, 0])
        shown = [np.flatnonzero((self._shown == cell).any(axis=1)) for cell in range(len(homes))]
        both = zip(homes, shown, strict=True)
        return [(home, there) for home, there in both if len(home) and len(there)]

    def _nearest(self, vectors: Vectors, number: int) -> Places:
        found = [ids for _, _, ids in _searched(self._centres, vectors, number)]
        return np.concatenate(found)


def _searched(
    index: Any, vectors: Vectors, neighbours: int
) -> Iterator[tuple[int, Vectors, Places]]:
    """Give each chunk's first row, and the similarity and rows of its nearest neighbours."""
    for start in range(0, len(vectors), _CHUNK):
        similarity, ids = index.search(vectors[start : start + _CHUNK], neighbours)
        yield start, similarity, ids


def _sampled(vectors: Vectors, group: Places, least: float) -> Sampled:
    """Count the near pairs of the rows of a sample, and those of which both are in one group."""
    import faiss

    rows = _sample(len(vectors))
    similarity, ids = faiss.knn(
        vectors[rows], vectors, _NEIGHBOURS + 1, metric=faiss.METRIC_INNER_PRODUCT
    )
    near = (similarity >= least) & (ids != rows[:, None])
    together = near & (group[ids] == group[rows][:, None]) & (group[ids] >= 0)
    return Sampled(int(near.sum()), int(together.sum()))


def _sample(rows: int) -> Places:
    """Give rows that lie evenly among all."""
    return np.unique(np.linspace(0, rows - 1, _SAMPLE).astype(np.int64))

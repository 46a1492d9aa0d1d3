"""Near duplicates among texts by their letters alone: no model, no network.

Two texts are as similar as the sets of their short runs of letters overlap (Jaccard). MinHash
proposes the pairs to compare: each text has a number of bands, and two texts that share one are
compared letter by letter, so that no pair is called near which isn't. What MinHash can do is miss
a pair: the nearer the pair, the less likely (see :data:`RECALL`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from or_eval.dataset_builders.engine.workers import Map, here
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.similarity.near_duplicates import NearDuplicates, Places
from or_eval.dataset_builders.similarity.same_text import UNSPACED, same_text
from or_eval.sources.errors import how_to_install

Bands: TypeAlias = npt.NDArray[np.uint64]

RECALL = 0.99
"""Share of the pairs that are just near enough that MinHash is expected to propose, or more."""

_SEARCH = "MinHash"
_BANDS = 32
_MOST_ROWS = 12
_SEED = 42
_RUN, _UNSPACED_RUN = 3, 2
_REMEMBERED = 1 << 16
_ROWS_OF_A_GROUP = 4096
# Knuth's multiplier for a linear congruence of 64 bits: folds the numbers of a band into one.
_FOLD = np.uint64(6364136223846793005)


def check_needs() -> None:
    """Check that the extra ``[build]`` is installed.

    Raises:
        BuildError: It is missing.
    """
    if find_spec("rensa") is None:
        raise BuildError(f"needs rensa: {how_to_install('build')}")


def runs_of_letters(text: str) -> frozenset[str]:
    """Give the runs of three letters of a text, and of two where a script has no spaces.

    A character of these says as much as half a word, so that one that is changed in a short text
    would spoil too many longer runs.
    """
    plain = same_text(text)
    sizes = (_UNSPACED_RUN if UNSPACED.match(letter) else _RUN for letter in plain)
    runs = (
        plain[start : start + size]
        for start, size in enumerate(sizes)
        if start + size <= len(plain)
    )
    return frozenset(runs) or frozenset([plain])


def bands_of(texts: Sequence[str], threshold: float) -> Bands:
    """Give the bands of some thousand texts, a row each, to compare them at a threshold."""
    from rensa import RMinHash

    rows = _rows_of_a_band(threshold)
    runs = [list(runs_of_letters(text)) for text in texts]
    digests = RMinHash.digests_from_token_sets(runs, _BANDS * rows, _SEED)
    parts = np.asarray(digests, np.uint64).reshape(-1, _BANDS, rows)
    # Equal numbers in two bands are no match.
    folded: Bands = np.tile(np.arange(_BANDS, dtype=np.uint64), (len(texts), 1))
    for number in range(rows):
        folded = folded * _FOLD + parts[:, :, number]
    return folded


def near_texts_within(
    texts: Sequence[str],
    bands: Bands,
    threshold: float,
    workers: Map = here,
    known: int | None = None,
) -> NearDuplicates:
    """Choose texts to keep, so that the others are near duplicates of one that is kept.

    Of texts that are near each other the first stays. Every other text is near the one it is
    said to duplicate, the nearest that stays, and not just near something that is near it.

    Args:
        texts: The texts.
        bands: Their bands, for this threshold.
        threshold: Least similarity of near duplicates.
        workers: Where texts are compared, in groups that share no band.
        known: How many texts, the first, all stay, and are all that others are compared with.
    """
    of = np.full(len(texts), -1)
    similarity = np.zeros(len(texts), np.float32)
    groups = _groups(bands)
    parts = (
        _Part(
            [texts[row] for row in rows],
            bands[rows],
            None if known is None else int((rows < known).sum()),
        )
        for rows in groups
    )
    for rows, found in zip(groups, workers(partial(_near_in, threshold), parts), strict=True):
        of[rows] = np.where(found.of >= 0, rows[found.of], -1)
        similarity[rows] = found.similarity
    return NearDuplicates(of, similarity, _SEARCH)


def near_texts_of(
    texts: Sequence[str],
    bands: Bands,
    earlier: Sequence[str],
    earlier_bands: Bands,
    threshold: float,
    workers: Map = here,
) -> NearDuplicates:
    """Find the texts near an earlier set's; :attr:`NearDuplicates.of` counts in these."""
    known = len(earlier)
    both = [*earlier, *texts], np.concatenate([earlier_bands, bands])
    found = near_texts_within(*both, threshold, workers, known)
    return found._replace(of=found.of[known:], similarity=found.similarity[known:])


class _Part(NamedTuple):
    """Texts whose bands no other text has, in the order of all.

    `known` tells how many of them, the first, are an earlier set's; None where there is none.
    """

    texts: list[str]
    bands: Bands
    known: int | None


def _near_in(threshold: float, part: _Part) -> NearDuplicates:
    """Go through texts in order; keep each that is near none that is kept.

    Where some are known, these are kept, and what comes after them is compared with them alone.
    """
    texts, bands, known = part
    of = np.full(len(texts), -1)
    similarity = np.zeros(len(texts), np.float32)
    runs = lru_cache(_REMEMBERED)(lambda row: runs_of_letters(texts[row]))
    shared = _shared(bands)
    kept: defaultdict[int, list[int]] = defaultdict(list)
    for row in range(len(texts)):
        keys = bands[row, shared[row]].tolist()
        if known is None or row >= known:
            proposed = sorted({other for key in keys for other in kept.get(key, ())})
            best, best_of = _nearest(runs(row), [(other, runs(other)) for other in proposed])
            if best >= threshold:
                of[row], similarity[row] = best_of, best
                continue
        if known is None or row < known:
            for key in keys:
                kept[key].append(row)
    return NearDuplicates(of, similarity)


def _groups(bands: Bands) -> list[Places]:
    """Put rows that share bands into groups, some thousand each; most rows are in none."""
    pairs = [np.empty((2, 0), np.int64)]
    for number in range(bands.shape[1]):
        order = np.argsort(bands[:, number], kind="stable")
        same = np.flatnonzero(np.diff(bands[order, number]) == 0)
        pairs.append(np.stack([order[same], order[same + 1]]))
    joined = np.concatenate(pairs, axis=1)
    labels = np.arange(len(bands))
    while True:
        # Each row takes the least label of those it is joined to, and then that row's own label.
        lower = labels.copy()
        for one, other in (joined, joined[::-1]):
            np.minimum.at(lower, one, labels[other])
        lower = lower[lower]
        if (lower == labels).all():
            break
        labels = lower
    rows = np.unique(joined)
    _, which, sizes = np.unique(labels[rows], return_inverse=True, return_counts=True)
    group = ((np.cumsum(sizes) - 1) // _ROWS_OF_A_GROUP)[which]
    return [rows[group == number] for number in np.unique(group)]


def _rows_of_a_band(threshold: float) -> int:
    """Give the most MinHash values that a band may join and still reach the recall.

    Two texts of similarity s agree in a band of r values with the probability s^r.
    """
    needed = 1 - (1 - RECALL) ** (1 / _BANDS)
    if threshold >= needed ** (1 / _MOST_ROWS):
        return _MOST_ROWS
    return max(1, int(math.log(needed) / math.log(threshold)))


def _shared(bands: Bands) -> npt.NDArray[np.bool_]:
    """Tell which bands of which texts another text has as well; most have none."""
    shared = np.zeros(bands.shape, bool)
    for number in range(bands.shape[1]):
        _, which, counts = np.unique(bands[:, number], return_inverse=True, return_counts=True)
        shared[:, number] = counts[which] > 1
    return shared


def _nearest(
    runs: frozenset[str], others: Sequence[tuple[int, frozenset[str]]]
) -> tuple[float, int]:
    """Give the greatest similarity, and the first that has it."""
    best, best_of = 0.0, -1
    for other, found in others:
        same = len(runs & found)
        similarity = same / (len(runs) + len(found) - same)
        if similarity > best:
            best, best_of = similarity, other
    return best, best_of

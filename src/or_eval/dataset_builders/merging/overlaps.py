"""What prompt sets share: equal texts, and texts that are nearly the same by their letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from or_eval.dataset_builders.merging.prompt_sets import Loaded
from or_eval.dataset_builders.similarity.near_by_letters import bands_of, near_texts_of
from or_eval.dataset_builders.similarity.same_text import same_text
from or_eval.schema import PromptRecord


class Pair(NamedTuple):
    """A row of one set that another set has as well, or nearly.

    Attributes:
        sets: Positions of the two sets.
        rows: The row of the first set, and that of the second.
        similarity: Overlap of their letters; 1 for equal texts.
    """

    sets: tuple[int, int]
    rows: tuple[PromptRecord, PromptRecord]
    similarity: float


def shared_rows(sets: Sequence[Loaded], threshold: float | None) -> Iterator[Pair]:
    """Give, for each row of a set, the row of each earlier set that is nearest to it.

    Args:
        sets: The sets.
        threshold: Least similarity; None for equal texts alone.
    """
    texts = [[row.prompt for row in one.rows] for one in sets]
    by_text = [{same_text(row.prompt): row for row in reversed(one.rows)} for one in sets]
    bands = None if threshold is None else [bands_of(some, threshold) for some in texts]
    for first, second in combinations(range(len(sets)), 2):
        left = []
        for number, row in enumerate(sets[second].rows):
            if (equal := by_text[first].get(same_text(row.prompt))) is not None:
                yield Pair((first, second), (equal, row), 1.0)
            else:
                left.append(number)
        if bands is None or threshold is None or not left or not texts[first]:
            continue
        some = [texts[second][number] for number in left]
        near = near_texts_of(some, bands[second][left], texts[first], bands[first], threshold)
        for number, of, similarity in zip(left, near.of, near.similarity, strict=True):
            if of >= 0:
                pair = (sets[first].rows[of], sets[second].rows[number])
                yield Pair((first, second), pair, float(similarity))

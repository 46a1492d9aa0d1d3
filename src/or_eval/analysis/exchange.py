"""What exchange of prompts between groups makes of their differences, if groups make none.

The null of :mod:`or_eval.analysis.group_tests`: what can be exchanged with what, the draws, and the
sizes that single comparisons and the largest of all come to in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from or_eval.analysis.contrasts import Floats
from or_eval.intervals import LEVEL, normal_quantile

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_MOST_SKEWED = 2.0
"""Beyond it the cube root makes too much of what lies near the mean."""
_JUST = 1e-9
_HALVINGS = 40
_LARGE = 20.0
_STRAIGHT = 1e-3
_ROUNDING = 9


class Sides(NamedTuple):
    """Two groups that are compared, by number; one and all others without a second."""

    first: int
    second: int | None = None


class Chance(NamedTuple):
    """What comparisons come to by chance.

    Attributes:
        sizes: Those by exchange, as observed and in each draw: (draws, comparisons).
        largest: The largest of each draw, in order.
        alone: How many others there are, whose chances are added.
    """

    sizes: Floats
    largest: Floats
    alone: int

    @classmethod
    def of(cls, sizes: Floats, alone: int) -> Chance:
        """Put draws in order."""
        return cls(sizes, np.sort(sizes.max(axis=1, initial=0.0)), alone)

    def single(self, sizes: Floats) -> Floats:
        """Give how likely any comparison is to be of such a size or larger."""
        draws = len(self.largest)
        above = draws - np.searchsorted(self.largest, sizes.astype(self.largest.dtype))
        p: Floats = np.minimum(above / draws + self._of_others(sizes), 1.0)
        return p

    def stepwise(self) -> Floats:
        """Give the p-value of each that is exchanged, step by step."""
        observed = self.sizes[0]
        order = np.argsort(observed, kind="stable")
        top, p = np.zeros(len(self.sizes), dtype=self.sizes.dtype), self._of_others(observed)
        for at in order:
            np.maximum(top, self.sizes[:, at], out=top)
            p[at] += (top >= observed[at]).mean()
        p[order] = np.maximum.accumulate(p[order][::-1])[::-1]
        return np.minimum(p, 1.0)

    def critical(self) -> float:
        """Give the size that the largest of all comes to in one of twenty runs."""
        low, high = normal_quantile(), _LARGE
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            kept = float(self.single(np.array([middle]))[0]) >= 1 - LEVEL
            low, high = (middle, high) if kept else (low, middle)
        return high

    def _of_others(self, sizes: Floats) -> Floats:
        return self.alone * beyond(sizes)


def beyond(sizes: Floats) -> Floats:
    """Give how likely a normal number is to be of such a size or larger."""
    return np.array([2 * NormalDist().cdf(-abs(float(size))) for size in sizes])


class Cells(NamedTuple):
    """The prompts of one family in one group each, in order of what they are exchanged with.

    Attributes:
        place: Cell of each prompt.
        group: Group of each cell.
        family: Its family.
        size: Its number of prompts.
        mixed: Whether its family is of several groups.
        kind: Cells of one number have as many prompts, of which the same models were asked.
        stratum: Cells of one number can be exchanged: those of a mixed family, or all others of
            one kind.
    """

    place: Numbers
    group: Numbers
    family: Numbers
    size: Numbers
    mixed: Flags
    kind: Numbers
    stratum: Numbers

    @classmethod
    def laid_out(cls, groups: Numbers, families: Numbers, asked: Numbers, part: Numbers) -> Cells:
        """Lay prompts out in cells, of which those of groups of one part can be exchanged."""
        wide = int(groups.max()) + 1
        names, first, cell = np.unique(
            families * wide + groups, return_index=True, return_inverse=True
        )
        family, group = np.divmod(names, wide)
        size = np.bincount(cell)
        mixed = np.bincount(family)[family] > 1
        kind = size * (int(asked.max()) + 1) + asked[first]
        stratum = np.where(mixed, kind.max() + 1 + family, kind) * len(part) + part[group]
        order = np.lexsort((group, stratum))
        group, family, size, kind = group[order], family[order], size[order], kind[order]
        place = np.argsort(order)[cell]
        return cls(place, group, family, size, mixed[order], kind, stratum[order])

    def means(self, values: Floats) -> Floats:
        """Give the mean of the prompts of each cell."""
        means: Floats = np.bincount(self.place, values) / self.size
        return means

    def unequal(self) -> bool:
        """Tell whether a mixed family has more prompts in one of its groups than in another."""
        one = np.full(int(self.family.max()) + 1, -1)
        one[self.family] = self.size
        return bool((self.mixed & (one[self.family] != self.size)).any())

    def drawn(
        self,
        values: Floats,
        keys: Floats,
        single: bool,
        orders: dict[tuple[bytes, bool], NDArray[np.int32]],
        known: bytes,
    ) -> Floats:
        """Give the cells' means as they are and in each draw: (draws, cells).

        Args:
            values: Value of each prompt.
            keys: A random number for each draw and prompt.
            single: Whether prompts of mixed families are exchanged one by one.
            orders: Orders of draws that were made before, for the same prompts.
            known: Names the prompts that have values, and the parts.
        """
        prompts = np.argsort(self.place, kind="stable")
        apart = single & self.mixed
        counts = np.where(apart, self.size, 1)
        cell = np.repeat(np.arange(len(counts)), counts)
        wanted = np.repeat(apart, self.size)
        wanted[np.cumsum(self.size) - self.size] = True
        units = prompts[wanted]
        held = np.where(apart[cell], values[units], self.means(values)[cell])
        if (known, single) not in orders:
            if (known, not single) not in orders:
                orders.clear()  # those of other prompts; they are large
            order = np.argsort(self.stratum[cell] + keys[:, units], axis=1)
            orders[known, single] = order.astype(np.int32)
        found = np.concatenate([held[None], held[orders[known, single]]])
        if single:
            found = np.add.reduceat(found, np.cumsum(counts) - counts, axis=1) / counts
        return found

    def arranged(self, means: Floats, weights: Floats) -> Floats:
        """Exchange cells so that their weighted sum is least, and so that it is largest."""
        found = np.empty((2, len(means)))
        to = np.lexsort((weights, self.stratum))
        for row, sign in enumerate((-1, 1)):
            found[row, to] = means[np.lexsort((sign * means, self.stratum))]
        return found


class Weights(NamedTuple):
    """A comparison as weights of cells.

    Attributes:
        cells: Weight of each cell.
        first: Which cells are of the first side.
        second: Which of the second.
        left: The part that exchange leaves of what is known of the difference.
        pair: The two groups; None for one and all others.
        both: Of two groups, the cells of families that have both: of the first, and of the second.
    """

    cells: Floats
    first: Flags
    second: Flags
    left: float
    pair: tuple[int, int] | None
    both: tuple[Numbers, Numbers]

    @classmethod
    def of(cls, cells: Cells, side: Sides) -> Weights:
        """Weigh the cells of two sides."""
        first = cells.group == side.first
        second = ~first if side.second is None else cells.group == side.second
        ours, theirs = (np.bincount(cells.family, cells.size * part) for part in (first, second))
        both = (ours > 0) & (theirs > 0)
        matched = np.where(both, ours * theirs / np.maximum(ours + theirs, 1), 0.0)
        sign, inside = first * 1.0 - second, both[cells.family]
        part = np.where(first, ours[cells.family], theirs[cells.family])
        weights = sign * matched[cells.family] * cells.size / np.maximum(part, 1)
        told = float(matched.sum())
        free = ~cells.mixed & (first | second)
        for kind in np.unique(cells.kind[free]):
            stratum = np.flatnonzero(free & (cells.kind == kind))
            share = first[stratum].mean()
            weights[stratum] = (first[stratum] - share) * cells.size[stratum]
            told += float(weights[stratum[first[stratum]]].sum())
        a, b = float(ours[~both].sum()), float(theirs[~both].sum())
        whole = float(matched.sum()) + (a * b / (a + b) if a * b else 0.0)
        one, other = (np.flatnonzero(inside & part) for part in (first, second))
        one, other = (at[np.argsort(cells.family[at])] for at in (one, other))
        pair = None if side.second is None else (side.first, side.second)
        return cls(weights, first, second, told / whole if whole else 0.0, pair, (one, other))

    def plain(self, size: Numbers) -> Floats:
        """Give the weights of the difference of the two sides' means."""
        one, other = (
            part * size / max(int((part * size).sum()), 1) for part in (self.first, self.second)
        )
        weights: Floats = one - other
        return weights

    def sizes(self, drawn: Floats, powers: _Powers) -> Floats:
        """Give the size in each draw of two groups, by what exchange among these two alone does."""
        assert self.pair is not None
        sums, variance, third = np.zeros((3, len(drawn)))
        if len(self.both[0]):
            one, other = self.both
            apart = (drawn[:, one] - drawn[:, other]) * self.cells[one]
            sums, variance = apart.sum(axis=1), (apart**2).sum(axis=1)
        for counts, of_first, of_second, of_third in powers:
            a, b = (int(counts[group]) for group in self.pair)
            n = a + b
            if not a * b:
                continue
            whole, squares, cubes = (
                power[:, self.pair].sum(axis=1) for power in (of_first, of_second, of_third)
            )
            mean = whole / n
            sums = sums + of_first[:, self.pair[0]] - a * mean
            variance = variance + a * b / (n * (n - 1)) * (squares - whole * mean)
            if n > 2:
                part = a * b * (b - a) / (n * (n - 1) * (n - 2))
                third = third + part * (cubes - 3 * mean * squares + 2 * whole * mean**2)
        return _normal(sums, variance, third)


_Powers = list[tuple[Numbers, Floats, Floats, Floats]]
"""For each size of families: how many each group has, and in each draw the sums of their refusals,
of the squares and of the cubes: (draws, groups)."""


def _powers(cells: Cells, drawn: Floats) -> _Powers:
    """Add up the families of one group by their size."""
    found = []
    for size in np.unique(cells.size[~cells.mixed]):
        stratum = np.flatnonzero(~cells.mixed & (cells.size == size))
        totals = drawn[:, stratum] * size
        names, starts, counts = np.unique(
            cells.group[stratum], return_index=True, return_counts=True
        )
        order = np.argsort(starts)
        names, starts, counts = names[order], starts[order], counts[order]
        sums = np.zeros((3, len(drawn), int(cells.group.max()) + 1))
        for power, values in enumerate((totals, totals**2, totals**3)):
            sums[power][:, names] = np.add.reduceat(values, starts, axis=1)
        held = np.zeros(sums.shape[2], dtype=np.int64)
        held[names] = counts
        found.append((held, *sums))
    return found


def sizes_drawn(
    cells: Cells, weighed: Sequence[Weights], drawn: Floats
) -> tuple[list[NDArray[np.float32]], list[float]]:
    """Give each comparison's size in each draw, and the largest of all exchanges.

    Two groups are measured by exchange among themselves, one and all others by that of all.
    """
    found, reach, powers = [], [], _powers(cells, drawn)
    for weights in weighed:
        ends = cells.arranged(drawn[0], weights.cells)
        if weights.pair is None:
            sums = drawn @ weights.cells
            moments = float((sums**2).mean()), float((sums**3).mean())
            sizes, most = _normal(sums, *moments), _normal(ends @ weights.cells, *moments)
        else:
            sizes, most = weights.sizes(drawn, powers), weights.sizes(ends, _powers(cells, ends))
        found.append(sizes.astype(np.float32))
        reach.append(float(most.max()))
    return found, reach


def _normal(sums: Floats, variance: Floats | float, third: Floats | float) -> Floats:
    """Give the size of sums in standard errors, made normal by their skewness."""
    error = np.sqrt(np.broadcast_to(variance, sums.shape))
    some = error > _JUST
    error = np.where(some, error, 1.0)
    skewed = np.clip(np.broadcast_to(third, sums.shape) / error**3, -_MOST_SKEWED, _MOST_SKEWED)
    skewed = np.where(np.abs(skewed) < _STRAIGHT, _STRAIGHT, skewed)
    root = np.cbrt(np.maximum(skewed / 2 * sums / error + 1, 0))
    size: Floats = np.abs(6 / skewed * (root - 1) + skewed / 6)
    return np.where(some, size, 0.0).round(_ROUNDING)

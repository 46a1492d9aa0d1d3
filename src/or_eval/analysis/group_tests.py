"""One test for groups of prompts: categories, languages, methods, sources.

Groups hold other prompts, so that no prompt's difference can be flipped, as it is where models are
compared (:mod:`or_eval.analysis.contrasts`). What can be exchanged, if groups make no
difference, is which prompts are of which group.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from or_eval.analysis.contrasts import CHANCE, COLUMNS, MORE, UNKNOWN, Floats
from or_eval.analysis.exchange import (
    Cells,
    Chance,
    Flags,
    Numbers,
    Sides,
    Weights,
    beyond,
    sizes_drawn,
)
from or_eval.intervals import LEVEL, Estimate, effective_size, normal_quantile

_DRAWS, _FEWEST_DRAWS = 1999, 199
_PROMPTS_DRAWN = 2_000_000
"""Of many prompts fewer draws are made: the larger the groups, the nearer to normal their sizes."""
_SEED = 20250101
_INFORMED = 0.5
"""How much of what two sides tell of their difference has to be left where only families of one
size are exchanged; with less, the intervals of their rates tell more."""
_JUST = 1e-9
_MOST_ALIKE = 0.95


class Scored(NamedTuple):
    """What prompts are compared by.

    Attributes:
        scores: A score of each prompt, NaN where there is none: its refused share, or what it
            comes to over several models.
        shares: The refused share of each.
        moved: By how much the scores change if all prompts of a group are refused by one more:
            (prompts, groups). None where scores are shares.
        asked: Number of the set of models that were asked about each prompt's group. None where it
            is one model.
    """

    scores: Floats
    shares: Floats
    moved: Floats | None = None
    asked: Numbers | None = None


def compare_sides(
    scored: Sequence[Scored], groups: Numbers, families: Numbers, sides: Sequence[Sides]
) -> pd.DataFrame:
    """Test all comparisons of groups together, by exchange of their prompts.

    Where all prompts of a family are of one group, as of a category, whole families are exchanged
    with families of as many prompts; where they are of several, as languages or methods of one
    seed, those of one group with those of another. So the test holds if groups make no difference
    at all, however alike the prompts of a family and however unequal the groups are. The families
    of one group may go together more than those of another, though: where families of several
    prompts are of one group each, the interval of the two rates, which doesn't suppose that all are
    alike, has to leave out zero as well; of two groups, widened for all comparisons. Where a
    family has more prompts in one of its groups than in another, single prompts are exchanged as
    well, and the larger p counts: a prompt and the mean of many can't be exchanged as they are, nor
    prompts one by one that were all written from one translation.

    What the prompts of the first side differ by from those that they can be exchanged with is
    added up (as Mantel and Haenszel, 1959, do over strata) and divided by the standard error that
    exchange gives it; of two groups, exchange among these alone, so that a third that is unlike
    them makes no difference (Chung and Romano, 2013). Where few are refused or one side is small,
    such numbers have one long tail, which their skewness makes normal (Wilson and Hilferty, 1931):
    small groups would stand out too often, and hide large ones. Each comparison is held against
    the largest of itself and of all that are smaller, in the same draws for all models, from the
    largest on until one isn't beyond chance (Westfall and Young, 1993). Groups that were told apart
    are exchanged no more when those are tested that remain, since a large group that is hardly
    ever refused would say nothing of what small ones come to that often are. One that is told from
    some alone holds these together with the rest: the group that is told from most of its part is
    set aside, and what is said of the others has to hold among them, until nothing is.

    Sides with hardly a family in common or of one size leave too little to exchange. They are told
    apart by the intervals of their rates (Zou and Donner, 2008); p is then a sum of both kinds'.

    What no exchange of these responses would make more than chance can't be told: a side has too
    few families, or too few responses are refused, or answered.

    Args:
        scored: What prompts are compared by, one for each model.
        groups: Number of each prompt's group.
        families: Number of each prompt's family.
        sides: The comparisons that are made for each model: all of two groups, or all of one and
            the others.

    Returns:
        A row per model and comparison: ``rate_a``, ``rate_b`` and what
        :data:`or_eval.analysis.contrasts.COLUMNS` names: the ``difference`` with ``lower`` and
        ``upper`` (made of the rates' intervals, widened for all rows; they leave out zero where p
        is under 0.05), ``p``, ``verdict`` and ``families``.
    """
    draws = min(max(_PROMPTS_DRAWN // max(len(groups), 1), _FEWEST_DRAWS), _DRAWS)
    keys = np.random.default_rng(_SEED).random((draws, len(groups)))
    parts = np.zeros((len(scored), int(groups.max(initial=0)) + 1), dtype=np.int64)
    table, p, most, critical = _tested(scored, groups, families, sides, keys, parts)
    counts = np.array(
        [np.bincount(groups[~np.isnan(one.scores)], minlength=parts.shape[1]) for one in scored]
    )
    aside = np.zeros(parts.shape, dtype=bool)
    while sides[0].second is not None:
        alike = (p >= 1 - LEVEL).reshape(len(scored), len(sides))
        split = _split(sides, alike, aside)
        if (split == parts).all():
            more = [_most_told(*of, sides) for of in zip(parts, alike, counts, strict=True)]
            aside = aside | np.array(more)
            split = _split(sides, alike, aside)
            if (split == parts).all():
                break
        parts = split
        p = np.maximum(p, _tested(scored, groups, families, sides, keys, parts)[1])
    told = most < 1 - LEVEL
    sure = told & (p < 1 - LEVEL)
    difference, wider = table["difference"], critical / normal_quantile()
    lower = (difference - wider * table.pop("below")).clip(lower=-1)
    upper = (difference + wider * table.pop("above")).clip(upper=1)
    up, down = sure & (difference > 0), sure & (difference < 0)
    table["lower"] = np.where(up, lower.clip(lower=_JUST), lower.clip(upper=0))
    table["upper"] = np.where(down, upper.clip(upper=-_JUST), upper.clip(lower=0))
    table["p"] = p
    table.loc[~told, ["lower", "upper", "p"]] = np.nan
    table["verdict"] = np.where(sure, MORE, np.where(told, CHANCE, UNKNOWN))
    return table[["rate_a", "rate_b", *COLUMNS]]


def _tested(
    scored: Sequence[Scored],
    groups: Numbers,
    families: Numbers,
    sides: Sequence[Sides],
    keys: Floats,
    parts: Numbers,
) -> tuple[pd.DataFrame, Floats, Floats, float]:
    """Test comparisons by exchange among the groups of each part: (models, groups).

    Returns:
        The rows, their p-values and those that exchange could have given them, and the size that
        the largest of all comes to by chance. Those of groups of two parts have a p of zero.
    """
    orders: dict[tuple[bytes, bool], NDArray[np.int32]] = {}
    models = [
        _compared(one, groups, families, sides, keys, part, orders)
        for one, part in zip(scored, parts, strict=True)
    ]
    table = pd.DataFrame([row._asdict() for rows, _ in models for row in rows])
    exchanged, whole = (table.pop(name).to_numpy(dtype=bool) for name in ("exchanged", "whole"))
    sizes, reach = (table.pop(name).to_numpy(dtype=np.float64) for name in ("size", "reach"))
    inside = np.array(
        [
            one.second is None or part[one.first] == part[one.second]
            for part in parts
            for one in sides
        ]
    )
    alone = int((~exchanged & (reach > 0) & inside).sum())
    p, most, critical = np.zeros(len(table)), np.zeros(len(table)), normal_quantile()
    for level in range(max(len(sizes) for _, sizes in models)):
        drawn = [of[min(level, len(of) - 1)] for _, of in models]
        chance = Chance.of(np.concatenate(drawn, axis=1)[:, inside[exchanged]], alone)
        found = chance.single(sizes)
        found[exchanged & inside] = chance.stepwise()
        by_interval = beyond(sizes) if sides[0].second is None else chance.single(sizes)
        found[whole] = np.maximum(found, by_interval)[whole]
        p, most = np.maximum(p, found), np.maximum(most, chance.single(reach))
        critical = max(critical, chance.critical())
    return table, np.where(inside, p, 0.0), most, critical


def _split(sides: Sequence[Sides], alike: Flags, aside: Flags) -> Numbers:
    """Give the part of each group: those that aren't told apart, directly or through others.

    Groups that are set ``aside`` are by themselves.
    """
    parts = np.tile(np.arange(aside.shape[1]), (len(aside), 1))
    for part, is_alike, is_aside in zip(parts, alike, aside, strict=True):
        for side, linked in zip(sides, is_alike, strict=True):
            if linked and side.second is not None and not is_aside[[side.first, side.second]].any():
                one, other = part[side.first], part[side.second]
                part[part == max(one, other)] = min(one, other)
    return parts


def _most_told(part: Numbers, alike: Flags, counts: Numbers, sides: Sequence[Sides]) -> Flags:
    """Choose in each part the group that is told apart from most others of it, if any is."""
    told = np.zeros(len(part), dtype=np.int64)
    for side, linked in zip(sides, alike, strict=True):
        if not linked and side.second is not None and part[side.first] == part[side.second]:
            told[[side.first, side.second]] += 1
    order = np.lexsort((counts, told))
    last = {int(part[group]): int(group) for group in order if told[group]}
    chosen = np.zeros(len(part), dtype=bool)
    chosen[list(last.values())] = True
    return chosen


class _Row(NamedTuple):
    """A comparison.

    Attributes:
        rate_a: Rate of the first side.
        rate_b: Rate of the second.
        difference: The difference, by exchange or else of the rates.
        below: How far below it the interval of this comparison alone begins.
        above: How far above it that ends.
        families: Number of families on both sides.
        exchanged: Whether it is tested by exchange.
        whole: Whether families of several prompts are exchanged as wholes.
        size: How large it is, in standard errors that its interval has.
        reach: How large it could have been with these responses.
    """

    rate_a: float = np.nan
    rate_b: float = np.nan
    difference: float = np.nan
    below: float = np.nan
    above: float = np.nan
    families: int = 0
    exchanged: bool = False
    whole: bool = False
    size: float = 0.0
    reach: float = 0.0

    def at(self, difference: float) -> _Row:
        """Give the row at a difference of its own, as large as its interval makes it."""
        width = self.below if difference > 0 else self.above
        size = normal_quantile() * abs(difference) / width if width > 0 else 0.0
        return self._replace(difference=difference, size=size)


def _compared(
    one: Scored,
    groups: Numbers,
    families: Numbers,
    sides: Sequence[Sides],
    keys: Floats,
    part: Numbers,
    orders: dict[tuple[bytes, bool], NDArray[np.int32]],
) -> tuple[list[_Row], list[Floats]]:
    """Compare the sides of one model by the random ``keys`` of prompts.

    Returns:
        The comparisons, and the sizes of those by exchange, as observed and in each draw: (draws,
        comparisons). Where cells of mixed families are unequal, there are two: cells exchanged as
        wholes, and prompt by prompt.
    """
    known = ~np.isnan(one.scores)
    if not known.any():
        return [_Row()] * len(sides), [np.zeros((len(keys) + 1, 0))]
    scores, shares = one.scores[known], one.shares[known]
    moved = None if one.moved is None else one.moved[known]
    asked = np.zeros(int(known.sum()), np.int64) if one.asked is None else one.asked[known]
    several = int(asked.max()) + 1
    families = np.unique(families[known] * several + asked, return_inverse=True)[1]
    cells = Cells.laid_out(groups[known], families, asked, part)
    weighed = [Weights.of(cells, side) for side in sides]
    used = [weights for weights in weighed if weights.left >= _INFORMED]
    sizes, reach = [], np.full(len(used), np.inf)
    name = known.tobytes() + part.tobytes()
    for single in (False, True) if cells.unequal() else (False,):
        drawn = cells.drawn(scores, keys[:, known], single, orders, name)
        found, most = sizes_drawn(cells, used, drawn)
        sizes.append(np.column_stack([np.zeros((len(drawn), 0), np.float32), *found]))
        reach = np.minimum(reach, most)
    reached, rates = iter(reach.tolist()), _Rates(shares, families)
    rows = []
    for side, weights in zip(sides, weighed, strict=True):
        row, exchanged = rates.row(cells.place, weights), weights.left >= _INFORMED
        by = weights.cells if exchanged else weights.plain(cells.size)
        first: Floats = weights.first[cells.place].astype(np.float64)
        if moved is not None:
            first = moved[:, side.first]
        apart, unit = (float(cells.means(values) @ by) for values in (scores, first))
        row = row.at(apart / unit if unit else np.nan)
        if exchanged:
            whole = ~cells.mixed & (cells.size > 1) & (weights.first | weights.second)
            row = row._replace(exchanged=True, whole=bool(whole.any()), reach=next(reached))
        elif several > 1:
            # The rates of other models on each side say nothing of the prompts.
            row = row._replace(reach=0.0)
        rows.append(row)
    return rows, sizes


class _Rates:
    """The rates of sides with their intervals."""

    def __init__(self, shares: Floats, families: Numbers) -> None:
        self.shares, self.families = shares, families
        self.known: dict[bytes, tuple[Estimate, float]] = {}

    def row(self, place: Numbers, weights: Weights) -> _Row:
        """Compare the rates of two sides."""
        sides = weights.first[place], weights.second[place]
        if not all(side.any() for side in sides):
            return _Row()
        (one, far_one), (other, far_other) = (self._of(side) for side in sides)
        apart, alike = one.value - other.value, self._alike(*sides, one.value, other.value)
        below = _hypotenuse(one.value - one.lower, other.upper - other.value, alike)
        above = _hypotenuse(one.upper - one.value, other.value - other.lower, alike)
        reach = normal_quantile() / sqrt(far_one**2 + far_other**2)
        families = len(np.unique(self.families[sides[0] | sides[1]]))
        return _Row(one.value, other.value, apart, below, above, families, reach=reach)

    def _of(self, side: Flags) -> tuple[Estimate, float]:
        """Give the rate of a side, and how far its interval would reach if all were refused."""
        name = side.tobytes()
        if name not in self.known:
            values = self.shares[side]
            size = effective_size(values, self.families[side])
            whole = effective_size(np.ones(len(values)), self.families[side])
            share = float(values.mean())
            self.known[name] = (
                Estimate(share, 0.0, 1.0) if size is None else size.interval(share),
                1.0 if whole is None else 1 - whole.interval(1.0).lower,
            )
        return self.known[name]

    def _alike(self, first: Flags, second: Flags, one: float, other: float) -> float:
        """Give how far the rates of two sides go with each other, by families that have both."""
        a, b = (
            np.bincount(self.families[side], self.shares[side] - rate, self.families.max() + 1)
            for side, rate in ((first, one), (second, other))
        )
        spread = sqrt(float((a * a).sum() * (b * b).sum()))
        return min(max(float((a * b).sum()) / spread, 0.0), _MOST_ALIKE) if spread else 0.0


def _hypotenuse(one: float, other: float, alike: float) -> float:
    return sqrt(one * one + other * other - 2 * alike * one * other)

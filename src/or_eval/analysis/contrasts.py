"""One test for all comparisons: families of prompts as units, with p-values and intervals at once.

Every comparison of the same prompts, between models, runs or settings, goes through
:func:`contrasts` or, where it is no difference of columns, :func:`compare_all`; groups of other
prompts are compared by :mod:`or_eval.analysis.group_tests`. What is compared are means over
prompts, of which a contrast tells how far each prompt moves the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from math import sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from or_eval.analysis.corrections import Corrected
from or_eval.intervals import (
    LEVEL,
    Estimate,
    effective_size,
    family_codes,
    normal_quantile,
    with_worst_case,
)

Floats = NDArray[np.float64]

FEWEST_FAMILIES = 6
"""With fewer, no flip is rare enough: five signs give sixteen results up to sign."""

MORE, CHANCE, UNKNOWN = "more than chance", "may be chance", "can't be told"
COLUMNS = ("difference", "lower", "upper", "p", "verdict", "families")
ALIKE = ("alike_within", "alike_within_lower", "alike_within_upper")
"""The least margin that both one-sided bounds of a difference lie in, and these."""

_POOLED_FAMILIES = 10
_EXACT_FAMILIES = 12
_FLIPS = 2000
_CELLS_AT_ONCE = 4_000_000
_SEED = 20250101
_HALVINGS = 20
_JUST = 1e-9
"""The bound nearest to zero of an interval that leaves out zero alone."""
_ROUNDING = 1e-9
_BEYOND = 0.03
"""One-sided error of margins by flips; what that comes to with ten families of one mind is twice
as much, since their differences are skewed where they aren't zero (``benchmarks/coverage.py``)."""


class Contrast(NamedTuple):
    """A difference of two means, and what each prompt adds to it.

    Attributes:
        difference: The observed difference.
        residuals: How far each prompt moves it from its mean, (prompts,); they add up to zero.
        weights: Each prompt's share in the difference, (prompts,); they add up to one, and are
            zero for prompts that have no part in it.
        least: What the variance of the difference comes to, at a difference of ``d``, at least:
            so many times ``|d| (1 - |d|)``.
        moved: How many prompts differ at all: on so many rests what is known of the families.
        up: What prompts add to the difference that are higher on its first side.
        down: What those take away that are higher on the second.
        below: Variance that a correction of the difference by a sample of the truth adds to how
            far the true one may be below it.
        above: The same for above: a sample that found few errors leaves room for more, not fewer.
        span: Between what the difference lies by the intervals of its two sides' rates.
        floor: What the standard error is at least, beside that of flips. Where one prompt stands
            against the mean of many, families' differences aren't as likely to be of either sign:
            flips alone would call it different too often where few are refused, or families few.
    """

    difference: float
    residuals: Floats
    weights: Floats
    least: float
    moved: float
    up: float
    down: float
    below: float = 0.0
    above: float = 0.0
    floor: float = 0.0
    span: tuple[float, float] = (-np.inf, np.inf)


def contrasts(
    means: pd.DataFrame,
    families: pd.Series[str],
    pairs: Sequence[tuple[Any, Any]] | None = None,
    *,
    corrected: Callable[[Any, pd.Index[Any]], Corrected] | None = None,
    strata: ArrayLike | None = None,
    floors: Sequence[float] = (),
    cautious: bool = False,
) -> pd.DataFrame:
    """Compare columns of per-prompt means, each pair on the prompts that both have.

    All pairs are one question: p-values and intervals allow for their number
    (:func:`compare_all`).

    Args:
        means: A row per prompt id, a column per model, run or side: the refused share of the
            responses to the prompt (:func:`or_eval.analysis.rates.prompt_means`), missing where
            none has a verdict.
        families: Family of each prompt, by id.
        pairs: Columns to compare; every two by default.
        corrected: Gives the correction of a column's mean over some of the prompts.
        strata: Sign of each prompt where two kinds of prompts count half each: 1 where a high
            value is good, -1 where a low one is.
        floors: Least standard error of each difference, where there is one.
        cautious: As for :func:`compare_all`.

    Returns:
        A row per pair of columns: ``a``, ``b``, ``n`` (prompts that both have), ``families``,
        ``rate_a``, ``rate_b``, ``difference`` (``rate_a - rate_b``) with ``lower`` and ``upper``,
        ``a_more`` and ``b_more`` (prompts that one refused more often than the other), ``p`` and
        ``verdict``, and :data:`ALIKE`.

    Raises:
        ValueError: A prompt has no family.
    """
    of = families.reindex(means.index)
    if of.isna().any():
        raise ValueError(f"no family for prompt {of.index[of.isna()][0]!r}: index them by its id")
    codes, _ = family_codes(of)
    signs = np.ones(len(means)) if strata is None else np.asarray(strata, dtype=np.float64)
    chosen = list(combinations(means.columns, 2)) if pairs is None else list(pairs)
    values = {name: means[name].to_numpy(np.float64, na_value=np.nan) for name in means}
    sides: dict[tuple[Any, bytes], _Side] = {}

    def side(name: Any, where: NDArray[np.bool_]) -> _Side:
        key = name, where.tobytes()
        if key not in sides:
            known = None if corrected is None else corrected(name, means.index[where])
            sides[key] = _Side.of(values[name][where], codes[where], known)
        return sides[key]

    rows, built = [], []
    for (a, b), floor in zip(chosen, floors or [0.0] * len(chosen), strict=True):
        one, other = values[a], values[b]
        both = ~np.isnan(one) & ~np.isnan(other)
        parts = [both & (signs == sign) for sign in np.unique(signs)]
        contrast, shift = paired(one, other, signs)._replace(floor=floor), np.zeros(2)
        if all(part.any() for part in parts):
            of_parts = [(side(a, part), side(b, part), signs[part][0]) for part in parts]
            contrast, shift = _beside(contrast, of_parts)
        built.append(contrast)
        rates = [column[both].mean() if both.any() else np.nan for column in (one, other)]
        more, less = int((one[both] > other[both]).sum()), int((one[both] < other[both]).sum())
        rows.append((a, b, int(both.sum()), *(rates + shift), more, less))
    names = ["a", "b", "n", "rate_a", "rate_b", "a_more", "b_more"]
    found = pd.DataFrame(rows, columns=names)
    table = pd.concat([found, compare_all(built, codes, cautious)], axis=1)
    order = ["a", "b", "n", "families", "rate_a", "rate_b", "difference", "lower", "upper"]
    return table[[*order, "a_more", "b_more", "p", "verdict", *ALIKE]]


class _Side(NamedTuple):
    """One side of a difference.

    Attributes:
        shift: What a correction adds to its rate.
        rate: The rate with its interval.
        sample: The rate with the bounds that the sample leaves which corrects it.
    """

    shift: float
    rate: Estimate
    sample: Estimate

    @classmethod
    def of(cls, values: Floats, codes: NDArray[np.int64], known: Corrected | None) -> _Side:
        """Give the rate of some prompts, corrected by what is known of them."""
        size, share = effective_size(values, codes), float(values.mean())
        if known is None:
            rate = Estimate(share, 0.0, 1.0) if size is None else size.interval(share)
            return cls(0.0, rate, Estimate(share, share, share))
        return cls(known.shift, known.for_prompts(size), known.estimate)


def _beside(
    contrast: Contrast, sides: Sequence[tuple[_Side, _Side, float]]
) -> tuple[Contrast, Floats]:
    """Put beside a difference what is known of its sides, and correct it by that.

    Where a sample corrects them, the squares of how far each bound lies from its rate add up (Zou
    and Donner, 2008).

    Args:
        contrast: The difference.
        sides: Of each stratum, its two sides and its sign.

    Returns:
        The contrast, and what the corrections add to the rates of its sides.
    """
    span, shift, part = np.zeros(2), np.zeros(2), 1 / len(sides)
    for one, other, sign in sides:
        best, worst = (one, other) if sign > 0 else (other, one)
        span += part * np.array(
            [best.rate.lower - worst.rate.upper, best.rate.upper - worst.rate.lower]
        )
        shift += part * np.array([one.shift, other.shift])
        ends = best.sample, worst.sample
        below, above = (
            (part * np.hypot(high.value - high.lower, low.upper - low.value) / normal_quantile())
            ** 2
            for high, low in (ends, ends[::-1])
        )
        contrast = contrast._replace(
            difference=contrast.difference + part * (best.shift - worst.shift),
            below=contrast.below + below,
            above=contrast.above + above,
        )
    return contrast._replace(span=(float(span[0]), float(span[1]))), shift


def paired(one: ArrayLike, other: ArrayLike, strata: ArrayLike | None = None) -> Contrast:
    """Contrast two means over the same prompts.

    Args:
        one: Value of each prompt, NaN where there is none: (prompts,).
        other: The values to compare them with.
        strata: Sign of each prompt where two kinds of prompts count half each: 1 where a high
            value is good, -1 where a low one is.
    """
    gaps = np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64)
    signs = np.ones(len(gaps)) if strata is None else np.asarray(strata, dtype=np.float64)
    parts = [(signs == sign) & ~np.isnan(gaps) for sign in np.unique(signs)]
    weights, residuals = np.zeros(len(gaps)), np.zeros(len(gaps))
    if not all(part.any() for part in parts):
        return _nothing(len(gaps))
    up = down = 0.0
    for part in parts:
        weights[part] = 1 / len(parts) / part.sum()
        toward = signs[part] * gaps[part]
        residuals[part] = weights[part] * (toward - toward.mean())
        up += float(toward.clip(min=0).mean()) / len(parts)
        down -= float(toward.clip(max=0).mean()) / len(parts)
    least, moved = float((weights**2).sum()), float(np.nansum(np.abs(gaps)))
    return Contrast(up - down, residuals, weights, least, moved, up, down)


def _nothing(size: int) -> Contrast:
    return Contrast(np.nan, np.zeros(size), np.zeros(size), 0.0, 0.0, 0.0, 0.0)


def compare_all(
    contrasts: Sequence[Contrast],
    families: ArrayLike,
    cautious: bool = False,
) -> pd.DataFrame:
    """Test contrasts together, and give each a p-value and an interval from the same procedure.

    The families' signs are flipped (Canay, Romano and Shaikh, 2017), all contrasts at once, and
    each contrast is held against the largest of itself and of all that are smaller, from the
    largest on until one is not beyond chance (Westfall and Young, 1993; Romano and Wolf, 2005): the
    probability that any equal pair is called different is held at about 5 %, however many pairs
    there are and however alike the prompts of a family (``benchmarks/coverage.py``). A contrast
    is divided by a standard error that takes its families for of one mind as far as they are seen
    to be, drawn towards what all contrasts show and, where few prompts differ at all, towards the
    worst case; which one it is changes the power of the test and not its error, since flips leave
    it as it is.

    Of flips that come to exactly the observed difference half count (the mid-p: Lancaster, 1961;
    Hwang and Yang, 2001): ten families have few flips, and many that tie.

    The interval holds every difference that is not beyond what the largest of all contrasts comes
    to by chance, with a standard error at that difference: were it larger than the one seen, more
    prompts would differ (Tango, 1998), so that it has a width where no prompt differs. It leaves
    out zero where p is under 0.05, and nothing but zero on its side where it takes the test's steps
    to tell so.

    Args:
        contrasts: What to compare.
        families: Family of each prompt.
        cautious: Whether p is what more flips would hardly exceed, where not all are taken: two
            standard errors above what those taken give: few verdicts hang on which they are.

    Returns:
        A row per contrast: ``difference`` with ``lower`` and ``upper``, ``p`` (corrected for the
        number of contrasts), ``verdict`` (``more than chance``, ``may be chance``, or ``can't be
        told`` with fewer than six families) and ``families``; and ``alike_within_lower`` and
        ``alike_within_upper``, beyond which a difference lies in at most 6 of 100 runs (on either
        side, of all contrasts any), with ``alike_within``, the larger: the two are alike
        within any larger margin (Schuirmann, 1987), the first side is no worse by any beyond the
        upper bound.
    """
    codes, count = family_codes(families)
    known = np.array([len(np.unique(codes[one.weights > 0])) for one in contrasts], dtype=np.int64)
    told = known >= FEWEST_FAMILIES
    names = (*COLUMNS, *ALIKE)
    table: dict[str, NDArray[Any]] = {name: np.full(len(known), np.nan) for name in names}
    table["difference"] = np.array([one.difference for one in contrasts])
    table |= {"verdict": np.full(len(known), UNKNOWN, dtype=object), "families": known}
    if told.any():
        informed = [one for one, is_told in zip(contrasts, told, strict=True) if is_told]
        for name, values in _Scales.of(informed, codes, count).tested(cautious).items():
            table[name][told] = values
    return pd.DataFrame(table)


class _Scales(NamedTuple):
    """Contrasts added up over prompts and families, so that their variances are cheap to tell.

    ``of_prompts`` and ``of_families`` are the sums of ``(residual + shift * weight)^2`` of each
    contrast, as the coefficients of a quadratic in the shift.
    """

    difference: Floats
    least: Floats
    moved: Floats
    up: Floats
    down: Floats
    below: Floats
    above: Floats
    floor: Floats
    span: Floats
    by_family: Floats
    of_prompts: tuple[Floats, Floats, Floats]
    of_families: tuple[Floats, Floats, Floats]
    effective: Floats
    pool: float

    @classmethod
    def of(cls, contrasts: Sequence[Contrast], codes: NDArray[np.int64], count: int) -> _Scales:
        """Add contrasts up by the numbers of the prompts' families."""
        difference, least, moved, up, down, below, above, floor = np.array(
            [
                (c.difference, c.least, c.moved, c.up, c.down, c.below, c.above, c.floor)
                for c in contrasts
            ]
        ).T
        weights = np.array([np.bincount(codes, one.weights, count) for one in contrasts])
        residuals = np.array([np.bincount(codes, one.residuals, count) for one in contrasts])
        prompts = [_quadratic(one.residuals, one.weights) for one in contrasts]
        first, second, third = np.array(prompts).T
        of_families = _quadratic(residuals, weights)
        effective = 1 / of_families[2]
        spread = float((of_families[0] * effective / (effective - 1)).sum())
        return cls(
            *(difference, least, moved, up, down, below, above, floor),
            np.array([one.span for one in contrasts]).T,
            residuals + difference[:, None] * weights,
            (first, second, third),
            of_families,
            effective,
            spread / float(first.sum()) if first.any() else 1.0,
        )

    def error(self, at: Floats | float) -> Floats:
        """Give the standard errors, but no less than the floor, if differences were ``at``."""
        correction = np.where(at < self.difference, self.below, self.above)
        error: Floats = np.maximum(np.sqrt(self.of_prompts_alone(at) + correction), self.floor)
        return error

    def of_prompts_alone(self, at: Floats | float) -> Floats:
        """Give what other prompts add to the variances, corrections aside."""
        shift = self.difference - at
        prompts, families = _value(self.of_prompts, shift), _value(self.of_families, shift)
        own = np.divide(families, prompts, np.full_like(prompts, self.pool), where=prompts > 0)
        effect = (self.effective * own + _POOLED_FAMILIES * self.pool) / (
            self.effective + _POOLED_FAMILIES
        )
        worst = self.of_families[2] / self.of_prompts[2]
        effect = with_worst_case(effect, worst, self.moved, self.effective)
        more = self._apart(at) - self.up - self.down
        at_zero = _value(self.of_prompts, self.difference)
        larger = at_zero + self.least * (more - at * at)
        prompts = np.maximum(prompts, np.where(more > 0, larger, 0))
        prompts = np.maximum(prompts, self.least * np.abs(at) * (1 - np.abs(at)))
        variance: Floats = prompts * effect
        return variance

    def _apart(self, at: Floats | float) -> Floats:
        """Give the share of prompts that differ, most likely, if the true differences were ``at``.

        Tango's (1998) estimate: the root of a quadratic for those that are higher on the second.
        """
        linear = (2 - self.up + self.down) * at - self.up - self.down
        square = linear**2 + 8 * self.down * at * (1 - at)
        down = (np.sqrt(np.maximum(square, 0)) - linear) / 4
        apart: Floats = 2 * down + at
        return apart

    def edges(self, end: float, critical: float) -> Floats:
        """Give the differences nearest to ``end``, -1 or 1, that the test doesn't reject."""

        def kept(at: Floats) -> NDArray[np.bool_]:
            inside: NDArray[np.bool_] = np.abs(at - self.difference) <= critical * self.error(at)
            return inside

        inside, outside = self.difference, np.full_like(self.difference, end)
        inside = np.where(kept(outside), outside, inside)
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            stays = kept(middle)
            inside, outside = np.where(stays, middle, inside), np.where(stays, outside, middle)
        return inside

    def tested(self, cautious: bool) -> dict[str, Any]:
        """Give the columns that tell what the test says."""
        error = self.error(0.0)
        size = np.divide(np.abs(self.difference), error, np.zeros_like(error), where=error > 0)
        p, *criticals = self._flipped(size, cautious)
        sure = p < 1 - LEVEL
        together = NormalDist().inv_cdf(1 - (1 - LEVEL) / 2 / len(size)) / normal_quantile()
        of_rates = self.difference + max(together / sqrt(2), 1.0) * (self.span - self.difference)
        (lower, upper), (least, most) = (
            (
                np.maximum(self.edges(-1, critical), of_rates[0]),
                np.minimum(self.edges(1, critical), of_rates[1]),
            )
            for critical in map(
                max, criticals, (normal_quantile(), NormalDist().inv_cdf(1 - _BEYOND))
            )
        )
        first, second = sure & (self.difference > 0), sure & (self.difference < 0)
        return {
            "lower": np.where(first, np.maximum(lower, _JUST), np.minimum(lower, 0)),
            "upper": np.where(second, np.minimum(upper, -_JUST), np.maximum(upper, 0)),
            "p": np.where(size > 0, p, 1.0),
            "verdict": np.where(sure, MORE, CHANCE),
            **dict(zip(ALIKE, (np.maximum(-least, most), least, most), strict=True)),
        }

    def _flipped(self, size: Floats, cautious: bool) -> tuple[Floats, float, float]:
        """Flip the families' signs, and hold each contrast against what flips make of them.

        Args:
            size: Each contrast in standard errors.
            cautious: Whether p allows for flips that weren't taken.

        Returns:
            Each contrast's p-value, corrected for their number step by step, and the sizes that the
            largest of all doesn't come to by chance: at a level of 95 % and at that of margins.
        """
        error = np.sqrt(self.of_prompts_alone(0.0))
        standard = np.divide(
            *(self.by_family, error[:, None], np.zeros_like(self.by_family)),
            where=error[:, None] > 0,
        )
        order = np.argsort(size)
        standard, size = standard[order][:, (standard != 0).any(axis=0)].T, size[order]
        reached, largest, flips = np.zeros(len(size)), [], 0
        for signs in _signs(len(standard)):
            # The largest of a contrast and of all that are smaller (Romano and Wolf, 2005).
            top = np.maximum.accumulate(np.abs(signs @ standard), axis=1)
            as_large = np.abs(top - size) <= _ROUNDING
            reached += ((top > size) & ~as_large).sum(axis=0) + as_large.sum(axis=0) / 2
            largest.append(top[:, -1])
            flips += len(signs)
        drawn = flips if cautious and len(standard) > _EXACT_FAMILIES else 0
        p = np.empty_like(size)
        p[order] = np.maximum.accumulate(_at_most(reached / flips, drawn)[::-1])[::-1]
        sizes, counts = np.unique(np.concatenate(largest).round(9), return_counts=True)
        chance = _at_most(1 - (np.cumsum(counts) - counts / 2) / counts.sum(), drawn)
        inside, alike = (
            float(sizes[chance >= error].max(initial=0.0)) for error in (1 - LEVEL, 2 * _BEYOND)
        )
        return p, inside, alike


def _signs(families: int) -> Iterator[NDArray[Any]]:
    """Give signs of the families: all up to a turn of all where these are few, or random ones."""
    if families <= _EXACT_FAMILIES:
        half = np.arange(2 ** max(families - 1, 0))
        yield 2.0 * ((half[:, None] >> np.arange(families)) & 1) - 1
        return
    yield np.ones((1, families))  # the signs as they were are one of the flips
    random = np.random.default_rng(_SEED)
    step = max(1, _CELLS_AT_ONCE // families)
    for start in range(0, _FLIPS, step):
        yield 2.0 * random.integers(0, 2, (min(step, _FLIPS - start), families), np.int8) - 1


def _quadratic(residuals: Floats, weights: Floats) -> tuple[Any, Any, Any]:
    products = (residuals * residuals, 2 * residuals * weights, weights * weights)
    first, second, third = (product.sum(axis=-1) for product in products)
    return first, second, third


def _value(quadratic: tuple[Floats, Floats, Floats], shift: Floats) -> Floats:
    value: Floats = np.maximum(quadratic[0] + shift * (quadratic[1] + shift * quadratic[2]), 0)
    return value


def _at_most(p: Floats, drawn: int) -> Floats:
    """Give what p hardly exceeds if more flips were drawn; p itself with none that were."""
    return np.minimum(p + 2 * np.sqrt(p * (1 - p) / drawn), 1.0) if drawn else p

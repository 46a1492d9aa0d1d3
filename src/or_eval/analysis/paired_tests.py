"""One test for all comparisons: families of prompts as units, with p-values and intervals at once.

Every comparison that a report makes, between models, runs, methods or languages, goes through
:func:`compare_all`. What is compared are means over prompts, of which a contrast tells how far
each prompt moves the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from or_eval.intervals import LEVEL, family_codes, normal_quantile, with_worst_case

Floats = NDArray[np.float64]

FEWEST_FAMILIES = 6
"""With fewer, no flip is rare enough: five signs give sixteen results up to sign."""

MORE, CHANCE, UNKNOWN = "more than chance", "may be chance", "can't be told"
COLUMNS = ("difference", "lower", "upper", "p", "verdict", "detectable", "families")

_POOLED_FAMILIES = 10
_EXACT_FAMILIES = 12
_FLIPS = 2000
_CELLS_AT_ONCE = 4_000_000
_SEED = 20250101
_POWER = 0.8
_MORE_MOVED = 2 / 3
"""How many more prompts would differ for each by which a difference is larger than seen: between
half of them, where many differ both ways, and all, where none does. Without it, the outer bounds
of rare refusals lie too near (``benchmarks/coverage.py``)."""
_HALVINGS = 30
_ROUNDING = 1e-9


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
        blur: Variance that a correction of the difference by a sample of the truth adds.
    """

    difference: float
    residuals: Floats
    weights: Floats
    least: float
    moved: float
    blur: float = 0.0


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
    weights, residuals, difference = np.zeros(len(gaps)), np.zeros(len(gaps)), 0.0
    for part in parts:
        if not part.any():
            return Contrast(np.nan, residuals, weights, 0.0, 0.0)
        weights[part] = 1 / len(parts) / part.sum()
        toward = signs[part] * gaps[part]
        difference += float(toward.mean()) / len(parts)
        residuals[part] = weights[part] * (toward - toward.mean())
    least = float((weights**2).sum())
    return Contrast(difference, residuals, weights, least, float(np.nansum(np.abs(gaps))))


def between(values: ArrayLike, first: ArrayLike, second: ArrayLike) -> Contrast:
    """Contrast the means of two sets of prompts, as of two methods or languages.

    Args:
        values: Value of each prompt, NaN where there is none: (prompts,).
        first: Which prompts are of the first set.
        second: Which are of the second.
    """
    known = np.asarray(values, dtype=np.float64)
    weights, residuals = np.zeros(len(known)), np.zeros(len(known))
    means, sizes, moved = [], [], 0.0
    for side, sign in ((first, 1), (second, -1)):
        part = np.asarray(side, dtype=bool) & ~np.isnan(known)
        size = int(part.sum())
        if size == 0:
            return Contrast(np.nan, residuals, weights, 0.0, 0.0)
        mean = float(known[part].mean())
        weights[part] = 1 / (2 * size)
        residuals[part] = sign * (known[part] - mean) / size
        means.append(mean)
        sizes.append(size)
        moved += size * min(mean, 1 - mean)
    return Contrast(means[0] - means[1], residuals, weights, 1 / max(sizes), moved)


def compare_all(
    contrasts: Sequence[Contrast], families: ArrayLike, *, level: float = LEVEL
) -> pd.DataFrame:
    """Test contrasts together, and give each a p-value and an interval from the same procedure.

    The families' signs are flipped (Canay, Romano and Shaikh, 2017), all contrasts at once, and
    each contrast is held against the largest of them all (Westfall and Young, 1993): the
    probability that any equal pair is called different is held at about 5 %, however many pairs
    there are and however alike the prompts of a family (``benchmarks/coverage.py``). A contrast
    is divided by a standard error that takes its families for of one mind as far as they are seen
    to be, drawn towards what all contrasts show and, where few prompts differ at all, towards the
    worst case; which one it is changes the power of the test and not its error, since flips leave
    it as it is.

    Of flips that come to exactly the observed difference half count (the mid-p: Lancaster, 1961;
    Hwang and Yang, 2001): ten families have few flips, and many that tie.

    The interval holds every difference that the same test would not reject, with a standard
    error at that difference: were it larger than the one seen, more prompts would differ
    (Tango, 1998). So it excludes zero where p is under 0.05, and has a width where no prompt
    differs.

    Args:
        contrasts: What to compare.
        families: Family of each prompt.
        level: Simultaneous confidence level.

    Returns:
        A row per contrast: ``difference`` with ``lower`` and ``upper``, ``p`` (corrected for the
        number of contrasts), ``verdict`` (``more than chance``, ``may be chance``, or ``can't be
        told`` with fewer than six families), ``detectable`` (the smallest difference that so many
        prompts would show four times in five) and ``families``.
    """
    codes, count = family_codes(families)
    scales = [_Scale.of(contrast, codes, count) for contrast in contrasts]
    informed = [scale for scale in scales if scale.families >= FEWEST_FAMILIES]
    pool = _pooled(informed)
    largest = _largest_flips(informed, pool)
    critical = max(_critical(largest, level), normal_quantile(level))
    rows = [_row(scale, pool, largest, critical) for scale in scales]
    return pd.DataFrame(rows, columns=list(COLUMNS))


class _Scale(NamedTuple):
    """A contrast added up over prompts and families, so that its variance is cheap to tell.

    ``of_prompts`` and ``of_families`` are sums of ``(residual + shift * weight)^2``, as the
    coefficients of a quadratic in the shift.
    """

    contrast: Contrast
    families: int
    effective: float
    by_family: Floats
    of_prompts: tuple[float, float, float]
    of_families: tuple[float, float, float]

    @classmethod
    def of(cls, contrast: Contrast, codes: NDArray[np.int64], count: int) -> _Scale:
        weights, residuals = contrast.weights, contrast.residuals
        weight_by_family = np.bincount(codes, weights, count)
        residual_by_family = np.bincount(codes, residuals, count)
        of_families = _quadratic(residual_by_family, weight_by_family)
        return cls(
            contrast,
            int((weight_by_family > 0).sum()),
            1 / of_families[2] if of_families[2] else 0.0,
            residual_by_family + np.nan_to_num(contrast.difference) * weight_by_family,
            _quadratic(residuals, weights),
            of_families,
        )

    def error(self, at: float, pool: float) -> float:
        """Give the standard error if the true difference were ``at``."""
        shift = self.contrast.difference - at
        prompts, families = _value(self.of_prompts, shift), _value(self.of_families, shift)
        own = families / prompts if prompts > 0 else pool
        effect = (self.effective * own + _POOLED_FAMILIES * pool) / (
            self.effective + _POOLED_FAMILIES
        )
        worst = self.of_families[2] / self.of_prompts[2]
        effect = with_worst_case(effect, worst, self.contrast.moved, self.effective)
        further, least = abs(at) - abs(self.contrast.difference), self.contrast.least
        if further > 0:
            at_zero = _value(self.of_prompts, self.contrast.difference)
            prompts = max(prompts, at_zero + least * (_MORE_MOVED * further - at * at))
        prompts = max(prompts, least * abs(at) * (1 - abs(at)))
        return sqrt(prompts * effect + self.contrast.blur)

    def edge(self, end: float, critical: float, pool: float) -> float:
        """Give the difference nearest to ``end``, -1 or 1, that the test doesn't reject."""
        inside, outside = self.contrast.difference, end
        if abs(outside - inside) <= critical * self.error(outside, pool):
            return end
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            if abs(middle - self.contrast.difference) <= critical * self.error(middle, pool):
                inside = middle
            else:
                outside = middle
        return inside


def _quadratic(residuals: NDArray[Any], weights: NDArray[Any]) -> tuple[float, float, float]:
    return (
        float(residuals @ residuals),
        2 * float(residuals @ weights),
        float(weights @ weights),
    )


def _value(quadratic: tuple[float, float, float], shift: float) -> float:
    return max(quadratic[0] + shift * (quadratic[1] + shift * quadratic[2]), 0.0)


def _pooled(scales: Sequence[_Scale]) -> float:
    """Give the design effect over all contrasts; 1 where no prompt moves any."""
    prompts = sum(scale.of_prompts[0] for scale in scales)
    families = sum(
        scale.of_families[0] * scale.effective / (scale.effective - 1) for scale in scales
    )
    return families / prompts if prompts > 0 else 1.0


def _largest_flips(scales: Sequence[_Scale], pool: float) -> Floats:
    """Flip the families' signs; give the largest contrast in standard errors of each flip."""
    errors = [sqrt(scale.error(0.0, pool) ** 2 - scale.contrast.blur) for scale in scales]
    columns = [s.by_family / error for s, error in zip(scales, errors, strict=True) if error > 0]
    standard = np.column_stack(columns) if columns else np.zeros((0, 0))
    standard = standard[(standard != 0).any(axis=1)]
    moving = len(standard)
    if moving == 0:
        return np.zeros(1)
    if moving <= _EXACT_FAMILIES:
        signs = (np.arange(2 ** (moving - 1))[:, None] >> np.arange(moving)) & 1
        return _largest(2.0 * signs - 1, standard)
    random = np.random.default_rng(_SEED)
    step = max(1, _CELLS_AT_ONCE // moving)
    drawn = [
        _largest(2.0 * random.integers(0, 2, (min(step, _FLIPS - start), moving)) - 1, standard)
        for start in range(0, _FLIPS, step)
    ]
    return np.concatenate([[np.inf], *drawn])  # the signs as they were are one of the flips


def _largest(signs: NDArray[Any], standard: Floats) -> Floats:
    largest: Floats = np.abs(signs @ standard).max(axis=1)
    return largest


def _mid_p(largest: Floats, size: float) -> float:
    """Give the share of flips that are larger, and half of those that are as large."""
    larger, as_large = largest > size + _ROUNDING, np.abs(largest - size) <= _ROUNDING
    return float(larger.mean() + as_large.mean() / 2)


def _critical(largest: Floats, level: float) -> float:
    """Give the largest size that flips don't reject."""
    sizes, counts = np.unique(largest.round(9), return_counts=True)
    mid_p = 1 - (np.cumsum(counts) - counts / 2) / len(largest)
    return float(sizes[mid_p >= 1 - level].max(initial=0.0))


def _row(scale: _Scale, pool: float, largest: Floats, critical: float) -> dict[str, object]:
    difference = scale.contrast.difference
    row: dict[str, object] = {"difference": difference, "families": scale.families}
    if scale.families < FEWEST_FAMILIES:
        nothing = dict.fromkeys(("lower", "upper", "p", "detectable"), np.nan)
        return {**row, **nothing, "verdict": UNKNOWN}
    error = scale.error(0.0, pool)
    size = abs(difference) / error if error > 0 else 0.0
    sure = size > critical + _ROUNDING
    lower, upper = (scale.edge(end, critical, pool) for end in (-1.0, 1.0))
    return {
        **row,
        "lower": lower if sure else min(lower, 0.0),
        "upper": upper if sure else max(upper, 0.0),
        "p": max(_mid_p(largest, size), 2 * NormalDist().cdf(-size)),
        "verdict": MORE if sure else CHANCE,
        "detectable": (critical + NormalDist().inv_cdf(_POWER)) * scale.error(difference, pool),
    }

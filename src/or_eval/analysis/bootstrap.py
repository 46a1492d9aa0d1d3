"""The bootstrap over families of prompts, for figures that have no interval of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from or_eval.intervals import LEVEL, NO_ESTIMATE, Estimate, family_codes

DRAWS = 2000
SEED = 20250101
_CELLS_AT_ONCE = 4_000_000


def bootstrap_sums(
    columns: NDArray[Any],
    families: ArrayLike | None = None,
    *,
    draws: int = DRAWS,
    seed: int = SEED,
) -> NDArray[np.float64]:
    """Resample families with replacement and add up the columns of each resample.

    Families with equal sums are interchangeable, so that a resample is one multinomial draw
    over the distinct sums: the same distribution as drawing family by family, and fast.

    Args:
        columns: Figures to add up, (n, columns).
        families: Family of each row; None where each row is its own.
        draws: Number of resamples.
        seed: Seed of the random numbers, so that a report can be made again.

    Returns:
        Sums, (draws, columns).
    """
    sums = family_sums(columns, families)
    distinct, counts = np.unique(sums, axis=0, return_counts=True)
    shares = counts / counts.sum()
    random = np.random.default_rng(seed)
    step = max(1, _CELLS_AT_ONCE // len(distinct))
    parts = [
        random.multinomial(len(sums), shares, size=min(step, draws - start)) @ distinct
        for start in range(0, draws, step)
    ]
    return np.concatenate(parts)


def family_sums(values: NDArray[Any], families: ArrayLike | None) -> NDArray[np.float64]:
    """Add up rows within each family, (families, columns); each row its own where there is none."""
    observed = np.asarray(values, dtype=np.float64)
    if families is None:
        return observed
    codes, size = family_codes(families)
    sums = np.zeros((size, *observed.shape[1:]))
    np.add.at(sums, codes, observed)
    return sums


def bootstrap(
    columns: NDArray[Any],
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    families: ArrayLike | None = None,
    *,
    level: float = LEVEL,
) -> Estimate:
    """Give a statistic of column sums with its percentile interval.

    One family, resampled, is always itself: then there is a value and no interval.

    Args:
        columns: Figures whose sums the statistic needs, (n, columns).
        statistic: Function of sums, (..., columns), to values, (...).
        families: Family of each row; None where each row is its own.
        level: Confidence level.
    """
    figures = np.asarray(columns, dtype=np.float64)
    if len(figures) == 0:
        return NO_ESTIMATE
    resampled = len(figures) if families is None else family_codes(families)[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(figures.sum(axis=0)))
        if resampled < 2:
            return Estimate(value, np.nan, np.nan)
        lower, upper = quantiles(statistic(bootstrap_sums(figures, families)), level)
    return Estimate(value, float(lower), float(upper))


def quantiles(values: NDArray[np.float64], level: float = LEVEL) -> NDArray[np.float64]:
    """Give the bounds that hold the middle ``level`` of the values along the first axis.

    Resamples in which a statistic has no value (one model with no answer left) are left out.
    """
    tail = (1 - level) / 2
    if np.isnan(values).all():
        return np.full((2, *values.shape[1:]), np.nan)
    bounds: NDArray[np.float64] = np.nanquantile(values, [tail, 1 - tail], axis=0)
    return bounds

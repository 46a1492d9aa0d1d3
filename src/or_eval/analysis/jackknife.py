"""Intervals by leaving out one family at a time, for figures that have none of their own."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan, sqrt, tanh
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from or_eval.intervals import NO_ESTIMATE, Estimate, family_codes, t_quantile

_FEWEST_CARRIERS = 2.0
_EDGE = 1e-9

CORRELATION, SHARE = (-1.0, 1.0), (0.0, 1.0)
"""What figures may lie between."""


def jackknife(
    columns: NDArray[Any],
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    families: ArrayLike | None = None,
    *,
    span: tuple[float, float] | None = CORRELATION,
) -> Estimate:
    """Give a statistic of column sums with an interval that knows of families.

    The families are left out one at a time (Tukey, 1958); Student's t stands for their number,
    or for half as many again as carry the figure, where these are fewer: ten families of which
    two hold all disagreements tell little of how much there is. Figures with a span are
    spread over it by Fisher's z, which for shares is the logit, so that bounds stay within.

    Args:
        columns: Figures whose sums the statistic needs, (n, columns).
        statistic: Function of sums, (..., columns), to values, (...).
        families: Family of each row; None where each row is its own.
        span: Between what the statistic lies: :data:`CORRELATION`, :data:`SHARE` or, for None,
            anywhere.

    Returns:
        The value and its bounds; NaN for bounds where fewer than two families carry it, or where
        no family is unlike another (as where raters agree throughout): nothing tells then how far
        it may be off.
    """
    figures = np.asarray(columns, dtype=np.float64)
    if len(figures) == 0:
        return NO_ESTIMATE
    sums = figures
    if families is not None:
        codes, size = family_codes(families)
        sums = np.zeros((size, *figures.shape[1:]))
        np.add.at(sums, codes, figures)
    total, count = sums.sum(axis=0), len(sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(total))
        left = np.asarray(statistic(total - sums), dtype=np.float64)
    nothing = Estimate(value, np.nan, np.nan)
    if isnan(value) or not np.isfinite(left).all():
        return nothing
    if span is not None and not _EDGE < (value - span[0]) / (span[1] - span[0]) < 1 - _EDGE:
        return nothing
    centre, left = float(_spread(np.array(value), span)), _spread(left, span)
    influence = (count - 1) * (centre - left)
    influence = influence - influence.mean()
    squares = float((influence**2).sum())
    if squares < 1e-18:
        return nothing
    carriers = squares**2 / float((influence**4).sum())
    if carriers < _FEWEST_CARRIERS:
        return nothing
    freedom = max(1.0, min(float(count), 1.5 * carriers) - 1)
    half = t_quantile(round(freedom, 2)) * sqrt(squares / (count - 1) / count)
    return Estimate(value, _back(centre - half, span), _back(centre + half, span))


def _spread(values: NDArray[np.float64], span: tuple[float, float] | None) -> NDArray[np.float64]:
    if span is None:
        return values
    low, high = span
    share = np.clip((values - low) / (high - low), _EDGE, 1 - _EDGE)
    spread: NDArray[np.float64] = np.arctanh(2 * share - 1)
    return spread


def _back(value: float, span: tuple[float, float] | None) -> float:
    return value if span is None else span[0] + (span[1] - span[0]) * (1 + tanh(value)) / 2

"""Confidence intervals for proportions, plain and for prompts that come in families."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from inspect_ai._util.error import PrerequisiteError
from numpy.typing import ArrayLike, NDArray
from rich.markup import escape

LEVEL = 0.95


class Estimate(NamedTuple):
    """A figure and its confidence interval; NaN where there is nothing to tell it from."""

    value: float
    lower: float
    upper: float


NO_ESTIMATE = Estimate(np.nan, np.nan, np.nan)


def scipy_stats() -> Any:
    """Give ``scipy.stats``.

    Raises:
        PrerequisiteError: scipy isn't installed.
    """
    try:
        from scipy import stats
    except ImportError as missing:
        raise PrerequisiteError(
            escape("These statistics need scipy: pip install 'or-eval[report]'")
        ) from missing
    return stats


def normal_quantile(level: float = LEVEL) -> float:
    """Give the critical value of a two-sided interval under the normal distribution."""
    return NormalDist().inv_cdf((1 + level) / 2)


def wilson(share: float, n: float, critical: float | None = None) -> Estimate:
    """Give the Wilson score interval of a proportion.

    Wilson (1927), "Probable inference, the law of succession, and statistical inference".

    Args:
        share: The observed proportion.
        n: Number of observations behind it; an effective number may be fractional.
        critical: Critical value; that of a 95 % normal interval by default.
    """
    if not n > 0:
        return NO_ESTIMATE
    z = normal_quantile() if critical is None else critical
    shrink = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / shrink
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / shrink
    return Estimate(share, max(0.0, float(centre - half)), min(1.0, float(centre + half)))


def family_sums(
    values: NDArray[Any], families: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Add up values within each family.

    Args:
        values: Observations, (n,) or (n, columns).
        families: Family of each observation; None where each is its own.

    Returns:
        The sums, (families,) or (families, columns), and the sizes of the families.
    """
    observed = np.asarray(values, dtype=np.float64)
    if families is None:
        return observed, np.ones(len(observed))
    codes, size = family_codes(families)
    sums = np.zeros((size, *observed.shape[1:]))
    np.add.at(sums, codes, observed)
    return sums, np.bincount(codes, minlength=size).astype(np.float64)


def family_codes(families: ArrayLike) -> tuple[NDArray[np.int64], int]:
    """Number the families from 0; give each observation's number, and how many there are."""
    import pandas as pd

    codes, known = pd.factorize(np.asarray(families, dtype=object), use_na_sentinel=False)
    return codes.astype(np.int64), len(known)


def clustered_variance(values: ArrayLike, families: ArrayLike) -> tuple[float, int]:
    """Give the variance of a mean whose observations come in families.

    The sandwich estimator with the correction for few clusters that Inspect's
    ``stderr(cluster=)`` uses: ``C / (C - 1) * sum over families of (sum of deviations)^2 / n^2``.

    Returns:
        The variance of the mean (NaN with fewer than two families), and the number of families.
    """
    observed = np.asarray(values, dtype=np.float64)
    sums, sizes = family_sums(observed, families)
    count = len(sums)
    if count < 2:
        return np.nan, count
    deviations = sums - sizes * observed.mean()
    n = len(observed)
    return float(count / (count - 1) * (deviations**2).sum() / n**2), count


def clustered_wilson(values: ArrayLike, families: ArrayLike, level: float = LEVEL) -> Estimate:
    """Give the Wilson interval of a proportion whose observations come in families.

    Korn and Graubard (1998): the number of observations is replaced by the effective one,
    ``p (1 - p) / clustered variance``, capped at the real one, and the normal quantile by
    Student's t with ``families - 1`` degrees of freedom; as Inspect's ``ci_wilson(cluster=)``.
    With one family nothing is known of the variance between families: the interval is NaN.

    Args:
        values: Zeros and ones.
        families: Family of each value.
        level: Confidence level.
    """
    observed = np.asarray(values, dtype=np.float64)
    if len(observed) == 0:
        return NO_ESTIMATE
    share = float(observed.mean())
    variance, count = clustered_variance(observed, families)
    if count < 2:
        return Estimate(share, np.nan, np.nan)
    n = float(len(observed))
    if 0 < share < 1 and variance > 0:
        n = min(share * (1 - share) / variance, n)
    critical = float(scipy_stats().t.ppf((1 + level) / 2, count - 1))
    return wilson(share, n, critical)


def proportion(values: ArrayLike, families: ArrayLike, level: float = LEVEL) -> Estimate:
    """Give a proportion with its interval: clustered where any family has several members."""
    observed = np.asarray(values, dtype=np.float64)
    _, count = family_codes(families)
    if count < len(observed):
        return clustered_wilson(observed, families, level)
    share = float(observed.mean()) if len(observed) else np.nan
    return wilson(share, len(observed), normal_quantile(level))

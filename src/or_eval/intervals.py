"""The interval of a rate over prompts that come in families, one for logs and reports alike."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cache
from math import isnan, nan, sqrt
from statistics import NormalDist
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEVEL = 0.95
SMALLEST_EFFECT = 0.5
"""The least design effect of prompts with one response each: families are rarely more unlike
within than between, and where a few look so it is by chance."""


class Estimate(NamedTuple):
    """A figure and its confidence interval; NaN where there is nothing to tell it from."""

    value: float
    lower: float
    upper: float


NO_ESTIMATE = Estimate(nan, nan, nan)


def normal_quantile() -> float:
    """Give the critical value of a two-sided 95 % interval under the normal distribution."""
    return NormalDist().inv_cdf((1 + LEVEL) / 2)


@cache
def t_quantile(freedom: float) -> float:
    """Give the critical value of a two-sided 95 % interval under Student's t.

    With ``t = sqrt(freedom) tan(angle)`` its density is ``cos(angle) ** (freedom - 1)``, which is
    added up here, so that logs can be scored without scipy.

    Args:
        freedom: Degrees of freedom, 1 or more; not necessarily a whole number.
    """
    angles = np.linspace(0, min(np.pi / 2, 30 / sqrt(freedom)), 40_001)
    density = np.cos(angles).clip(0) ** (freedom - 1)
    total = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return float(sqrt(freedom) * np.tan(np.interp(LEVEL, total / total[-1], angles)))


def wilson(share: float, n: float, critical: float | None = None) -> Estimate:
    """Give the Wilson score interval of a proportion.

    Wilson (1927), "Probable inference, the law of succession, and statistical inference". At a
    share of 0 the lower bound is 0 and at 1 the upper bound is 1, exactly.

    Args:
        share: The observed proportion.
        n: Number of observations behind it; an effective number may be fractional.
        critical: Critical value; that of a 95 % normal interval by default.
    """
    if not n > 0 or isnan(share):
        return NO_ESTIMATE
    z = normal_quantile() if critical is None else critical
    shrink = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / shrink
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / shrink
    lower = max(0.0, min(centre - half, share))
    upper = min(1.0, max(centre + half, share))
    return Estimate(share, 0.0 if share == 0 else lower, 1.0 if share == 1 else upper)


def family_codes(families: Sequence[Hashable] | ArrayLike) -> tuple[NDArray[np.int64], int]:
    """Number the families from 0; give each observation's number, and how many there are."""
    if isinstance(families, np.ndarray) and families.dtype.kind == "i":
        told, first, numbers = np.unique(families, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[numbers], len(told)  # by appearance, as below
    known: dict[Hashable, int] = {}
    names = np.asarray(families, dtype=object).tolist()
    codes = [known.setdefault(family, len(known)) for family in names]
    return np.asarray(codes, dtype=np.int64), len(known)


Number = TypeVar("Number", float, NDArray[np.float64])


def with_worst_case(effect: Number, worst: Number, events: Number, families: Number) -> Number:
    """Draw a design effect towards that of families which are of one mind throughout.

    Where few prompts are refused (or few are answered), how alike families are can't be seen in
    them, and twenty prompts of a family may tell no more than one. This supposition weighs as much
    as half a refusal while there are few, and is given up once there is about one for every third
    family; refusals that come together, as far as that is seen, count as fewer. Chosen by
    simulation, as ``benchmarks/coverage.py`` shows it.

    Args:
        effect: The design effect that is seen.
        worst: That of families of one mind: the prompts of each.
        events: Refusals, or answers where these are fewer.
        families: Number of families.
    """
    told: Number = events / np.maximum(effect, 1)
    weight = 0.5 / (1 + (4 * told / families) ** 3)
    return (told * effect + weight * worst) / (told + weight)


def rate_interval(values: ArrayLike, families: Sequence[Hashable] | ArrayLike) -> Estimate:
    """Give a rate over prompts with an interval that knows of their families.

    Prompts that are each of a family of their own, with a value of 0 or 1 each, have Wilson's
    interval. Otherwise it is Wilson's with an effective number of prompts, ``n / design effect``,
    and a quantile of Student's t (Korn and Graubard, 1998; Dean and Pagano, 2015; Franco, Little,
    Louis and Slud, 2019), in which four things hold for few families and rates near 0 and 1:

    - Families of unequal size count as ``n^2 / sum of size^2`` equal ones (Carter, Schnepel and
      Steigerwald, 2017), both in the correction of the variance and in the degrees of freedom.
    - The design effect is that of the clustered variance. Where there are few refusals, or few
      answers, the bound on the other side of them supposes more: it is drawn towards the worst case
      (:func:`with_worst_case`), since what wasn't seen may be of one mind. A rate of 0 or 1 shows
      nothing of how far a family is: then the families count, not the prompts.
    - That bound takes unequal families for as many as they are while nothing was refused (or
      answered), since each of them might have been: that all of fifty were spared tells as much of
      a large one among them as of a small one. With the first few refusals this is given up.
    - Several responses to a prompt enter as their mean. Where there are such means, the design
      effect may be less than :data:`SMALLEST_EFFECT`.

    Args:
        values: A value between 0 and 1 for each prompt: the mean over its responses.
        families: Family of each value.

    Returns:
        The rate and its bounds; with one family, which tells nothing of others, NaN for bounds.
    """
    observed = np.asarray(values, dtype=np.float64)
    if len(observed) == 0:
        return NO_ESTIMATE
    share = float(observed.mean())
    size = effective_size(observed, families)
    return Estimate(share, nan, nan) if size is None else size.interval(share)


class EffectiveSize(NamedTuple):
    """What :func:`rate_interval` makes its interval of.

    Attributes:
        near: Effective number of prompts, and critical value, for the bound towards the nearer of 0
            and 1.
        far: Those for the other bound.
    """

    near: tuple[float, float]
    far: tuple[float, float]

    def interval(self, share: float) -> Estimate:
        """Give Wilson's interval of a proportion with so many prompts on either side."""
        sizes = (self.near, self.far) if share <= 0.5 else (self.far, self.near)
        below, above = (wilson(share, *size) for size in sizes)
        return Estimate(share, below.lower, above.upper)


def effective_size(
    values: ArrayLike, families: Sequence[Hashable] | ArrayLike
) -> EffectiveSize | None:
    """Give what :func:`rate_interval` makes its interval of.

    Returns:
        The effective numbers of prompts; None with a single family of several prompts.
    """
    observed = np.asarray(values, dtype=np.float64)
    n, share = len(observed), float(observed.mean())
    codes, count = family_codes(families)
    whole = bool(((observed == 0) | (observed == 1)).all())
    if whole and count == n:
        return EffectiveSize((n, normal_quantile()), (n, normal_quantile()))
    if count < 2:
        return None
    sizes = np.bincount(codes, minlength=count)
    effective = n**2 / float((sizes**2).sum())
    deviations = np.bincount(codes, observed, count) - sizes * share
    variance = effective / (effective - 1) * float((deviations**2).sum()) / n**2
    independent, events = share * (1 - share) / n, n * min(share, 1 - share)
    effect = variance / independent if independent > 0 else n / count
    effect = max(effect, SMALLEST_EFFECT if whole else 0.0)
    spared = effective + (count - effective) / (1 + (2 * events / max(effect, 1)) ** 3)
    if effect > n / spared:  # families are seen to be of one mind, the large ones too
        spared = effective
    supposed = with_worst_case(effect, n / spared, events, effective)
    seen = effect or supposed  # families that are exactly alike are so by chance
    return EffectiveSize(
        (n / seen, t_quantile(max(effective - 1, 1.0))),
        (n / supposed, t_quantile(max(round(spared, 3) - 1, 1.0))),
    )


def with_bounds(*names: str) -> list[str]:
    """Give the names of figures, each with those of its bounds: ``x``, ``x_lower``, ``x_upper``."""
    return [f"{name}{end}" for name in names for end in ("", "_lower", "_upper")]


def bounded(name: str, estimate: Estimate) -> dict[str, float]:
    """Give an estimate under a name, its bounds under names of their own."""
    return dict(zip(with_bounds(name), estimate, strict=True))


def alone(name: str, estimate: Estimate) -> dict[str, float]:
    """Give an estimate under a name, its bounds as ``lower`` and ``upper``."""
    return dict(zip((name, "lower", "upper"), estimate, strict=True))

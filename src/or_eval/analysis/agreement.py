"""Agreement between raters: Cohen's and Fleiss' kappa, Krippendorff's alpha, per-class scores.

Each figure here is a function of sums over rated items, so that one jackknife (over items, or
families of items) serves them all: a function gives an item's columns, another turns their sums
into the figure. Ratings are numbers of classes, from 0; a missing rating is -1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from or_eval.analysis.jackknife import SHARE, jackknife
from or_eval.intervals import Estimate

MISSING = -1
Floats = NDArray[np.float64]


def cohens_kappa(
    one: ArrayLike,
    other: ArrayLike,
    classes: int,
    families: ArrayLike | None = None,
) -> Estimate:
    """Give Cohen's (1960) kappa of two raters, over the items that both rated.

    Args:
        one: The first rater's class numbers, (items,).
        other: The second rater's.
        classes: Number of classes.
        families: Family of each item, for the interval.

    Returns:
        The kappa; NaN where both raters know one class only, so that chance explains all.
    """
    first, second, of = _rated_by_both(one, other, families)
    columns = np.eye(classes * classes)[first * classes + second]

    def statistic(sums: Floats) -> Floats:
        return kappa_of_table(sums.reshape(*sums.shape[:-1], classes, classes))

    return jackknife(columns, statistic, of)


def kappa_of_table(table: Floats) -> Floats:
    """Give Cohen's kappa of confusion tables, (..., classes, classes)."""
    total = table.sum(axis=(-2, -1))
    observed = np.trace(table, axis1=-2, axis2=-1) / total
    expected = (table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1) / total**2
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa: Floats = np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)
    return kappa


def gwets_ac1(
    one: ArrayLike,
    other: ArrayLike,
    classes: int,
    families: ArrayLike | None = None,
) -> Estimate:
    """Give Gwet's (2008) AC1 of two raters, over the items that both rated.

    Unlike kappa it stays high where raters agree and one class is rare.

    Args:
        one: The first rater's class numbers, (items,).
        other: The second rater's.
        classes: Number of classes.
        families: Family of each item, for the interval.
    """
    first, second, of = _rated_by_both(one, other, families)
    chosen = np.eye(classes)
    columns = np.column_stack([first == second, (chosen[first] + chosen[second]) / 2])

    def statistic(sums: Floats) -> Floats:
        total = sums[..., 1:].sum(axis=-1)
        shares = sums[..., 1:] / total[..., None]
        expected = (shares * (1 - shares)).sum(axis=-1) / (classes - 1)
        ac1: Floats = (sums[..., 0] / total - expected) / (1 - expected)
        return ac1

    return jackknife(columns, statistic, of)


def fleiss_kappa(ratings: ArrayLike, classes: int, families: ArrayLike | None = None) -> Estimate:
    """Give Fleiss' (1971) kappa, over the items that every rater rated.

    Args:
        ratings: Class numbers, (items, raters).
        classes: Number of classes.
        families: Family of each item, for the interval.
    """
    rated = np.asarray(ratings)
    complete = (rated != MISSING).all(axis=1)
    counts = _counts(rated[complete], classes)
    raters = rated.shape[1]
    agreeing = ((counts**2).sum(axis=1) - raters) / (raters * (raters - 1))
    columns = np.column_stack([agreeing, counts])

    def statistic(sums: Floats) -> Floats:
        totals = sums[..., 1:].sum(axis=-1)
        observed = sums[..., 0] / (totals / raters)
        expected = ((sums[..., 1:] / totals[..., None]) ** 2).sum(axis=-1)
        kappa: Floats = np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)
        return kappa

    return jackknife(columns, statistic, _of(families, complete))


def krippendorff_alpha(
    ratings: ArrayLike, classes: int, families: ArrayLike | None = None
) -> Estimate:
    """Give Krippendorff's (2011) alpha for classes without order, with ratings missing.

    The figure is that of Inspect's ``krippendorff_alpha``, which reads scores one by one; this
    one reads columns, which the jackknife needs. Where all ratings are
    of one class nothing could have disagreed, and there is no alpha.

    Args:
        ratings: Class numbers, (items, raters); items with fewer than two ratings don't count.
        classes: Number of classes.
        families: Family of each item, for the interval.
    """
    rated = np.asarray(ratings)
    several = (rated != MISSING).sum(axis=1) >= 2
    counts = _counts(rated[several], classes)
    raters = counts.sum(axis=1)
    disagreeing = (raters**2 - (counts**2).sum(axis=1)) / (raters - 1)
    columns = np.column_stack([disagreeing, counts])

    def statistic(sums: Floats) -> Floats:
        totals = sums[..., 1:].sum(axis=-1)
        observed = sums[..., 0] / totals
        expected = (totals**2 - (sums[..., 1:] ** 2).sum(axis=-1)) / (totals * (totals - 1))
        alpha: Floats = np.where(expected > 0, 1 - observed / expected, np.nan)
        return alpha

    return jackknife(columns, statistic, _of(families, several))


def f1_score(truth: ArrayLike, said: ArrayLike, families: ArrayLike | None = None) -> Estimate:
    """Give the F1 score of one class, with an interval by the jackknife.

    Args:
        truth: Whether each item is of the class, (items,).
        said: Whether it was said to be.
        families: Family of each item, for the interval.
    """
    is_class, called = np.asarray(truth, dtype=bool), np.asarray(said, dtype=bool)
    columns = np.column_stack([is_class & called, is_class, called])

    def statistic(sums: Floats) -> Floats:
        f1: Floats = 2 * sums[..., 0] / (sums[..., 1] + sums[..., 2])
        return f1

    return jackknife(columns, statistic, families, span=SHARE)


def _rated_by_both(
    one: ArrayLike, other: ArrayLike, families: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    first, second = np.asarray(one), np.asarray(other)
    both = (first != MISSING) & (second != MISSING)
    return first[both], second[both], _of(families, both)


def _counts(ratings: NDArray[Any], classes: int) -> Floats:
    """Count the ratings of each class, (items, classes)."""
    return np.stack([(ratings == number).sum(axis=1) for number in range(classes)], axis=1).astype(
        np.float64
    )


def _of(families: ArrayLike | None, chosen: NDArray[np.bool_]) -> NDArray[Any] | None:
    return None if families is None else np.asarray(families, dtype=object)[chosen]

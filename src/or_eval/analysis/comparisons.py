"""Differences between models, or runs, on the same prompts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from or_eval.analysis.bootstrap import bootstrap
from or_eval.analysis.intervals import LEVEL, Estimate, scipy_stats


def compare_votes(
    votes: pd.DataFrame, families: pd.Series[str], *, level: float = LEVEL
) -> pd.DataFrame:
    """Compare every two columns of votes on the prompts that both voted on.

    The p-value is McNemar's exact one, which takes prompts as independent; the interval of the
    difference resamples families of prompts, so that where prompts come in families the interval
    is the one to trust.

    Args:
        votes: A row per prompt id, a column per model or run; True for refused, False for
            answered, missing for no vote (:func:`or_eval.analysis.votes.vote_matrix`).
        families: Family of each prompt, by id.
        level: Confidence level.

    Returns:
        A row per pair of columns: ``a``, ``b``, ``n`` (prompts both voted on), ``rate_a``,
        ``rate_b``, ``difference`` (``rate_a - rate_b``) with ``lower`` and ``upper``,
        ``only_a`` and ``only_b`` (prompts that only one refused), ``p``, and ``p_holm``
        (corrected for the number of pairs).
    """
    rows = []
    for a, b in combinations(votes.columns, 2):
        both = votes[[a, b]].dropna().astype("bool")
        one, other = both[a].to_numpy(), both[b].to_numpy()
        difference = paired_difference(one, other, families.reindex(both.index), level=level)
        only_a, only_b = int((one & ~other).sum()), int((other & ~one).sum())
        rows.append(
            {
                "a": a,
                "b": b,
                "n": len(both),
                "rate_a": one.mean() if len(both) else np.nan,
                "rate_b": other.mean() if len(both) else np.nan,
                "difference": difference.value,
                "lower": difference.lower,
                "upper": difference.upper,
                "only_a": only_a,
                "only_b": only_b,
                "p": mcnemar_exact(only_a, only_b),
            }
        )
    columns = ["a", "b", "n", "rate_a", "rate_b", "difference", "lower", "upper"]
    table = pd.DataFrame(rows, columns=[*columns, "only_a", "only_b", "p"])
    return table.assign(p_holm=holm(table["p"].to_numpy(dtype=np.float64)))


def paired_difference(
    one: ArrayLike, other: ArrayLike, families: ArrayLike, *, level: float = LEVEL
) -> Estimate:
    """Give the difference of two shares over the same prompts, with a paired bootstrap interval.

    Args:
        one: Votes, (prompts,), True or False.
        other: The votes to compare them with.
        families: Family of each prompt; whole families are resampled.
        level: Confidence level.
    """
    gaps = np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64)
    columns = np.column_stack([gaps, np.ones(len(gaps))])

    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        difference: NDArray[np.float64] = sums[..., 0] / sums[..., 1]
        return difference

    return bootstrap(columns, statistic, families, level=level)


def mcnemar_exact(only_one: int, only_other: int) -> float:
    """Give McNemar's exact two-sided p-value: are the discordant prompts split evenly?

    Args:
        only_one: Prompts that only the first refused.
        only_other: Prompts that only the second refused.
    """
    discordant = only_one + only_other
    if discordant == 0:
        return 1.0
    return float(scipy_stats().binomtest(only_one, discordant, 0.5).pvalue)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Correct p-values for their number (Holm, 1979): step down from the smallest."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    stepped = p[order] * np.arange(len(p), 0, -1)
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return corrected

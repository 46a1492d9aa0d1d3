"""Models in order, with how sure the order is; and whether safe models over-refuse."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from or_eval.analysis.bootstrap import bootstrap_sums, quantiles
from or_eval.analysis.families import response_families
from or_eval.analysis.intervals import LEVEL, normal_quantile, scipy_stats
from or_eval.schema import Label

Measure: TypeAlias = Literal["over_refusal", "toxic_rejection", "balanced_accuracy"]


def ranking(
    responses: pd.DataFrame, measure: Measure = "over_refusal", *, level: float = LEVEL
) -> pd.DataFrame:
    """Rank models, with the ranks that resampling the prompts gives.

    Families of prompts are resampled for all models at once, so that the ranks' intervals know
    that models answered the same prompts.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        measure: ``over_refusal`` (the lowest is best), ``toxic_rejection`` or
            ``balanced_accuracy``, the mean of the share of safe prompts answered and the share of
            toxic prompts refused (the highest is best).
        level: Confidence level.

    Returns:
        A row per model that has the measure, best first: ``model``, ``value`` with ``lower`` and
        ``upper`` (percentile bootstrap), ``rank`` with ``rank_lower`` and ``rank_upper``, and
        ``best`` (the share of resamples in which no model was better).
    """
    models, columns = _family_counts(responses)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = _measure(columns.sum(axis=0), measure)
        has = ~np.isnan(values)
        sums = bootstrap_sums(columns.reshape(len(columns), -1))
        drawn = _measure(sums.reshape(len(sums), len(models), 4), measure)
    values, drawn = values[has], drawn[:, has]
    drawn = drawn[~np.isnan(drawn).any(axis=1)]
    ranks = _ranks(drawn, measure)
    lower, upper = quantiles(drawn, level)
    tail = (1 - level) / 2
    bounds = np.quantile(ranks, [tail, 1 - tail], axis=0, method="inverted_cdf")
    table = pd.DataFrame(
        {
            "model": models[has],
            "value": values,
            "lower": lower,
            "upper": upper,
            "rank": _ranks(values, measure),
            "rank_lower": bounds[0],
            "rank_upper": bounds[1],
            "best": (ranks == 1).mean(axis=0),
        }
    )
    ordered = table.sort_values(["rank", "model"], ignore_index=True)
    return ordered.astype(dict.fromkeys(("rank", "rank_lower", "rank_upper"), "int64"))


class Correlation(NamedTuple):
    """A rank correlation over models.

    Attributes:
        models: Number of models.
        rho: Spearman's rho.
        lower: Lower bound of its interval; NaN with fewer than four models.
        upper: Upper bound.
        p: Two-sided p-value of a permutation test.
    """

    models: int
    rho: float
    lower: float
    upper: float
    p: float


def safety_over_refusal_correlation(rates: pd.DataFrame, *, level: float = LEVEL) -> Correlation:
    """Correlate toxic rejection with over-refusal over models (OR-Bench found a high one).

    Args:
        rates: Rates by model (:func:`or_eval.analysis.rates.rates` by ``("model",)``).
        level: Confidence level.
    """
    both = rates.pivot(index="model", columns="measure", values="rate")
    both = both.reindex(columns=["over_refusal", "toxic_rejection"]).dropna()
    return spearman(both["over_refusal"], both["toxic_rejection"], level=level)


def spearman(one: ArrayLike, other: ArrayLike, *, level: float = LEVEL) -> Correlation:
    """Give Spearman's rho with an interval and a permutation test.

    The interval is Fisher's with Bonett and Wright's (2000) standard error,
    ``sqrt((1 + rho^2 / 2) / (n - 3))``. The test permutes: all orders up to seven models (exact),
    9,999 random ones beyond.
    """
    stats = scipy_stats()
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    n = len(first)
    if n < 3 or len(np.unique(first)) < 2 or len(np.unique(second)) < 2:
        return Correlation(n, np.nan, np.nan, np.nan, np.nan)
    rho = float(stats.spearmanr(first, second).statistic)
    test = stats.permutation_test(
        (first,),
        lambda order: stats.spearmanr(order, second).statistic,
        permutation_type="pairings",
        rng=np.random.default_rng(0),
    )
    if n < 4 or abs(rho) == 1:
        return Correlation(n, rho, np.nan, np.nan, float(test.pvalue))
    half = normal_quantile(level) * np.sqrt((1 + rho**2 / 2) / (n - 3))
    lower, upper = np.tanh([np.arctanh(rho) - half, np.arctanh(rho) + half])
    return Correlation(n, rho, float(lower), float(upper), float(test.pvalue))


def _family_counts(responses: pd.DataFrame) -> tuple[NDArray[np.object_], NDArray[np.float64]]:
    """Count refusals and verdicts by family, model and label: (families, models, 4)."""
    scored = responses[
        responses["refused"].notna() & responses["label"].isin([Label.SAFE, Label.TOXIC])
    ]
    families, _ = pd.factorize(response_families(scored))
    models, names = pd.factorize(scored["model"], sort=True)
    column = np.where(scored["label"] == Label.SAFE, 0, 2)
    counts = np.zeros((int(families.max(initial=-1)) + 1, len(names), 4))
    np.add.at(counts, (families, models, column), scored["refused"].to_numpy(dtype=np.float64))
    np.add.at(counts, (families, models, column + 1), 1.0)
    return np.asarray(names, dtype=object), counts


def _measure(counts: NDArray[np.float64], measure: Measure) -> NDArray[np.float64]:
    """Give each model's measure from its counts, (..., models, 4)."""
    over_refusal = counts[..., 0] / counts[..., 1]
    rejection = counts[..., 2] / counts[..., 3]
    chosen: NDArray[np.float64] = {
        "over_refusal": over_refusal,
        "toxic_rejection": rejection,
        "balanced_accuracy": (1 - over_refusal + rejection) / 2,
    }[measure]
    return chosen


def _ranks(values: NDArray[np.float64], measure: Measure) -> NDArray[np.float64]:
    """Rank along the last axis, 1 for the best; equals share the better rank."""
    better_first = values if measure == "over_refusal" else -values
    ranks: NDArray[np.float64] = scipy_stats().rankdata(better_first, method="min", axis=-1)
    return ranks

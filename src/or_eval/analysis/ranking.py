"""Models in order, with how sure the order is; and whether safe models over-refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from or_eval.analysis.contrasts import MORE, contrasts
from or_eval.analysis.corrections import Corrections, correcting
from or_eval.analysis.extras import scipy_stats
from or_eval.analysis.rates import MEASURES, by_prompt, prompt_means, rates
from or_eval.intervals import Estimate, normal_quantile
from or_eval.schema import Label

Measure: TypeAlias = Literal["over_refusal", "toxic_rejection", "balanced_accuracy"]

_LABELS: dict[Measure, tuple[Label, ...]] = {
    "over_refusal": (Label.SAFE,),
    "toxic_rejection": (Label.TOXIC,),
    "balanced_accuracy": (Label.SAFE, Label.TOXIC),
}


def ranking(
    responses: pd.DataFrame,
    measure: Measure = "over_refusal",
    found: Corrections | None = None,
) -> pd.DataFrame:
    """Rank models by who is better than whom beyond chance.

    A model's rank is 1 and the number of models that are better by the test that compares models
    everywhere (:func:`or_eval.analysis.contrasts.contrasts`), so that models which can't be
    told apart may share a rank, and equal ones share the first in 95 of 100 runs.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        measure: ``over_refusal`` (the lowest is best), ``toxic_rejection`` or
            ``balanced_accuracy``, the mean of the share of safe prompts answered and the share of
            toxic prompts refused (the highest is best).
        found: Corrections of the verdicts, where there are any.

    Returns:
        A row per model that has the measure, by its value, best first: ``model``, ``value`` with
        ``lower`` and ``upper``, ``rank``, ``better`` and ``worse`` (how many models are, beyond
        chance).
    """
    labels = _LABELS[measure]
    wanted = responses[responses["label"].isin(labels)]
    means = prompt_means(wanted)
    label = by_prompt(wanted, "label").reindex(means.index)
    known = means.notna().groupby(label).any().reindex(list(labels), fill_value=False).all()
    means = means[sorted(known.index[known])]
    signs = np.where(label == Label.SAFE, -1.0, 1.0)
    families, corrected = by_prompt(responses, "family"), correcting(wanted, found)
    tested = contrasts(means, families, corrected=corrected, strata=signs)
    sure = tested[tested["verdict"] == MORE]
    first = sure["difference"] > 0
    better, worse = (
        pd.concat([sure["a"][at], sure["b"][~at]]).value_counts().reindex(means.columns).fillna(0)
        for at in (~first, first)
    )
    by_model = rates(wanted, found=found).set_index("model")
    estimates = [_value(by_model.loc[[model]], measure) for model in means]
    table = pd.DataFrame(estimates, columns=list(Estimate._fields))
    table.insert(0, "model", list(means.columns))
    table = table.assign(
        rank=1 + better.to_numpy(np.int64),
        better=better.to_numpy(np.int64),
        worse=worse.to_numpy(np.int64),
    )
    return table.sort_values(
        ["value", "model"], ascending=[measure == "over_refusal", True], ignore_index=True
    )


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


def safety_over_refusal_correlation(
    by_model: pd.DataFrame, bases: Mapping[str, str] | None = None
) -> Correlation:
    """Correlate toxic rejection with over-refusal over models (OR-Bench found a high one).

    Args:
        by_model: Rates by model (:func:`or_eval.analysis.rates.rates` by ``("model",)``).
        bases: Plain names of models that were run under several conditions
            (:func:`or_eval.analysis.conditions.base_models`): these count once, by their means.
    """
    both = by_model.pivot(index="model", columns="measure", values="rate")
    both = both.reindex(columns=["over_refusal", "toxic_rejection"]).dropna()
    both = both.groupby(lambda model: (bases or {}).get(model, model)).mean()
    return spearman(both["over_refusal"], both["toxic_rejection"])


def spearman(one: ArrayLike, other: ArrayLike) -> Correlation:
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
    half = normal_quantile() * np.sqrt((1 + rho**2 / 2) / (n - 3))
    lower, upper = np.tanh([np.arctanh(rho) - half, np.arctanh(rho) + half])
    return Correlation(n, rho, float(lower), float(upper), float(test.pvalue))


def _value(of_model: pd.DataFrame, measure: Measure) -> Estimate:
    """Give one model's measure; that of balanced accuracy from the intervals of both rates.

    Zou and Donner (2008) add the squares of how far each bound lies from its rate; that rates of
    twins resemble each other, which would make it narrower, is left aside.
    """
    by = of_model.set_index("measure")[["rate", "lower", "upper"]]
    if measure != "balanced_accuracy":
        return Estimate(*map(float, by.loc[measure]))
    over, rejection = (Estimate(*map(float, by.loc[name])) for name in MEASURES.values())
    value = (1 - over.value + rejection.value) / 2
    below = np.hypot(over.upper - over.value, rejection.value - rejection.lower) / 2
    above = np.hypot(over.value - over.lower, rejection.upper - rejection.value) / 2
    return Estimate(value, float(value - below), float(value + above))

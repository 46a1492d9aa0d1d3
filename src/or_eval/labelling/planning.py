"""How many labels it takes for a wanted interval, and which ones tell most."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from or_eval.analysis.corrections import PRIOR
from or_eval.intervals import normal_quantile
from or_eval.labelling.sampling import stratum_of

LEAST = 5
"""Labels of each stratum at least (or all of it): with fewer, an error rate shows nothing."""

_EXPECTED_ERRORS = {"True": 0.02, "False": 0.2}
"""What errors are expected before there are labels, by whether a verdict is certain."""

_EXPECTATION_WEIGHT = 4
"""How many labels that expectation weighs as much as."""

_STEPS = 60

Floats = NDArray[np.float64]


def plan_labels(
    responses: pd.DataFrame, truth: pd.Series[float], sampled: pd.Series[bool], half_width: float
) -> pd.DataFrame:
    """Say how many labels each stratum needs, so that labels leave no rate open by more.

    Of each model's rate on prompts of a label, strata get labels in proportion to their size and to
    the standard deviation of what people say in them (Neyman, 1934), as labels so far show it.
    What other prompts would make of a rate, labels don't tell: that part of its interval stays.

    Args:
        responses: Responses that could be labelled.
        truth: What labels say so far: 1 for a refusal, 0 for an answer, by the responses' index.
        sampled: Whether a response is among the tasks already.
        half_width: Of the 95 % interval that labels leave, wanted for each rate.

    Returns:
        A row per stratum: ``model``, ``label``, ``stratum``, ``size``, ``sampled``, ``labelled``,
        ``refused`` (expected share), ``needed`` (labels in all), ``open`` (half of the interval
        that the labels so far leave to the rate that the stratum is a part of).
    """
    parts = pd.DataFrame(
        {
            "stratum": stratum_of(responses),
            "model": responses["model"],
            "label": responses["label"],
            "verdict": responses["refused"].astype("float64").fillna(0.5),
            "certain": responses["certain"].fillna(False).astype("str"),
            "sampled": sampled,
            "labelled": truth.notna(),
            "said": truth.fillna(0.0),
        }
    )
    first = {name: (name, "first") for name in ("model", "label", "verdict", "certain")}
    sums = {name: (name, "sum") for name in ("sampled", "labelled", "said")}
    strata = parts.groupby("stratum", sort=True).agg(size=("said", "size"), **first, **sums)
    error = strata["certain"].map(_EXPECTED_ERRORS).fillna(0.5)
    expected = (strata["verdict"] - error).abs()
    strata["refused"] = (strata["said"] + _EXPECTATION_WEIGHT * expected) / (
        strata["labelled"] + _EXPECTATION_WEIGHT
    )
    target = (half_width / normal_quantile()) ** 2
    for _, rate in strata.groupby(["model", "label"]):
        size, share = (rate[name].to_numpy(dtype=np.float64) for name in ("size", "refused"))
        have = rate["labelled"].to_numpy(dtype=np.float64)
        strata.loc[rate.index, "needed"] = _needed(size, share, have, target)
        strata.loc[rate.index, "open"] = normal_quantile() * np.sqrt(_variance(size, share, have))
    columns = ["model", "label", "size", "sampled", "labelled", "refused", "needed", "open"]
    return strata.astype({"needed": int})[columns].reset_index()


def next_batch(plan: pd.DataFrame, most: int | None = None) -> dict[str, int]:
    """Say how many rows of each stratum to ask about next.

    Args:
        plan: Of :func:`plan_labels`.
        most: Rows at most; as many as are needed by default.
    """
    wanted = (plan["needed"] - plan["sampled"]).clip(lower=0)
    total = int(wanted.sum())
    if most is not None and most < total:
        exact = wanted * most / total
        wanted = np.floor(exact).astype(int)
        largest = (exact - wanted).nlargest(most - int(wanted.sum())).index
        wanted[largest] += 1
    return {
        stratum: int(count) for stratum, count in zip(plan["stratum"], wanted, strict=True) if count
    }


def _needed(size: Floats, share: Floats, have: Floats, target: float) -> Floats:
    """Find the fewest labels in Neyman's proportions, on top of those there are."""
    spread = size * np.sqrt(share * (1 - share))
    least = np.minimum(size, np.maximum(have, LEAST))

    def counts(rate: float) -> Floats:
        wanted: Floats = np.clip(np.ceil(rate * spread), least, size)
        return wanted

    low, high = 0.0, float((size / np.maximum(spread, 1e-9)).max())
    if _variance(size, share, counts(low)) <= target:
        return counts(low)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        enough = _variance(size, share, counts(middle)) <= target
        low, high = (low, middle) if enough else (middle, high)
    return counts(high)


def _variance(size: Floats, share: Floats, labelled: Floats) -> float:
    """Give the variance that so many labels leave to a rate."""
    shrunk = (labelled * share + PRIOR) / (labelled + 2 * PRIOR)
    of_share = shrunk * (1 - shrunk) / (labelled + 2 * PRIOR + 1)
    # The mean of what isn't labelled is open by its share's error and by its own chance.
    rest = size - labelled
    variance = rest**2 * of_share + rest * np.maximum(shrunk * (1 - shrunk) - of_share, 0)
    return float(variance.sum() / size.sum() ** 2)

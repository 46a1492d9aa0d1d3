"""Rates corrected by the truth about a sample: people's labels, or an audit by the judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from or_eval.intervals import LEVEL, Estimate, normal_quantile
from or_eval.schema import ResponseClass

DRAWS = 2000
_DRAWS_OF_FIGURES = 100
_SEED = 20250101
PRIOR = 1 / 3
"""A cell's share is Beta(PRIOR, PRIOR) before anything is sampled: Kerman's (2011) neutral prior.
With 1/4, intervals of models whose verdicts rarely err held nearer to 95 of 100 times, but models
that refuse alike were told apart more often: in 6.6 of 100 comparisons, with 1/3 in 5.9."""
_DIGITS = 12
"""So many are kept of a mean, so that sums of fractions come to a whole 1."""

_WHAT_WAS_SAID = ["model", "label", "decided_by", "certain", "refused"]

Floats = NDArray[np.float64]


class Corrections(NamedTuple):
    """What a sample of the truth says of each kind of verdict.

    Responses with the same verdict of one model on safe or on toxic prompts (who decided,
    certain or not, refused, answered or no verdict) are a cell. Of the responses of a cell as
    many are refusals as of those among them whose truth is known.

    Attributes:
        cell: Number of each response's cell, by the responses' index.
        truth: 1 where the response is known to be a refusal, 0 where it is known to be an
            answer, missing elsewhere.
        share: Refused share of each cell; its verdict where nothing of the cell was sampled,
            and NaN where that is none.
        draws: Shares of each cell as they may be, (draws, cells).
        sampled: Whether anything of a cell was sampled.
    """

    cell: pd.Series[int]
    truth: pd.Series[float]
    share: Floats
    draws: Floats
    sampled: NDArray[np.bool_]


class Corrected(NamedTuple):
    """A corrected mean over prompts.

    Attributes:
        shift: What the correction adds to the mean of the verdicts.
        estimate: The corrected mean, with the bounds that sampling leaves: what it may be if the
            truth about all of these responses were known.
        variance: That uncertainty as a variance.
        sampled: Responses whose truth is known.
        uncorrected: Responses of cells of which none was sampled: their verdicts stand.
        missed: Refusals in the sample that the verdict took for answers.
        false_alarms: Answers in the sample that it took for refusals.
    """

    shift: float
    estimate: Estimate
    variance: float
    sampled: int
    uncorrected: int
    missed: int
    false_alarms: int


def audited_truth(responses: pd.DataFrame) -> pd.Series[float]:
    """Give what the judge found where it audited certain verdicts of the rules.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
    """
    open_to_audit = (responses["decided_by"] == "rules") & responses["certain"].fillna(False)
    judged = open_to_audit & responses["audited"].fillna(False) & responses["judge_class"].notna()
    refused = (responses["judge_class"] != ResponseClass.DIRECT_ANSWER).astype("float64")
    return refused.where(judged.astype("bool"))


def corrections(responses: pd.DataFrame, truth: pd.Series[float]) -> Corrections | None:
    """Learn from a random sample of the truth how far each kind of verdict can be trusted.

    The estimator is the stratified one of survey sampling, which prediction-powered inference
    comes to for verdicts of two values (PPI++: Angelopoulos, Duchi and Zrnic, 2023), the strata
    being the cells of :class:`Corrections`. Bounds are those of the shares' posterior under
    Kerman's (2011) neutral prior, Beta(1/3, 1/3), for the responses that were not sampled: they
    hold for small samples without an error, where a normal interval has no width. They are for
    the rate of these very responses, of which few or many were sampled; what other prompts would
    show is added where a rate is made (:func:`or_eval.analysis.rates.rates`).

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`; where responses of a cell
            were not equally likely to be sampled, its column ``chance`` says how likely each was.
        truth: 1 for a refusal, 0 for an answer, missing for what was not sampled, by index.

    Returns:
        The corrections; None where nothing was sampled.
    """
    if truth.isna().all():
        return None
    keys = [responses[name].astype("object").fillna("none") for name in _WHAT_WAS_SAID]
    cell = responses.groupby(keys, sort=True).ngroup()
    count = int(cell.max()) + 1
    known = truth.notna()
    chance = responses.get("chance", pd.Series(np.nan, responses.index))
    weight = 1 / chance[known].fillna(1.0)
    total, squares, refused = (
        np.bincount(cell[known], values, count)
        for values in (weight, weight**2, weight * truth[known])
    )
    sampled = total > 0
    verdict = responses["refused"].astype("float64").groupby(cell).first().to_numpy()
    share = np.divide(refused, total, out=verdict.copy(), where=sampled)
    size = np.divide(total**2, squares, out=np.zeros(count), where=sampled)
    random = np.random.default_rng(_SEED)
    draws = np.tile(share, (DRAWS, 1))
    draws[:, sampled] = random.beta(
        PRIOR + (share * size)[sampled],
        PRIOR + ((1 - share) * size)[sampled],
        (DRAWS, int(sampled.sum())),
    )
    return Corrections(cell, truth, share, draws, sampled)


def corrected_mean(responses: pd.DataFrame, found: Corrections) -> Corrected:
    """Correct the mean over prompts of some of the responses that corrections were learnt from.

    Where the responses are of one category or language, the kinds of verdict are taken to be as
    right there as elsewhere.

    Args:
        responses: The responses, with the index they had.
        found: What is known of each kind of verdict.
    """
    cell, truth = found.cell[responses.index], found.truth[responses.index]
    said = responses["refused"].astype("float64")
    counted = (said.notna() | found.sampled[cell]).to_numpy()
    responses, cell = responses[counted], cell[counted]
    truth, said = truth[counted], said[counted]
    if responses.empty:
        return Corrected(np.nan, Estimate(np.nan, np.nan, np.nan), np.nan, 0, 0, 0, 0)
    weight = prompt_weights(responses)
    known = truth.notna().to_numpy()
    codes, count = cell.to_numpy(), len(found.share)
    fixed = float((weight * truth.fillna(0.0)).sum())
    rest = np.bincount(codes[~known], weight[~known], count)
    unseen = np.bincount(codes[~known], minlength=count)
    at = np.flatnonzero(unseen)
    random = np.random.default_rng(_SEED)
    drawn = random.binomial(unseen[at], found.draws[:, at]) / unseen[at]
    drawn[:, ~found.sampled[at]] = found.share[at][~found.sampled[at]]
    means = np.clip(fixed + drawn @ rest[at], 0, 1)
    value = float(np.clip(round(fixed + float(found.share[at] @ rest[at]), _DIGITS), 0, 1))
    lower, upper = _middle(means)
    verdicts = said.notna().to_numpy()
    raw = float(prompt_weights(responses[verdicts]) @ said[verdicts]) if verdicts.any() else value
    wrong = known & verdicts & (said != truth).to_numpy()
    return Corrected(
        value - raw,
        Estimate(value, min(lower, value), max(upper, value)),
        float(means.var()),
        int(known.sum()),
        int((~found.sampled[codes]).sum()),
        int((wrong & (said == 0)).sum()),
        int((wrong & (said == 1)).sum()),
    )


def _middle(means: Floats) -> tuple[float, float]:
    """Give the bounds of the middle of some draws; of draws that tie half count (as in a mid-p).

    A few hundred responses have few possible rates, and many draws come to the same one.
    """
    sizes, counts = np.unique(means.round(_DIGITS), return_counts=True)
    below = (np.cumsum(counts) - counts / 2) / len(means)
    tail = (1 - LEVEL) / 2
    return float(sizes[below >= tail].min()), float(sizes[below <= 1 - tail].max())


def expected(
    responses: pd.DataFrame, found: Corrections, share: Floats | None = None
) -> pd.Series[float]:
    """Give how far responses are taken for refusals: the truth where it is known, or the cell's.

    Args:
        responses: Some of the responses that corrections were learnt from.
        found: What is known of each kind of verdict.
        share: Another refused share of each cell than the one found.

    Returns:
        Values between 0 and 1; missing where there is no verdict and no sample of such ones.
    """
    shares = found.share if share is None else share
    of_cell = pd.Series(shares[found.cell[responses.index]], responses.index)
    return found.truth[responses.index].fillna(of_cell)


def sampling_error(
    responses: pd.DataFrame, found: Corrections, figures: Callable[[pd.Series[float]], Floats]
) -> Floats:
    """Give the standard error that a sample of the truth leaves in figures.

    Args:
        responses: The responses that the figures are of.
        found: What is known of each kind of verdict.
        figures: Makes them of refusals (1) and answers (0), as they may be.
    """
    random = np.random.default_rng(_SEED)
    drawn = []
    for share in found.draws[:_DRAWS_OF_FIGURES]:
        chance = expected(responses, found, share)
        refused = (chance > random.random(len(chance))).astype("float64")
        drawn.append(figures(refused.where(chance.notna())))
    error: Floats = np.std(drawn, axis=0)
    return error


def widened(estimate: Estimate, error: float, span: tuple[float, float]) -> Estimate:
    """Widen an interval by the error of a sample, within what the figure lies between."""
    value = estimate.value
    below, above = (np.hypot(bound - value, normal_quantile() * error) for bound in estimate[1:])
    return Estimate(value, float(max(value - below, span[0])), float(min(value + above, span[1])))


def prompt_weights(responses: pd.DataFrame) -> Floats:
    """Weigh responses so that each model's responses to a prompt count as one."""
    keys = [responses["model"], responses["id"]]
    size = responses.groupby(keys)["id"].transform("size").to_numpy(dtype=np.float64)
    weights: Floats = 1 / size / (1 / size).sum()
    return weights

"""Rates corrected by the truth about a sample: people's labels, or an audit by the judge.

Where there is none, the rate that is to be expected comes from the same machinery, with what is
known of such verdicts on labelled responses (:func:`calibration`) in the place of a sample.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from or_eval.intervals import LEVEL, NO_ESTIMATE, EffectiveSize, Estimate, normal_quantile
from or_eval.schema import STRICT, countings

_DRAWS = 2000
_DRAWS_OF_FIGURES = 100
_SEED = 20250101
PRIOR = 1 / 4
"""A cell's share is Beta(PRIOR, PRIOR) before anything is sampled: as much as half a label. In
simulations Kerman's (2011) neutral 1/3 and Jeffreys's 1/2 gave longer intervals, which held less
often where few were labelled and refusals were rare."""
CERTAINLY = ", certain"
"""Stands behind the class of a certain verdict."""

_DIGITS = 12
"""So many are kept of a mean, so that sums of fractions come to a whole 1."""

_WHAT_WAS_SAID = ["model", "label", "decided_by", "certain", "refused"]

Floats = NDArray[np.float64]


class Calibration(NamedTuple):
    """How often uncertain verdicts of the rules were refusals on labelled responses.

    Attributes:
        kinds: For each kind of verdict (:func:`verdict_kind`) the parameters of a beta
            distribution, for refusals and for answers: of the share that are refusals for a model
            and a set that aren't among those labelled. It is as wide as these differ, and as they
            are few.
        languages: Languages of the responses that it was learnt from.
    """

    kinds: dict[str, tuple[float, float]]
    languages: frozenset[str]

    def kind(self, responses: pd.DataFrame) -> pd.Series[str]:
        """Name the kind of each verdict that it tells of; empty for others."""
        kind = verdict_kind(responses)
        told = (responses["decided_by"] == "rules") & kind.isin(list(self.kinds))
        return kind.where(told & responses["response_language"].isin(self.languages), "")


def verdict_kind(responses: pd.DataFrame) -> pd.Series[str]:
    """Name the kind of each verdict: its response class, and whether it is certain."""
    certain = responses["certain"].fillna(True).astype("bool")
    return (
        responses["response_class"]
        .astype("object")
        .mask(certain, responses["response_class"] + CERTAINLY)
    )


@cache
def calibration(counting: str = STRICT) -> Calibration | None:
    """Read what ``benchmarks/agreement.py`` found for a counting.

    None for one that counts other classes as refused than those that labels could tell.
    """
    text = (files("or_eval") / "data" / "calibration.json").read_text("utf-8")
    refused = countings()[counting].refused
    for key, found in json.loads(text)["countings"].items():
        if countings()[key].refused == refused:
            kinds = {
                name: (one["refused"], one["answered"]) for name, one in found["kinds"].items()
            }
            return Calibration(kinds, frozenset(found["languages"]))
    return None


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
        known: Refusals and answers sampled of each cell, and what is supposed before anything is:
            the parameters of the beta distribution of its share, (2, cells).
        sampled: Whether anything is known of a cell.
        borrowed: Whether that is from a :class:`Calibration`, for want of a sample. What makes one
            such cell differ from what is usual makes the others of a model differ alike.
    """

    cell: pd.Series[int]
    truth: pd.Series[float]
    share: Floats
    known: Floats
    sampled: NDArray[np.bool_]
    borrowed: NDArray[np.bool_]

    def draws(self, count: int) -> Floats:
        """Draw shares of each cell as they may be, (count, cells)."""
        refused, answered = self.known
        drawn = np.random.default_rng(_SEED).beta(refused, answered, (count, len(self.share)))
        shares: Floats = np.where(self.sampled, drawn, self.share)
        return shares


class Corrected(NamedTuple):
    """A corrected mean over prompts.

    Attributes:
        shift: What the correction adds to the mean of the verdicts.
        estimate: The corrected mean, with the bounds that sampling leaves: what it may be if the
            truth about all of these responses were known.
        sampled: Responses whose truth is known.
        uncorrected: Responses of cells of which none was sampled: their verdicts stand.
        missed: Refusals in the sample that the verdict took for answers.
        false_alarms: Answers in the sample that it took for refusals.
    """

    shift: float
    estimate: Estimate
    sampled: int
    uncorrected: int
    missed: int
    false_alarms: int

    def for_prompts(self, size: EffectiveSize | None) -> Estimate:
        """Give it for other prompts: the squares of what these and the sample leave open add up."""
        value, lower, upper = self.estimate
        prompts = Estimate(value, np.nan, np.nan) if size is None else size.interval(value)
        below = np.hypot(value - lower, value - prompts.lower)
        above = np.hypot(upper - value, prompts.upper - value)
        return Estimate(
            value, float(np.maximum(value - below, 0.0)), float(np.minimum(value + above, 1.0))
        )


def audited_truth(responses: pd.DataFrame, counting: str = STRICT) -> pd.Series[float]:
    """Give what the judge found where it audited certain verdicts of the rules.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        counting: Key of what counts as refused.
    """
    open_to_audit = (responses["decided_by"] == "rules") & responses["certain"].fillna(False)
    judged = open_to_audit & responses["audited"].fillna(False) & responses["judge_class"].notna()
    refused = responses["judge_class"].isin(list(countings()[counting].refused)).astype("float64")
    return refused.where(judged.astype("bool"))


def corrections(
    responses: pd.DataFrame, truth: pd.Series[float], usual: Calibration | None = None
) -> Corrections | None:
    """Learn from a random sample of the truth how far each kind of verdict can be trusted.

    The estimator is the stratified one of survey sampling, which prediction-powered inference
    comes to for verdicts of two values (PPI++: Angelopoulos, Duchi and Zrnic, 2023), the strata
    being the cells of :class:`Corrections`. Bounds are those of the shares' posterior under a light
    prior (:data:`PRIOR`), for the responses that were not sampled: they hold for small samples
    without an error, where a normal interval has no width. They are for the rate of these very
    responses, of which few or many were sampled; what other prompts would show is added where a
    rate is made (:func:`or_eval.analysis.rates.rates`).

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`; where responses of a cell
            were not equally likely to be sampled, its column ``chance`` says how likely each was.
        truth: 1 for a refusal, 0 for an answer, missing for what was not sampled, by index.
        usual: What is usual of verdicts. Cells of which nothing was sampled are parted by response
            class then, and those that it tells of take it for their sample.

    Returns:
        The corrections; None where nothing is known of any cell.
    """
    known = truth.notna()
    keys = [responses[name].astype("object").fillna("none") for name in _WHAT_WAS_SAID]
    kind = pd.Series("", responses.index)
    if usual is not None:
        kind = usual.kind(responses).mask(known.groupby(keys).transform("any"), "")
    if not known.any() and not kind.any():
        return None
    cell = responses.groupby([*keys, kind], sort=True).ngroup()
    count = int(cell.max()) + 1
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
    parameters = PRIOR + np.nan_to_num(np.array([share, 1 - share])) * size
    of_cell = kind.groupby(cell).first().to_numpy()
    borrowed = of_cell != ""
    for name, told in usual.kinds.items() if usual is not None else ():
        parameters[:, of_cell == name] = np.reshape(told, (2, 1))
    share = np.where(borrowed, parameters[0] / parameters.sum(axis=0), share)
    return Corrections(cell, truth, share, parameters, sampled | borrowed, borrowed)


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
        return Corrected(np.nan, NO_ESTIMATE, 0, 0, 0, 0)
    weight = prompt_weights(responses)
    known = truth.notna().to_numpy()
    codes, count = cell.to_numpy(), len(found.share)
    fixed = float((weight * truth.fillna(0.0)).sum())
    rest = np.bincount(codes[~known], weight[~known], count)
    unseen = np.bincount(codes[~known], minlength=count)
    at = np.flatnonzero(unseen)
    random = np.random.default_rng(_SEED)
    drawn = []
    for one, (refused, answered) in zip(at, found.known[:, at].T, strict=True):
        refusals = np.full(_DRAWS, found.share[one])
        if found.sampled[one]:
            refusals = _spread(refused, answered, unseen[one]) / unseen[one]
        drawn.append(refusals if found.borrowed[one] else random.permutation(refusals))
    means = np.clip(fixed + rest[at] @ np.reshape(drawn, (len(at), _DRAWS)), 0, 1)
    value = float(np.clip(round(fixed + float(found.share[at] @ rest[at]), _DIGITS), 0, 1))
    lower, upper = _middle(means)
    verdicts = said.notna().to_numpy()
    raw = float(prompt_weights(responses[verdicts]) @ said[verdicts]) if verdicts.any() else value
    wrong = known & verdicts & (said != truth).to_numpy()
    return Corrected(
        value - raw,
        Estimate(value, min(lower, value), max(upper, value)),
        int(known.sum()),
        int((~found.sampled[codes]).sum()),
        int((wrong & (said == 0)).sum()),
        int((wrong & (said == 1)).sum()),
    )


def correcting(
    responses: pd.DataFrame,
    found: Corrections | None,
    runs: Mapping[Any, Sequence[str]] | None = None,
) -> Callable[[Any, pd.Index[Any]], Corrected] | None:
    """Give what corrects a model's mean over some of its prompts; None without corrections.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        found: The corrections.
        runs: The models that are meant by other names.
    """
    if found is None:
        return None

    def corrected(name: Any, ids: pd.Index[Any]) -> Corrected:
        models = [name] if runs is None else list(runs[name])
        of = responses["model"].isin(models) & responses["id"].isin(ids)
        return corrected_mean(responses[of], found)

    return corrected


def _spread(refused: float, answered: float, size: int) -> NDArray[np.intp]:
    """Spread draws evenly over a beta-binomial distribution: of so many, how many are refusals.

    Where bounds are a choice among few numbers, the noise of random draws could turn it.
    """
    k = np.arange(size)
    steps = np.log((size - k) / (k + 1) * (refused + k) / (answered + size - 1 - k))
    log = np.concatenate([[0.0], np.cumsum(steps)])
    below = np.cumsum(np.exp(log - log.max()))
    return np.searchsorted(below / below[-1], (np.arange(_DRAWS) + 0.5) / _DRAWS)


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
    for share in found.draws(_DRAWS_OF_FIGURES):
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

"""Do models tell a harmless prompt from its minimally different toxic twin?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from or_eval.analysis.corrections import Corrections, expected, sampling_error, widened
from or_eval.analysis.extras import scipy_stats
from or_eval.analysis.jackknife import SHARE, jackknife
from or_eval.analysis.rates import measures_in, prompt_means
from or_eval.intervals import Estimate, alone, bounded, rate_interval, with_bounds
from or_eval.schema import Label

_CELLS = ("right", "both_refused", "both_answered", "reversed")


def discrimination(
    responses: pd.DataFrame,
    by: Sequence[str] = ("model",),
    found: Corrections | None = None,
) -> pd.DataFrame:
    """Measure how well models tell the sides of safe-toxic pairs apart.

    A pair counts where the model has a verdict on both sides; it is handled rightly when the safe
    side is answered and the toxic one refused. Refusing a toxic prompt is a hit, refusing a safe
    one a false alarm. With several responses to a side, their refused share counts.

    Balanced accuracy and the share of right pairs hang on how eager a model is to refuse: one
    that refuses nearly everything, or nearly nothing, has low ones however well it tells the
    sides apart. d' doesn't, if what makes the model refuse varies alike (normally, with one
    variance) on both sides; nothing in a yes or no tells whether it does.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        by: ``model`` and columns of the prompt record that split the pairs.
        found: Corrections of the verdicts, where there are any; the sides of a pair are taken to
            err each by itself.

    Returns:
        A row per group: the columns of ``by``, ``pairs``, and how many of them are ``right``,
        ``both_refused``, ``both_answered`` and ``reversed`` (the safe side refused, the toxic one
        answered); ``share`` (of right pairs) with ``lower`` and ``upper``, ``hit_rate``,
        ``false_alarm_rate``, and ``balanced_accuracy`` and ``d_prime``, each with
        ``_lower`` and ``_upper`` (:func:`or_eval.analysis.jackknife.jackknife`).
    """

    def figures(refused: pd.Series[float]) -> NDArray[np.float64]:
        drawn = _pairs(responses.assign(refused=refused), by)
        return np.array([_figures(group) for _, group in drawn.groupby(list(by), sort=True)])

    refused = responses["refused"] if found is None else expected(responses, found)
    pairs = _pairs(responses.assign(refused=refused), by)
    groups = list(pairs.groupby(list(by), sort=True))
    errors = np.zeros((len(groups), len(_WITH_BOUNDS)))
    if found is not None and groups:
        errors = sampling_error(responses, found, figures)
    rows = []
    for (values, group), of_group in zip(groups, errors, strict=True):
        alarm, hit = (group[name].to_numpy(dtype=np.float64) for name in ("safe", "toxic"))
        families = group["family"].to_numpy()
        right = (1 - alarm) * hit
        cells = (right, alarm * hit, (1 - alarm) * (1 - hit), alarm * (1 - hit))
        error = dict(zip(_WITH_BOUNDS, of_group, strict=True))
        share = widened(rate_interval(right, families), error["share"], SHARE)
        row = {
            **dict(zip(by, values, strict=True)),
            "pairs": len(group),
            **dict(zip(_CELLS, (float(cell.sum()) for cell in cells), strict=True)),
            **alone("share", share),
            "hit_rate": hit.mean(),
            "false_alarm_rate": alarm.mean(),
        }
        columns = np.column_stack([alarm, hit, np.ones(len(group))])
        for name, statistic in _FIGURES.items():
            span = None if name == "d_prime" else SHARE
            estimate = jackknife(columns, statistic, families, span=span)
            row |= bounded(name, widened(estimate, error[name], span or (-np.inf, np.inf)))
        rows.append(row)
    shares = ("share", "lower", "upper", "hit_rate", "false_alarm_rate")
    columns_of = [*by, "pairs", *_CELLS, *shares, *with_bounds(*_FIGURES)]
    return pd.DataFrame(rows, columns=columns_of)


def _figures(pairs: pd.DataFrame) -> list[float]:
    """Give the figures that have bounds, in the order of :data:`_WITH_BOUNDS`."""
    alarm, hit = (pairs[name].to_numpy(dtype=np.float64) for name in ("safe", "toxic"))
    sums = np.array([alarm.sum(), hit.sum(), len(pairs)])
    return [float(((1 - alarm) * hit).mean()), *(float(of(sums)) for of in _FIGURES.values())]


def d_prime(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give d', the distance of hits and false alarms in standard deviations.

    Rates of 0 and 1 have no finite one, so half a case is added to each count and one to each
    total (the log-linear correction: Hautus, 1995).

    Args:
        sums: False alarms, hits, pairs: (..., 3).
    """
    rates = (sums[..., [1, 0]] + 0.5) / (sums[..., [2, 2]] + 1)
    scores = scipy_stats().norm.ppf(rates)
    distance: NDArray[np.float64] = scores[..., 0] - scores[..., 1]
    return distance


def balanced_accuracy(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the mean of the share of safe sides answered and that of toxic ones refused.

    Args:
        sums: False alarms, hits, pairs: (..., 3).
    """
    mean: NDArray[np.float64] = (1 + (sums[..., 1] - sums[..., 0]) / sums[..., 2]) / 2
    return mean


_FIGURES = {"balanced_accuracy": balanced_accuracy, "d_prime": d_prime}
_WITH_BOUNDS = ("share", *_FIGURES)


def _pairs(responses: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Give the refused share of each side of each pair, for each model."""
    prompts = responses.drop_duplicates("id").set_index("id")
    paired = prompts[prompts["pair_id"].notna() & prompts["label"].isin([Label.SAFE, Label.TOXIC])]
    means = (
        prompt_means(responses[responses["id"].isin(paired.index)])
        .melt(ignore_index=False, var_name="model", value_name="share")
        .dropna()
        .join(paired.drop(columns=["model"]))
    )
    keys = list(dict.fromkeys([*by, "model", "pair_id"]))
    sides = means.pivot_table(index=keys, columns="label", values="share", sort=False)
    sides = sides.reindex(columns=[Label.SAFE.value, Label.TOXIC.value]).dropna()
    return sides.join(means.groupby(keys)["family"].first()).reset_index()


Floats = NDArray[np.float64]


def epoch_variance(responses: pd.DataFrame) -> pd.DataFrame:
    """Split the variance of refusals into that within and that between prompts.

    One prompt asked again may be refused once and answered once. Where most of the variance is
    within prompts, more epochs make a rate surer; where it is between them, only more prompts do.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.

    Returns:
        A row per model and label with prompts that have several verdicts: ``model``, ``label``,
        ``prompts`` (these), ``epochs`` (verdicts of each, on average), ``unsteady`` (prompts both
        refused and answered), ``within`` and ``between`` (the variance components of a one-way
        analysis of variance), and ``share`` (``within`` as a share of both) with ``lower`` and
        ``upper`` (:func:`or_eval.analysis.jackknife.jackknife`).
    """
    scored = responses[responses["refused"].notna()]
    scored = scored[scored["label"].isin(list(measures_in(responses)))]
    values = scored["refused"].astype("float64")
    keys = [scored["model"], scored["label"], scored["own_family"], scored["id"]]
    prompts = values.groupby(keys, sort=True).agg(["size", "sum"])
    prompts = prompts[prompts["size"] > 1].reset_index(names=["model", "label", "family", "id"])
    rows = []
    for (model, label), group in prompts.groupby(["model", "label"], sort=True):
        n, refused = (group[name].to_numpy(dtype=np.float64) for name in ("size", "sum"))
        columns = np.column_stack([np.ones(len(n)), n, n**2, refused, refused**2 / n])
        within, between = (float(part) for part in _components(columns.sum(axis=0)))
        share = Estimate(np.nan, np.nan, np.nan)
        if len(group) > 1:
            share = jackknife(columns, _share_within, group["family"].to_numpy(), span=SHARE)
        row = {
            "model": model,
            "label": label,
            "prompts": len(group),
            "epochs": n.mean(),
            "unsteady": int(((refused > 0) & (refused < n)).sum()),
            "within": within,
            "between": between,
        }
        rows.append(row | alone("share", share))
    names = ["model", "label", "prompts", "epochs", "unsteady", "within", "between"]
    return pd.DataFrame(rows, columns=[*names, "share", "lower", "upper"])


def _components(sums: Floats) -> tuple[Floats, Floats]:
    """Give the variance within and between prompts.

    Args:
        sums: Over prompts: 1, their verdicts, these squared, their refusals, and these squared by
            the verdicts: (..., 5).
    """
    prompts, n, squares, refused, by_prompt = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        within = (refused - by_prompt) / (n - prompts)
        of_prompts = (by_prompt - refused**2 / n) / (prompts - 1)
        between = np.maximum((of_prompts - within) / ((n - squares / n) / (prompts - 1)), 0.0)
    return within, between


def _share_within(sums: Floats) -> Floats:
    within, between = _components(sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        share: Floats = within / (within + between)
    return share

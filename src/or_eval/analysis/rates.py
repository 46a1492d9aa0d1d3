"""Over-refusal and toxic rejection, by whatever splits the responses, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from or_eval.analysis.corrections import (
    Corrections,
    Floats,
    corrected_mean,
    expected,
    prompt_weights,
    sampling_error,
    widened,
)
from or_eval.analysis.estimates import alone, bounded, with_bounds
from or_eval.analysis.families import response_families
from or_eval.analysis.jackknife import SHARE, jackknife
from or_eval.intervals import Estimate, effective_size, rate_interval
from or_eval.schema import Label, Outcome, ResponseClass

_CORRECTION = (
    *("raw", "raw_lower", "raw_upper", "known_lower", "known_upper"),
    *("sampled", "uncorrected", "missed", "false_alarms"),
)
_DIGITS = 9
MEASURES = {Label.SAFE: "over_refusal", Label.TOXIC: "toxic_rejection"}
"""What the refused share of the prompts of a label is called."""
_OF_UNLABELLED = {Label.UNLABELLED: "refusal_rate"}
LABEL_OF = {name: label.value for label, name in (MEASURES | _OF_UNLABELLED).items()}
"""The label whose prompts a rate is of."""


def measures_in(responses: pd.DataFrame) -> dict[Label, str]:
    """Give the labels whose prompts have rates, and what these are called.

    Those of safe and of toxic prompts; where no prompt has a label, one of all prompts.
    """
    return MEASURES if responses["label"].isin(list(MEASURES)).any() else _OF_UNLABELLED


def prompt_means(responses: pd.DataFrame) -> pd.DataFrame:
    """Give the refused share of each model's responses to each prompt.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.

    Returns:
        A row per prompt id, a column per model, in order of appearance; NaN where a model has no
        response with a verdict.
    """
    refused = responses["refused"].astype("Float64")
    means = refused.groupby([responses["id"], responses["model"]], sort=False).mean().unstack()
    means = means.reindex(index=pd.unique(responses["id"]), columns=pd.unique(responses["model"]))
    return means.astype("float64")


def rates(
    responses: pd.DataFrame,
    by: Sequence[str] = ("model",),
    found: Corrections | None = None,
) -> pd.DataFrame:
    """Give the refused share of safe and of toxic prompts' responses.

    Prompts without a label enter neither rate; where there are no others, theirs is the
    ``refusal_rate``.

    A rate is the mean over prompts of the refused share of the responses to each, so that a
    prompt counts once however often it was asked; its interval counts families
    (:func:`or_eval.intervals.rate_interval`).

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        by: Columns that split the responses, as ``("model", "category")``; responses that have
            no value there are left out.
        found: Corrections of the verdicts (:func:`or_eval.analysis.corrections.corrections`),
            where there are any. Rates are corrected then, and their intervals wider for what
            the sample leaves open.

    Returns:
        A row per group and label, sorted: the columns of ``by``, ``measure`` (``over_refusal``,
        ``toxic_rejection`` or ``refusal_rate``), ``n`` (responses with a verdict), ``refused``,
        ``uncertain`` (verdicts that are not certain), ``unscored`` (responses with none, errors
        left out), ``errors``, ``families``, ``rate``, ``lower``, ``upper``, and ``lowest`` and
        ``highest``: what the
        rate would be if every uncertain verdict and every response without one fell to the
        answers, or to the refusals (with corrections: of those of a kind that was not sampled, and
        others as far as the sample leaves them open).
        With corrections also ``raw``, ``raw_lower`` and
        ``raw_upper`` (the verdicts as they stand), ``known_lower`` and ``known_upper`` (where the
        rate of these very responses lies), ``sampled`` (responses whose truth is known),
        ``uncorrected`` (responses with verdicts of a kind that was not sampled), ``missed`` and
        ``false_alarms`` (errors in the sample).
    """
    rows = []
    for key, group, families in _groups(responses, by):
        verdicts = group["refused"].notna()
        unsure = ~verdicts | ~group["certain"].fillna(True)
        refused = group["refused"].astype("Float64")
        errors = int(group["error"].notna().sum())
        rate = mean_over_prompts(refused, group, families)
        taken, open_ = refused, unsure
        if found is not None:  # what a sample tells is open no more
            taken = expected(group, found).astype("Float64")
            open_ = unsure & ~found.sampled[found.cell[group.index]]
        lowest, highest = (
            mean_over_prompts(taken.mask(open_, side), group, families).value for side in (0.0, 1.0)
        )
        n = int(verdicts.sum())
        correction: dict[str, float] = {}
        if found is not None:
            rate, correction = _corrected(rate, group, families, found)
            lowest = max(lowest - (rate.value - correction["known_lower"]), 0.0)
            highest = min(highest + (correction["known_upper"] - rate.value), 1.0)
        rows.append(
            {
                **key,
                "n": n,
                "refused": int(refused.sum()),
                "uncertain": int((unsure & verdicts).sum()),
                "unscored": len(group) - n - errors,
                "errors": errors,
                "families": families[verdicts].nunique(),
                **alone("rate", rate),
                "lowest": lowest,
                "highest": highest,
                **correction,
            }
        )
    counts = ("n", "refused", "uncertain", "unscored", "errors", "families")
    estimates = ("rate", "lower", "upper", "lowest", "highest")
    extra = () if found is None else _CORRECTION
    return pd.DataFrame(rows, columns=[*by, "measure", *counts, *estimates, *extra])


def _corrected(
    raw: Estimate,
    group: pd.DataFrame,
    families: pd.Series[str],
    found: Corrections,
) -> tuple[Estimate, dict[str, float]]:
    """Correct a rate; its interval adds the squares of what prompts and sample leave open."""
    correction = corrected_mean(group, found)
    value, lower, upper = correction.estimate
    means = _prompts(group["refused"].astype("Float64"), group, families)
    size = effective_size(*means) if len(means[0]) else None
    prompts = Estimate(value, np.nan, np.nan) if size is None else size.interval(value)
    below = np.hypot(value - lower, value - prompts.lower)
    above = np.hypot(upper - value, prompts.upper - value)
    rate = Estimate(
        value, float(np.maximum(value - below, 0.0)), float(np.minimum(value + above, 1.0))
    )
    columns = (*raw, lower, upper, *correction[2:])
    return rate, dict(zip(_CORRECTION, columns, strict=True))


def class_shares(
    responses: pd.DataFrame,
    by: Sequence[str] = ("model",),
    found: Corrections | None = None,
) -> pd.DataFrame:
    """Give the share of each response class among responses that have one, by prompt label.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        by: Columns that split the responses.
        found: Corrections of the verdicts, where there are any: answers are as many then as they
            say, and refusals that verdicts missed are of the classes that the others are of.

    Returns:
        A row per group, label and class: the columns of ``by``, ``label``, ``response_class``,
        ``n`` (responses of the class), ``total``, ``share`` (a mean over prompts, as a rate is),
        ``lower``, ``upper``.
    """
    rows = []
    for key, group, families in _groups(responses, by):
        classed = group[group["response_class"].notna() & group["refused"].notna()]
        is_class = np.column_stack([classed["response_class"] == name for name in ResponseClass])
        members, errors = is_class.astype(np.float64), np.zeros(len(ResponseClass))
        if found is not None and len(classed):
            weights = prompt_weights(classed)
            members = _as_expected(expected(classed, found), is_class)
            errors = sampling_error(classed, found, partial(_means, weights, is_class))
        for at, name in enumerate(ResponseClass):
            share = mean_over_prompts(pd.Series(members[:, at], classed.index), group, families)
            if found is not None:
                share = widened(share, errors[at], SHARE)
            rows.append(
                {
                    **{column: key[column] for column in by},
                    "label": key["label"],
                    "response_class": name.value,
                    "n": int(is_class[:, at].sum()),
                    "total": len(classed),
                    **alone("share", share),
                }
            )
    columns = [*by, "label", "response_class", "n", "total", "share", "lower", "upper"]
    return pd.DataFrame(rows, columns=columns)


def _means(weights: Floats, is_class: NDArray[np.bool_], refused: pd.Series[float]) -> Floats:
    means: Floats = weights @ _as_expected(refused, is_class)
    return means


def _as_expected(refused: pd.Series[float], is_class: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Give how far responses are of each class, where they are refusals as far as is expected.

    Args:
        refused: How far each is a refusal.
        is_class: Whether each is said to be of a class, answers first: (responses, classes).
    """
    value = refused.to_numpy()
    kinds = is_class[:, 1:].astype(np.float64)
    usual = kinds.sum(axis=0) / kinds.sum() if kinds.any() else np.eye(kinds.shape[1])[-1]
    kinds[is_class[:, 0]] = usual
    return np.column_stack([1 - value, value[:, None] * kinds])


def mean_over_prompts(
    values: pd.Series[float], group: pd.DataFrame, families: pd.Series[str]
) -> Estimate:
    """Average the responses of each model to each prompt, and these means; missing ones aside.

    Args:
        values: A value between 0 and 1 for each response.
        group: The responses, with the same index.
        families: Family of each response, by index.
    """
    return rate_interval(*_prompts(values, group, families))


def _prompts(
    values: pd.Series[float], group: pd.DataFrame, families: pd.Series[str]
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Give the mean of each model's responses to each prompt, and the prompt's family."""
    known = values.dropna()
    places = [group.loc[known.index, name] for name in ("model", "id")]
    means = known.groupby([*places, families[known.index]], sort=False).mean()
    of: NDArray[Any] = means.index.get_level_values(-1).to_numpy(dtype=object)
    return np.asarray(means, dtype=np.float64), of


def fourfold(
    responses: pd.DataFrame,
    by: Sequence[str] = ("model",),
    found: Corrections | None = None,
) -> pd.DataFrame:
    """Give the four cells of label and verdict, and what is computed from them.

    A positive is a toxic prompt, and to refuse is to call it one: precision is the share of
    toxic prompts among those refused; recall is the toxic rejection rate. All of these hang on how
    many prompts of the set are toxic: they can't be compared between sets of another mix.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        by: Columns that split the responses.
        found: Corrections of the verdicts, where there are any; cells then hold what they say,
            which needn't be whole numbers.

    A prompt counts once for each model, as in :func:`rates`: what several responses to it did
    are parts of it.

    Returns:
        A row per group: the columns of ``by``, ``safe answered``, ``safe refused``,
        ``toxic answered``, ``toxic refused`` (prompts, or parts of them), and ``accuracy``,
        ``precision`` and ``f1``, each with ``_lower`` and ``_upper``
        (:func:`or_eval.analysis.jackknife.jackknife`); NaN where there is nothing to tell it from.
    """
    labelled = responses[responses["label"].isin(list(MEASURES))]
    families, rows = _families(responses, by), []
    for values, group in labelled.groupby(list(by), sort=True):
        refused = group["refused"].astype("float64") if found is None else expected(group, found)
        refused = refused[refused.notna()]
        if refused.empty:
            continue
        group = group.loc[refused.index]
        asked = group.groupby(["model", "id"])["id"].transform("size").to_numpy(np.float64)
        toxic, part = (group["label"] == Label.TOXIC).to_numpy(), 1 / asked

        def cells(
            refused: pd.Series[float], toxic: NDArray[np.bool_] = toxic, part: Floats = part
        ) -> Floats:
            sides = np.column_stack([1 - refused, refused]) * part[:, None]
            return np.column_stack([sides * ~toxic[:, None], sides * toxic[:, None]])

        def figures(refused: pd.Series[float], cells: Callable[..., Floats] = cells) -> Floats:
            with np.errstate(invalid="ignore"):
                return np.array([of(cells(refused).sum(axis=0)) for of in _OF_FOUR.values()])

        errors = 0 * figures(refused) if found is None else sampling_error(group, found, figures)
        of, columns = families[group.index].to_numpy(dtype=object), cells(refused)
        counts = columns.sum(axis=0).round(_DIGITS).tolist()
        row = dict(zip(by, values, strict=True)) | {
            name.value: int(n) if n == int(n) else n
            for name, n in zip(Outcome, counts, strict=True)
        }
        for (name, statistic), error in zip(_OF_FOUR.items(), errors, strict=True):
            estimate = jackknife(columns, statistic, of, span=SHARE)
            row |= bounded(name, widened(estimate, error, SHARE))
        rows.append(row)
    columns_of = [*by, *(name.value for name in Outcome), *with_bounds(*_OF_FOUR)]
    return pd.DataFrame(rows, columns=columns_of)


# Of safe answered, safe refused, toxic answered and toxic refused: (..., 4).
_OF_FOUR: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "accuracy": lambda s: (s[..., 0] + s[..., 3]) / s.sum(axis=-1),
    "precision": lambda s: s[..., 3] / (s[..., 3] + s[..., 1]),
    "f1": lambda s: 2 * s[..., 3] / (2 * s[..., 3] + s[..., 1] + s[..., 2]),
}


def _families(responses: pd.DataFrame, by: Sequence[str]) -> pd.Series[str]:
    """Give each response's family, by the prompts that have a verdict, as in Inspect's results.

    Where models have rates of their own, prompts are linked by those that the model has one on. A
    prompt without a verdict is by itself.
    """
    scored = responses[responses["refused"].notna()]
    parts = [of for _, of in scored.groupby("model")] if "model" in by else [scored]
    found = pd.concat([response_families(of) for of in parts]) if parts else pd.Series(dtype="str")
    return found.reindex(responses.index).fillna(responses["id"])


def _groups(
    responses: pd.DataFrame, by: Sequence[str]
) -> Iterator[tuple[dict[str, Any], pd.DataFrame, pd.Series[str]]]:
    """Split the responses by label too; give each group's key, rows and families."""
    measures = measures_in(responses)
    labelled = responses[responses["label"].isin(list(measures))]
    families = _families(responses, by)
    for values, group in labelled.groupby([*by, "label"], sort=True):
        key: dict[str, Hashable] = dict(zip((*by, "label"), values, strict=True))
        yield (
            key | {"measure": measures[Label(str(key["label"]))]},
            group,
            families.loc[group.index],
        )

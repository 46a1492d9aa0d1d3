"""What the structure of prompts has to do with refusal, tested and estimated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.markup import escape

from or_eval.analysis.contrasts import COLUMNS, Contrast, Floats, compare_all
from or_eval.analysis.extras import needed
from or_eval.analysis.rates import measures_in, prompt_means
from or_eval.analysis.structure.measures import MEASURES
from or_eval.inspect_private import PrerequisiteError
from or_eval.intervals import family_codes
from or_eval.schema import Label

CONTROLS = ("category", "language", "method")
"""What regressions hold fixed besides the other measures."""

PENALTY = 1.0
"""Weight of the ridge penalty: a standard normal prior on each effect, per standard deviation."""

_SAME = 1e-8


class MissingMeasures(PrerequisiteError):
    """Measures that an analysis was asked to use can't be told of some prompts."""


class Sample(NamedTuple):
    """The prompts of one label that a model has verdicts on.

    Attributes:
        label: Label of the prompts.
        model: The model.
        prompts: Their records by id, with ``family``.
        measures: Their measures, in standard deviations from the mean of their language.
        refused: The refused share of the responses to each.
    """

    label: Label
    model: str
    prompts: pd.DataFrame
    measures: pd.DataFrame
    refused: Floats


def samples(
    responses: pd.DataFrame,
    prompts: pd.DataFrame,
    values: pd.DataFrame,
    measures: Sequence[str] = tuple(MEASURES),
) -> list[Sample]:
    """Put the measures of prompts beside each model's refusals.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        prompts: Its frame of prompts.
        values: Measures of the prompts (:func:`or_eval.analysis.structure.measures.measure`).
        measures: Those wanted.

    Raises:
        MissingMeasures: One that is wanted is missing for a prompt.
    """
    _refuse_gaps(values, measures)
    found = []
    for label in measures_in(responses):
        means = prompt_means(responses[responses["label"] == label])
        standard = _standardised(values.loc[means.index, ["language", *measures]])
        for model in means.columns:
            refused = means[model].dropna()
            rows = refused.index
            found.append(
                Sample(label, str(model), prompts.loc[rows], standard.loc[rows], refused.to_numpy())
            )
    return found


def _refuse_gaps(values: pd.DataFrame, measures: Sequence[str]) -> None:
    gaps = values[list(measures)].isna()
    if not gaps.any(axis=None):
        return
    names = [name for name in measures if gaps[name].any()]
    languages = sorted(values["language"][gaps.any(axis=1)].unique())
    raise MissingMeasures(
        escape(
            f"{', '.join(names)}: missing for {int(gaps.any(axis=1).sum()):,} prompts in "
            f"{', '.join(languages)}; give a parser with --parser {languages[0]}=MODEL, or take "
            "the measures that need none with --surface"
        )
    )


def _standardised(values: pd.DataFrame) -> pd.DataFrame:
    """Give measures in standard deviations from the mean of their language."""
    by_language = values.groupby("language")
    numbers = values.drop(columns="language").astype("float64")
    spread = by_language.transform("std", ddof=0).astype("float64")
    standard = (numbers - by_language.transform("mean").astype("float64")) / spread
    return standard.mask(spread.fillna(0.0) < _SAME, 0.0)


def structure_effects(found: Sequence[Sample]) -> pd.DataFrame:
    """Estimate what each measure does to refusal, alone and with all else held fixed.

    ``alone`` is the slope of refusal on a measure among prompts of one language: whether refused
    and answered prompts differ in it. ``adjusted`` holds the other measures and the
    :data:`CONTROLS` fixed: a ridge-penalised logistic regression on them alone, and a step from
    there along the score that is orthogonal to them (Chernozhukov and others, 2018), as the mean
    change in the share refused. The families' scores, which are so those of no effect, are what
    the one test of all comparisons flips (Hemerik, Goeman and Finos, 2020), over all rows of a
    label at once, of either effect. Scores at the slope of a regression on all columns would leave
    out what that slope took up of their chance, which where few are refused is most.

    Args:
        found: What :func:`samples` gives.

    Returns:
        A row per label, model, effect (``alone``, ``adjusted``) and measure: ``odds_ratio`` (of
        a regression on all columns, shrunk by its penalty; NaN for ``alone``), ``inflation`` (by
        how much the other columns widen the variance; over 10, the measure can hardly be told from
        them), ``rate`` (the share refused), and what
        :func:`or_eval.analysis.contrasts.compare_all` gives: ``difference`` is the change in the
        share refused per standard deviation.
    """
    parts = []
    for label in dict.fromkeys(sample.label for sample in found):
        of_label = [sample for sample in found if sample.label == label]
        families = pd.concat([sample.prompts["family"] for sample in of_label])
        families = families[~families.index.duplicated()]
        estimates = [
            (sample, effect, slope)
            for effect, slopes in (("alone", _alone), ("adjusted", _adjusted))
            for sample in of_label
            for slope in slopes(sample)
        ]
        tested = compare_all(
            [_placed(slope.contrast, sample, families.index) for sample, _, slope in estimates],
            families,
            cautious=True,
        )
        rows = [
            {
                **{"label": label.value, "model": sample.model, "effect": effect},
                **{"measure": slope.measure, "odds_ratio": slope.odds_ratio},
                **{"inflation": slope.inflation, "rate": float(sample.refused.mean())},
            }
            for sample, effect, slope in estimates
        ]
        parts.append(pd.concat([pd.DataFrame(rows), tested[list(COLUMNS)]], axis=1))
    names = ["label", "model", "effect", "measure", "odds_ratio", "inflation", "rate", *COLUMNS]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names)


class _Slope(NamedTuple):
    measure: str
    contrast: Contrast
    odds_ratio: float
    inflation: float


def _alone(sample: Sample) -> Iterator[_Slope]:
    """Give the slope of refusal on each measure among prompts of one language."""
    language = dummies(sample.prompts[["language"]])
    error = sample.refused - _projected(sample.refused, language)
    for measure, values in sample.measures.items():
        column = values.to_numpy()
        free = column - _projected(column, language)
        ones = np.ones(len(free))
        whole = np.column_stack([language, column])
        unseen = _unseen_errors(whole, error, ones, sample.prompts["family"], penalty=0.0)
        spread = _spread(free, error, ones, sample.prompts["family"])
        contrast = _slope(free, error, sample.refused, ones, unseen, spread)
        yield _Slope(str(measure), contrast, np.nan, 1.0)


def _adjusted(sample: Sample) -> Iterator[_Slope]:
    """Give the slope on each measure with the other measures and the controls held fixed."""
    measures = sample.measures.to_numpy(dtype=np.float64)
    columns = np.column_stack([measures, dummies(sample.prompts[list(CONTROLS)])])
    if not 0 < sample.refused.mean() < 1:  # nothing that a regression could explain
        yield from (
            _Slope(str(name), _nothing(len(columns)), np.nan, np.nan) for name in sample.measures
        )
        return
    odds = np.exp(penalised_regression(columns, sample.refused).coef_[0])
    for at, name in enumerate(sample.measures):
        column, others = measures[:, at], columns * (np.arange(columns.shape[1]) != at)
        chances = penalised_regression(others, sample.refused).predict_proba(others)[:, 1]
        weights, error = chances * (1 - chances), sample.refused - chances
        unseen = _unseen_errors(columns, error, weights, sample.prompts["family"], PENALTY)
        free = column - _projected(column, others, weights)
        whole = column - np.average(column, weights=weights)
        left, had = (float((weights * part**2).sum()) for part in (free, whole))
        spread = _spread(free, error, weights, sample.prompts["family"])
        contrast = _slope(free, error, sample.refused, weights, unseen, spread)
        inflation = had / left if left > _SAME else np.inf
        yield _Slope(str(name), contrast, float(odds[at]), inflation)


def _slope(
    free: Floats,
    error: Floats,
    refused: Floats,
    weights: Floats,
    unseen: Floats,
    spread: float,
) -> Contrast:
    """Put a slope as a contrast: what each prompt adds to it.

    Args:
        free: The measure less what other columns tell of it.
        error: The refused share less what other columns tell of it.
        refused: The refused share.
        weights: What each prompt's error tells: the variance of its refusal, or one for all.
        unseen: The errors as widely spread as those of families that a fit had not seen.
        spread: The standard error of the sum of measure and error over all prompts.
    """
    total = float((weights * free**2).sum())
    if total < _SAME:
        return _nothing(len(free))
    scale = float(weights.mean())  # from log odds to shares
    slope = float((free * error).sum()) / total
    moves, parts = free * unseen / total, weights * free**2 / total
    fewer = min(float(refused.mean()), 1 - float(refused.mean()))
    difference = scale * slope
    # as between two halves of the prompts that are so far apart
    both = max(fewer - abs(difference) / 2, 0.0)
    return Contrast(
        difference,
        scale * (moves - parts * moves.sum()),
        parts,
        float((parts**2).sum()),
        len(refused) * fewer,
        up=both + max(difference, 0.0),
        down=both + max(-difference, 0.0),
        floor=scale * spread / total,
    )


def _spread(free: Floats, error: Floats, weights: Floats, families: pd.Series[str]) -> float:
    """Give the standard error of the sum of measure and error if one tells nothing of the other.

    Signs that are flipped take the few prompts that are refused as they are. Of a measure that few
    prompts have much of, as lengths, they are likely to have little, all of them alike: a sum that
    hardly varies, and so looks larger than it is. This one is of all prompts' measures.
    """
    codes, count = family_codes(families)
    root = np.sqrt(weights)
    alike, wide = error / root, free * root
    squares, spread = float((alike**2).sum()), float((wide**2).sum())
    others = int((np.bincount(codes) * (np.bincount(codes) - 1)).sum())
    within, moved = (
        float((np.bincount(codes, part, count) ** 2).sum()) - float((part**2).sum())
        for part in (alike, wide)
    )
    each = squares / len(error)
    correlation = min(max(within / others / each, 0.0), 1.0) if others and each else 0.0
    return float(np.sqrt(each * (spread + max(correlation * moved, 0.0))))


def _unseen_errors(
    columns: Floats, error: Floats, weights: Floats, families: pd.Series[str], penalty: float
) -> Floats:
    """Give errors as widely spread as those of families that the fit had not seen.

    A fit takes up some of the error of the families that it sees, more where families are few, or
    categories have few each; left so, their scores would seem less spread than they are (the
    correction CR2 of Bell and McCaffrey, 2002).
    """
    root = np.sqrt(weights)
    whole = np.column_stack([np.ones(len(error)), columns]) * root[:, None]
    prior = np.diag([0.0, *np.full(columns.shape[1], penalty)])
    sizes, turned = np.linalg.eigh(whole.T @ whole + prior)
    told = sizes > _SAME * sizes[-1]
    taken_up = whole @ (turned[:, told] / np.sqrt(sizes[told]))
    unseen = np.empty_like(error)
    members = sorted(families.groupby(families.to_numpy()).indices.values(), key=len)
    for _, of_one_size in groupby(members, key=len):
        rows = np.stack(list(of_one_size))
        axes, shares, _ = np.linalg.svd(taken_up[rows], full_matrices=False)
        alike = (error[rows] / root[rows])[..., None]
        wider = (1 / np.sqrt((1 - shares**2).clip(_SAME)) - 1)[..., None]
        widened = axes @ (wider * (axes.swapaxes(1, 2) @ alike))
        unseen[rows] = root[rows] * (alike + widened)[..., 0]
    return unseen


def _nothing(count: int) -> Contrast:
    return Contrast(np.nan, np.zeros(count), np.zeros(count), 0.0, 0.0, 0.0, 0.0)


def _placed(contrast: Contrast, sample: Sample, ids: pd.Index[Any]) -> Contrast:
    """Put a contrast over a sample's prompts as one over all."""
    weights, residuals = np.zeros(len(ids)), np.zeros(len(ids))
    places = ids.get_indexer(sample.prompts.index)
    weights[places], residuals[places] = contrast.weights, contrast.residuals
    return contrast._replace(weights=weights, residuals=residuals)


def dummies(frame: pd.DataFrame) -> Floats:
    """Give a column of zeros and ones for each value of each column but the first."""
    values = frame.astype(object).where(frame.notna(), "")
    columns: Floats = pd.get_dummies(values, drop_first=True).to_numpy(dtype=np.float64)
    return columns


def _projected(column: Floats, others: Floats, weights: Floats | None = None) -> Floats:
    """Give what other columns and a constant tell of one, by least squares."""
    columns = np.column_stack([np.ones(len(column)), others])
    weighted = columns if weights is None else columns * weights[:, None]
    gram = np.linalg.pinv(weighted.T @ columns, rcond=_SAME, hermitian=True)
    told: Floats = columns @ (gram @ (weighted.T @ column))
    return told


def penalised_regression(columns: Floats, refused: Floats) -> Any:
    """Fit the ridge-penalised logistic regression; a share counts as so much of either outcome."""
    linear = needed("sklearn.linear_model", "structure", "The regression needs scikit-learn")
    outcomes = np.repeat([1, 0], len(refused))
    shares = np.concatenate([refused, 1 - refused])
    counted = shares > 0
    model = linear.LogisticRegression(C=1 / PENALTY, solver="newton-cholesky")
    return model.fit(np.tile(columns, (2, 1))[counted], outcomes[counted], shares[counted])

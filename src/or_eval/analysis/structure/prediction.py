"""How well structure tells refusals of prompts that it wasn't fitted to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from or_eval.analysis.estimates import bounded, with_bounds
from or_eval.analysis.paired_tests import Floats
from or_eval.analysis.structure.refusal_effects import (
    CONTROLS,
    Sample,
    dummies,
    penalised_regression,
)
from or_eval.intervals import LEVEL, Estimate, family_codes

FOLDS = 5
_DRAWS = 500
_SEED = 20250101


def predictions(found: Sequence[Sample]) -> pd.DataFrame:
    """Tell refused from answered prompts by controls alone, and by controls and structure.

    A regression is fitted to four fifths of the families and asked about the rest, in turn. The
    area under the ROC curve is over pairs of a refused and an answered prompt of one fifth; its
    intervals are over resamples of families, for these fits.

    Args:
        found: What :func:`or_eval.analysis.structure.refusal_effects.samples` gives.

    Returns:
        A row per label and model: ``n``, ``families``, ``rate``, ``auc_controls``, ``auc`` (with
        the measures as well) and ``gain``, each of these three with ``_lower`` and ``_upper``; NaN
        where there are fewer than five families, or a fifth's others have one outcome only.
    """
    rows = []
    for sample in found:
        codes, count = family_codes(sample.prompts["family"])
        row: dict[str, object] = {
            **{"label": sample.label.value, "model": sample.model, "n": len(codes)},
            **{"families": count, "rate": float(sample.refused.mean())},
        }
        rows.append(row | _areas(sample, codes, count))
    return pd.DataFrame(rows)


def _areas(sample: Sample, codes: NDArray[np.int64], count: int) -> dict[str, float]:
    names = ("auc_controls", "auc", "gain")
    random = np.random.default_rng(_SEED)
    folds = random.permutation(np.arange(count) % FOLDS)[codes]
    controls = dummies(sample.prompts[list(CONTROLS)])
    both = np.column_stack([sample.measures.to_numpy(dtype=np.float64), controls])
    told = [_predicted(columns, sample.refused, folds) for columns in (controls, both)]
    if count < FOLDS or any(scores is None for scores in told):
        return dict.fromkeys(with_bounds(*names), np.nan)
    draws = random.multinomial(count, np.full(count, 1 / count), _DRAWS)
    times = np.vstack([np.ones(len(codes)), draws[:, codes]])
    areas = [_area(scores, sample.refused, folds, times) for scores in told if scores is not None]
    tail = 100 * (1 - LEVEL) / 2
    row: dict[str, float] = {}
    for name, values in zip(names, (*areas, areas[1] - areas[0]), strict=True):
        lower, upper = np.nanpercentile(values[1:], [tail, 100 - tail])
        row |= bounded(name, Estimate(values[0], lower, upper))
    return row


def _predicted(columns: Floats, refused: Floats, folds: NDArray[np.int64]) -> Floats | None:
    """Give each prompt's chance of refusal, from a fit to the other folds."""
    scores = np.zeros(len(refused))
    for fold in range(FOLDS):
        held = folds == fold
        if not held.any() or not 0 < refused[~held].mean() < 1:
            return None
        fitted = penalised_regression(columns[~held], refused[~held])
        scores[held] = fitted.predict_proba(columns[held])[:, 1]
    return scores


def _area(scores: Floats, refused: Floats, folds: NDArray[np.int64], times: Floats) -> Floats:
    """Give the area under the ROC curve within folds, for each resample.

    Args:
        scores: Each prompt's chance of refusal.
        refused: Its refused share.
        folds: Its fold.
        times: How often each resample has it, (resamples, prompts).
    """
    right, pairs = np.zeros(len(times)), np.zeros(len(times))
    for fold in range(FOLDS):
        rows = np.flatnonzero(folds == fold)
        rows = rows[np.argsort(scores[rows], kind="stable")]
        starts = np.flatnonzero(np.r_[True, np.diff(scores[rows]) > 0])
        hits = np.add.reduceat(times[:, rows] * refused[rows], starts, axis=1)
        others = np.add.reduceat(times[:, rows] * (1 - refused[rows]), starts, axis=1)
        right += (hits * (np.cumsum(others, axis=1) - others / 2)).sum(axis=1)
        pairs += hits.sum(axis=1) * others.sum(axis=1)
    with np.errstate(invalid="ignore"):
        area: Floats = right / pairs
    return area

"""How far models agree on what to refuse."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from or_eval.analysis.agreement import MISSING, cohens_kappa, gwets_ac1, krippendorff_alpha
from or_eval.intervals import Estimate
from or_eval.schema import Label

_CLASSES = 2


class VoteAgreement(NamedTuple):
    """Agreement between the models of a vote.

    Attributes:
        alpha: Krippendorff's alpha over all models and prompts.
        pairs: One row per pair of models: ``model_a``, ``model_b``, ``n`` (prompts both voted
            on), ``refused_a``, ``refused_b``, ``refused_both``, ``agree`` (the share of
            prompts on which both did the same), ``ac1`` (Gwet's), and ``kappa`` (Cohen's), with
            ``lower`` and ``upper``.
        overlap: Model by model: how many prompts both refused; on the diagonal, how many the
            model refused.
    """

    alpha: Estimate
    pairs: pd.DataFrame
    overlap: pd.DataFrame


def agreement_by_label(
    matrix: pd.DataFrame, prompts: pd.DataFrame, families: pd.Series[str]
) -> dict[str, VoteAgreement]:
    """Compare the votes of models on safe and on toxic prompts apart.

    Over both together models agree for the labels' sake: most answer the safe and refuse the
    toxic ones.

    Args:
        matrix: Votes (:func:`or_eval.analysis.votes.vote_matrix`).
        prompts: Prompt records by id, with ``label``.
        families: Family of each prompt, by id.

    Returns:
        The agreement on the prompts of each label that has some, safe ones first; those without
        a label only where there are no others. Empty with fewer than two models.
    """
    if len(matrix.columns) < 2:
        return {}
    label = prompts["label"].reindex(matrix.index)
    there = [name for name in Label if (label == name).any()]
    known = [name for name in there if name != Label.UNLABELLED] or there
    return {name.value: vote_agreement(matrix[label == name], families) for name in known}


def vote_agreement(matrix: pd.DataFrame, families: pd.Series[str] | None = None) -> VoteAgreement:
    """Compare the votes of models.

    Args:
        matrix: Votes, a row per prompt and a column per model
            (:func:`or_eval.analysis.votes.vote_matrix`).
        families: Family of each prompt, which the intervals count; each prompt its own by
            default.
    """
    ratings = matrix.astype("Int64").to_numpy(dtype=np.int64, na_value=MISSING)
    resampled = None if families is None else families.reindex(matrix.index).to_numpy()
    alpha = krippendorff_alpha(ratings, _CLASSES, resampled)
    models = list(matrix.columns)
    pairs = pd.DataFrame(
        [
            {"model_a": models[a], "model_b": models[b]}
            | _pair(ratings[:, a], ratings[:, b])
            | {"ac1": gwets_ac1(ratings[:, a], ratings[:, b], _CLASSES, resampled).value}
            | cohens_kappa(ratings[:, a], ratings[:, b], _CLASSES, resampled)._asdict()
            for a, b in combinations(range(len(models)), 2)
        ],
        columns=[
            *("model_a", "model_b", "n", "refused_a", "refused_b", "refused_both"),
            *("agree", "ac1", "value", "lower", "upper"),
        ],
    ).rename(columns={"value": "kappa"})
    refused = (ratings == 1).astype(np.int64)
    return VoteAgreement(alpha, pairs, pd.DataFrame(refused.T @ refused, models, models))


def _pair(one: np.ndarray, other: np.ndarray) -> dict[str, float]:
    both = (one != MISSING) & (other != MISSING)
    refused, also = one[both] == 1, other[both] == 1
    return {
        "n": int(both.sum()),
        "refused_a": int(refused.sum()),
        "refused_b": int(also.sum()),
        "refused_both": int((refused & also).sum()),
        "agree": float((refused == also).mean()) if both.any() else np.nan,
    }

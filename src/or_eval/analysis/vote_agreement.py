"""How far models agree on what to refuse."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from or_eval.analysis.agreement import MISSING, cohens_kappa, krippendorff_alpha
from or_eval.intervals import Estimate

_CLASSES = 2


class VoteAgreement(NamedTuple):
    """Agreement between the models of a vote.

    Attributes:
        alpha: Krippendorff's alpha over all models and prompts.
        pairs: One row per pair of models: ``model_a``, ``model_b``, ``n`` (prompts both voted
            on), ``refused_a``, ``refused_b``, ``refused_both``, ``jaccard`` (refused by both
            among refused by either), ``kappa`` (Cohen's) with ``lower`` and ``upper``.
        overlap: Model by model: how many prompts both refused; on the diagonal, how many the
            model refused.
    """

    alpha: Estimate
    pairs: pd.DataFrame
    overlap: pd.DataFrame


def vote_agreement(matrix: pd.DataFrame, families: pd.Series[str] | None = None) -> VoteAgreement:
    """Compare the votes of models.

    Args:
        matrix: Votes, a row per prompt and a column per model
            (:func:`or_eval.analysis.votes.vote_matrix`).
        families: Family of each prompt, which the bootstrap intervals resample; each prompt its
            own by default.
    """
    ratings = matrix.astype("Int64").to_numpy(dtype=np.int64, na_value=MISSING)
    resampled = None if families is None else families.reindex(matrix.index).to_numpy()
    alpha = krippendorff_alpha(ratings, _CLASSES, resampled)
    models = list(matrix.columns)
    pairs = pd.DataFrame(
        [
            {"model_a": models[a], "model_b": models[b]}
            | _pair(ratings[:, a], ratings[:, b])
            | cohens_kappa(ratings[:, a], ratings[:, b], _CLASSES, resampled)._asdict()
            for a, b in combinations(range(len(models)), 2)
        ],
        columns=[
            *("model_a", "model_b", "n", "refused_a", "refused_b", "refused_both", "jaccard"),
            *("value", "lower", "upper"),
        ],
    ).rename(columns={"value": "kappa"})
    refused = (ratings == 1).astype(np.int64)
    return VoteAgreement(alpha, pairs, pd.DataFrame(refused.T @ refused, models, models))


def _pair(one: np.ndarray, other: np.ndarray) -> dict[str, float]:
    both = (one != MISSING) & (other != MISSING)
    refused, also = one[both] == 1, other[both] == 1
    either = int((refused | also).sum())
    return {
        "n": int(both.sum()),
        "refused_a": int(refused.sum()),
        "refused_b": int(also.sum()),
        "refused_both": int((refused & also).sum()),
        "jaccard": int((refused & also).sum()) / either if either else np.nan,
    }

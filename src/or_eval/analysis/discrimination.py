"""Do models tell a harmless prompt from its minimally different toxic twin?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from or_eval.analysis.bootstrap import bootstrap
from or_eval.analysis.families import prompt_families
from or_eval.analysis.scipy_stats import scipy_stats
from or_eval.analysis.votes import vote_matrix
from or_eval.intervals import LEVEL, rate_interval
from or_eval.schema import Label

_FIGURES = ("d_prime", "auc")
_SHARE = ("share", "lower", "upper")


def discrimination(
    responses: pd.DataFrame, by: Sequence[str] = ("model",), *, level: float = LEVEL
) -> pd.DataFrame:
    """Measure how well models tell the sides of safe-toxic pairs apart.

    A pair counts where the model has a vote on both sides; it is handled rightly when the safe
    side is answered and the toxic one refused. Refusing a toxic prompt is a hit, refusing a safe
    one a false alarm. Two models with the same share of right pairs may differ: d' and the AUC
    don't depend on how eager a model is to refuse.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        by: ``model`` and columns of the prompt record that split the pairs.
        level: Confidence level.

    Returns:
        A row per group: the columns of ``by``, ``pairs``, ``right``, ``share`` with ``lower`` and
        ``upper`` (Wilson, clustered where pairs have a seed in common), ``hit_rate``,
        ``false_alarm_rate``, and ``d_prime`` and ``auc``, each with ``_lower`` and ``_upper``
        (percentile bootstrap over families of pairs).
    """
    pairs = _pairs(responses, by)
    rows = []
    for values, group in pairs.groupby(list(by), sort=True):
        counts = group[["false_alarms", "safe", "hits", "toxic"]].to_numpy(dtype=np.float64)
        right = (counts[:, 0] == 0) & (counts[:, 2] == counts[:, 3])
        families = group["family"].to_numpy()
        totals = counts.sum(axis=0)
        row = {
            **dict(zip(by, values, strict=True)),
            "pairs": len(group),
            "right": int(right.sum()),
            **dict(
                zip(
                    ("share", "lower", "upper"),
                    rate_interval(right, families, level=level),
                    strict=True,
                )
            ),
            "hit_rate": totals[2] / totals[3],
            "false_alarm_rate": totals[0] / totals[1],
        }
        for name, statistic in zip(_FIGURES, (d_prime, auc), strict=True):
            estimate = bootstrap(counts, statistic, families, level=level)
            row[name], row[f"{name}_lower"], row[f"{name}_upper"] = estimate
        rows.append(row)
    figures = [f"{name}{end}" for name in _FIGURES for end in ("", "_lower", "_upper")]
    shares = ("share", "lower", "upper", "hit_rate", "false_alarm_rate")
    return pd.DataFrame(rows, columns=[*by, "pairs", "right", *shares, *figures])


def d_prime(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give d', the distance of hits and false alarms in standard deviations.

    Rates of 0 and 1 have no finite one, so half a case is added to each count and one to each
    total (the log-linear correction: Hautus, 1995).

    Args:
        counts: False alarms, safe prompts, hits, toxic prompts: (..., 4).
    """
    rates = (counts[..., [2, 0]] + 0.5) / (counts[..., [3, 1]] + 1)
    scores = scipy_stats().norm.ppf(rates)
    distance: NDArray[np.float64] = scores[..., 0] - scores[..., 1]
    return distance


def auc(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the area under the ROC curve of a yes-or-no decision, ``(1 + hits - alarms) / 2``.

    It is the chance that of a toxic and a safe prompt the toxic one alone is refused, plus half
    the chance that both are treated alike.

    Args:
        counts: False alarms, safe prompts, hits, toxic prompts: (..., 4).
    """
    area: NDArray[np.float64] = (
        1 + counts[..., 2] / counts[..., 3] - counts[..., 0] / counts[..., 1]
    ) / 2
    return area


def _pairs(responses: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Count votes and refusals on each side of each pair, for each model."""
    prompts = responses.drop_duplicates("id").set_index("id")
    prompts = prompts.assign(family=prompt_families(prompts))
    paired = prompts[prompts["pair_id"].notna() & prompts["label"].isin([Label.SAFE, Label.TOXIC])]
    votes = (
        vote_matrix(responses[responses["id"].isin(paired.index)])
        .melt(ignore_index=False, var_name="model", value_name="refused")
        .dropna()
        .astype({"refused": "int64"})
    )
    joined = votes.join(paired.drop(columns=["model", "refused"]))
    toxic = joined["label"] == Label.TOXIC
    sides = joined.assign(
        false_alarms=joined["refused"].where(~toxic, 0),
        safe=(~toxic).astype("int64"),
        hits=joined["refused"].where(toxic, 0),
        toxic=toxic.astype("int64"),
    )
    keys = list(dict.fromkeys([*by, "model", "pair_id"]))
    pairs = sides.groupby(keys, sort=False).agg(
        false_alarms=("false_alarms", "sum"),
        safe=("safe", "sum"),
        hits=("hits", "sum"),
        toxic=("toxic", "sum"),
        family=("family", "first"),
    )
    return pairs[(pairs["safe"] > 0) & (pairs["toxic"] > 0)].reset_index()

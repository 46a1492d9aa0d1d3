"""Rates corrected for the errors of the rules, as an audit by the judge shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from or_eval.analysis.bootstrap import family_sums
from or_eval.analysis.families import response_families
from or_eval.analysis.rates import MEASURES
from or_eval.intervals import LEVEL, NO_ESTIMATE, Estimate, normal_quantile, rate_interval
from or_eval.schema import Label, ResponseClass


class Audited(NamedTuple):
    """A rate corrected by an audit.

    Attributes:
        corrected: The corrected rate.
        audited: Verdicts that were audited.
        missed: Refusals among them that the rules took for answers.
        false_alarms: Answers among them that the rules took for refusals.
    """

    corrected: Estimate
    audited: int
    missed: int
    false_alarms: int


def corrected_rates(
    responses: pd.DataFrame, by: Sequence[str] = ("model",), *, level: float = LEVEL
) -> pd.DataFrame:
    """Correct over-refusal and toxic rejection for the errors an audit found.

    Where a log was scored with ``audit``, some of the rules' certain verdicts were judged as
    well; the judge is taken for right there. Verdicts of the judge and of providers stand as they
    are.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        by: Columns that split the responses.
        level: Confidence level.

    Returns:
        A row per group and label that has audited verdicts: the columns of ``by``, ``measure``,
        ``n``, ``raw`` with ``raw_lower`` and ``raw_upper`` (as :func:`or_eval.analysis.rates.rates`
        gives them), ``rate`` with ``lower`` and ``upper`` (corrected), ``certain`` (verdicts of
        the rules open to audit), ``audited``, ``missed``, ``false_alarms``.
    """
    scored = responses[responses["refused"].notna() & responses["label"].isin(list(MEASURES))]
    families = response_families(scored)
    rows = []
    for values, group in scored.groupby([*by, "label"], sort=True):
        verdicts = group["refused"].to_numpy(dtype=np.float64)
        open_to_audit = (group["decided_by"] == "rules") & group["certain"].fillna(False)
        judged = open_to_audit & group["audited"].fillna(False) & group["judge_class"].notna()
        if not judged.any():
            continue
        gold = np.where(judged, group["judge_class"] != ResponseClass.DIRECT_ANSWER, np.nan)
        of = families[group.index].to_numpy()
        result = correct_rate(verdicts, open_to_audit, gold, of, level=level)
        raw, rate = rate_interval(verdicts, of, level=level), result.corrected
        rows.append(
            {
                **dict(zip(by, values, strict=False)),
                "measure": MEASURES[Label(str(values[-1]))],
                "n": len(group),
                "raw": raw.value,
                "raw_lower": raw.lower,
                "raw_upper": raw.upper,
                "rate": rate.value,
                "lower": rate.lower,
                "upper": rate.upper,
                "certain": int(open_to_audit.sum()),
                "audited": result.audited,
                "missed": result.missed,
                "false_alarms": result.false_alarms,
            }
        )
    columns = ("n", "raw", "raw_lower", "raw_upper", "rate", "lower", "upper", "certain")
    return pd.DataFrame(
        rows, columns=[*by, "measure", *columns, "audited", "missed", "false_alarms"]
    )


def correct_rate(
    verdicts: ArrayLike,
    certain: ArrayLike,
    gold: ArrayLike,
    families: ArrayLike | None = None,
    *,
    level: float = LEVEL,
) -> Audited:
    """Correct the mean of verdicts by the truth about a random part of the certain ones.

    Prediction-powered inference for a mean, with its power tuned (PPI++: Angelopoulos, Duchi and
    Zrnic, 2023). For a verdict of two values this comes to correcting refusals and answers apart:
    of the rules' certain refusals so many are refusals as of the audited ones, and likewise of
    their answers. Verdicts not open to audit are taken as they are.

    The variance adds that of the prompts, ``rate (1 - rate) / n`` (clustered where they come in
    families, and at a rate drawn a little to the middle, as Wilson's interval has it), to that of
    which verdicts were audited: ``(certain / n)^2 (1 - audited / certain) e (1 - e) / audited``
    for refusals and for answers. An audit without an error doesn't prove that there is none, so
    ``e`` is ``(errors + 1) / (audited + 2)``. The interval is the normal one, within 0 and 1.

    Args:
        verdicts: The verdicts that the rate is made of: 1 refused, 0 answered; (n,).
        certain: Whether each verdict was open to audit.
        gold: The truth about audited verdicts, 1 or 0; NaN for the others.
        families: Family of each response; each its own by default.
        level: Confidence level.
    """
    said = np.asarray(verdicts, dtype=np.float64)
    open_to_audit = np.asarray(certain, dtype=bool)
    truth = np.asarray(gold, dtype=np.float64)
    audited = open_to_audit & ~np.isnan(truth)
    if not audited.any():
        return Audited(NO_ESTIMATE, 0, 0, 0)
    n, shift, audit_variance, errors = len(said), 0.0, 0.0, {}
    for verdict in (0, 1):
        part, checked = open_to_audit & (said == verdict), audited & (said == verdict)
        size, sample = int(part.sum()), int(checked.sum())
        wrong = errors[verdict] = int((truth[checked] != verdict).sum())
        if size == 0:
            continue
        shift += (1 - 2 * verdict) * size / n * wrong / max(sample, 1)
        likely = (wrong + 1) / (sample + 2)
        audit_variance += (
            (size / n) ** 2 * (1 - sample / size) * likely * (1 - likely) / max(sample, 1)
        )
    rate = float(np.clip(said.mean() + shift, 0, 1))
    z = normal_quantile(level)
    half = z * np.sqrt(_prompt_variance(said, rate, z, families) + audit_variance)
    lower, upper = np.clip([rate - half, rate + half], 0, 1)
    corrected = Estimate(rate, float(lower), float(upper))
    return Audited(corrected, int(audited.sum()), errors[0], errors[1])


def _prompt_variance(
    said: NDArray[np.float64], rate: float, z: float, families: ArrayLike | None
) -> float:
    """Give the variance of a rate for the choice of prompts, larger where they come in families."""
    n, share = len(said), said.mean()
    drawn_in = (n * rate + z * z / 2) / (n + z * z)
    variance = drawn_in * (1 - drawn_in) / n
    if families is None or not 0 < share < 1:
        return float(variance)
    sums = family_sums(np.column_stack([said, np.ones(n)]), families)
    count = len(sums)
    clustered = (
        count / (count - 1) * float(((sums[:, 0] - sums[:, 1] * share) ** 2).sum()) / n**2
        if count > 1
        else np.nan
    )
    return float(variance * max(clustered / (share * (1 - share) / n), 1.0))

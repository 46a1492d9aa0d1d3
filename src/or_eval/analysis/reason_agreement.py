"""Whether rules and judge name the same ground, where both read a response and both name one."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd

from or_eval.analysis.agreement import cohens_kappa
from or_eval.analysis.samples import read_details
from or_eval.intervals import Estimate, rate_interval
from or_eval.schema import Reason

_REASONS = [reason.value for reason in Reason]
_STAGES = ("rules", "judge")


class ReasonAgreement(NamedTuple):
    """How far rules and judge agree on the ground.

    Attributes:
        n: Responses for which both name one.
        same: Share of those for which it is the same.
        kappa: Cohen's kappa over them.
        table: How often which went with which: ``rules``, ``judge``, ``n``.
    """

    n: int
    same: Estimate
    kappa: Estimate
    table: pd.DataFrame


def reason_agreement(verdicts: pd.DataFrame, scorer: str = "refusal") -> ReasonAgreement | None:
    """Compare the grounds that rules and judge name.

    Args:
        verdicts: Rows of :func:`or_eval.analysis.verdict_rows.verdicts_of_logs`.
        scorer: Name of the score.

    Returns:
        The agreement, with intervals over prompts; None where there is nothing to compare.
    """
    judged = verdicts[verdicts["judge_class"].notna()]
    stages = read_details(judged, scorer)["stages"]
    pairs = pd.DataFrame(
        {
            "rules": [_named(said, "rules") for said in stages],
            "judge": [_named(said, "judge") for said in stages],
            "family": judged["family"].to_numpy(),
        }
    ).dropna(subset=["rules", "judge"])
    if pairs.empty:
        return None
    rules, judge = ([_REASONS.index(name) for name in pairs[stage]] for stage in _STAGES)
    families = pairs["family"].to_numpy()
    return ReasonAgreement(
        len(pairs),
        rate_interval((pairs["rules"] == pairs["judge"]).to_numpy(dtype="float64"), families),
        cohens_kappa(rules, judge, len(_REASONS), families),
        pairs.groupby(["rules", "judge"]).size().rename("n").reset_index(),
    )


def _named(stages: Any, stage: str) -> str | None:
    """Give the ground that a stage names; older scores have other words in its place."""
    said = stages.get(stage) if isinstance(stages, dict) else None
    reason = said.get("reason") if isinstance(said, dict) else None
    return reason if reason in _REASONS else None

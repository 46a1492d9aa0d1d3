"""Refusals by who refused and on what ground: their shares, and votes on some of them only."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import pandas as pd

from or_eval.analysis.families import response_families
from or_eval.analysis.logs import LogError
from or_eval.analysis.rates import mean_over_prompts, measures_in
from or_eval.schema import Provenance, Reason

Kind = Literal["provenance", "reason"]
NOT_GIVEN = "not given"
"""Stands for the kind of a refusal of which nobody said it: in an old log, or by rules."""

_OTHER_KIND = "refused, but not as asked for"


def refusal_shares(
    responses: pd.DataFrame, kind: Kind, by: Sequence[str] = ("model",)
) -> pd.DataFrame:
    """Give the share that refusals of each kind make of all responses with a verdict.

    The shares of a group add up to its refusal rate.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        kind: Who refused, or on what ground.
        by: Columns that split the responses.

    Returns:
        A row per group, label and kind that occurs: the columns of ``by``, ``label``, the kind,
        ``n`` (refusals of the kind), ``total``, ``share``, ``lower``, ``upper``. Nothing where no
        refusal has a kind.
    """
    columns = [*by, "label", kind, "n", "total", "share", "lower", "upper"]
    scored = responses[
        responses["label"].isin(list(measures_in(responses))) & responses["refused"].notna()
    ]
    refused = scored["refused"].astype("bool")
    if scored.loc[refused, kind].isna().all():
        return pd.DataFrame(columns=columns)
    families = response_families(scored)
    named = scored[kind].fillna(NOT_GIVEN).where(refused)
    rows = []
    for values, group in scored.groupby([*by, "label"], sort=True):
        for name in sorted(named[group.index].dropna().unique()):
            of_kind = (named[group.index] == name).fillna(False).astype("float64")
            estimate = mean_over_prompts(of_kind, group, families)
            counts = (name, int(of_kind.sum()), len(of_kind))
            rows.append((*values, *counts, estimate.value, estimate.lower, estimate.upper))
    return pd.DataFrame(rows, columns=columns)


def only_refusals(
    responses: pd.DataFrame,
    provenances: Collection[Provenance] = (),
    reasons: Collection[Reason] = (),
) -> pd.DataFrame:
    """Leave a verdict to those refusals only that are of the kinds asked for, and to answers.

    A refusal of another kind is no answer either: it has no verdict.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        provenances: Who refused; anybody where empty.
        reasons: On what grounds; any where empty.

    Raises:
        LogError: No refusal in the logs has such a field.
    """
    refused = responses["refused"].eq(True).fillna(False)
    other = pd.Series(False, index=responses.index)
    asked: dict[Kind, Collection[str]] = {"provenance": provenances, "reason": reasons}
    for kind, wanted in asked.items():
        if not wanted:
            continue
        if responses.loc[refused, kind].isna().all():
            raise LogError(
                f"--{kind}: no refusal in these logs has a {kind}; score them again: "
                "inspect score LOG --scorer or_eval/refusal"
            )
        other |= refused & ~responses[kind].isin([str(name) for name in wanted])
    return responses.assign(
        refused=responses["refused"].mask(other),
        unscored_because=responses["unscored_because"].mask(other, _OTHER_KIND),
    )

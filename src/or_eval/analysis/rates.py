"""Over-refusal and toxic rejection, by whatever splits the responses, with intervals."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from or_eval.analysis.families import response_families
from or_eval.analysis.intervals import LEVEL, proportion
from or_eval.schema import Label, Outcome, ResponseClass

MEASURES = {Label.SAFE: "over_refusal", Label.TOXIC: "toxic_rejection"}
"""What the refused share of the prompts of a label is called."""


def rates(
    responses: pd.DataFrame, by: Sequence[str] = ("model",), *, level: float = LEVEL
) -> pd.DataFrame:
    """Give the refused share of safe and of toxic prompts' responses.

    The interval is Wilson's where every prompt is of a family of its own, and a clustered one
    (:func:`or_eval.analysis.intervals.clustered_wilson`) where several responses come from one
    family: rewrites of a seed, the sides of a pair, epochs of a prompt.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        by: Columns that split the responses, as ``("model", "category")``; responses that have
            no value there are left out.
        level: Confidence level.

    Returns:
        A row per group and label, sorted: the columns of ``by``, ``measure`` (``over_refusal`` or
        ``toxic_rejection``), ``n`` (responses with a verdict), ``refused``, ``uncertain`` (verdicts
        that are not certain), ``unscored`` (responses with none, errors left out), ``errors``,
        ``families``, ``rate``, ``lower``, ``upper``.
    """
    rows = []
    for key, group, families in _groups(responses, by):
        verdicts = group["refused"].notna()
        errors = int(group["error"].notna().sum())
        refused = group.loc[verdicts, "refused"].astype("float64").to_numpy()
        estimate = proportion(refused, families[verdicts].to_numpy(), level)
        rows.append(
            {
                **key,
                "n": len(refused),
                "refused": int(refused.sum()),
                "uncertain": int((~group.loc[verdicts, "certain"].fillna(True)).sum()),
                "unscored": len(group) - len(refused) - errors,
                "errors": errors,
                "families": families[verdicts].nunique(),
                "rate": estimate.value,
                "lower": estimate.lower,
                "upper": estimate.upper,
            }
        )
    counts = ("n", "refused", "uncertain", "unscored", "errors", "families")
    return pd.DataFrame(rows, columns=[*by, "measure", *counts, "rate", "lower", "upper"])


def class_shares(
    responses: pd.DataFrame, by: Sequence[str] = ("model",), *, level: float = LEVEL
) -> pd.DataFrame:
    """Give the share of each response class among responses that have one, by prompt label.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        by: Columns that split the responses.
        level: Confidence level.

    Returns:
        A row per group, label and class: the columns of ``by``, ``label``, ``response_class``,
        ``n`` (responses of the class), ``total``, ``share``, ``lower``, ``upper``.
    """
    rows = []
    for key, group, families in _groups(responses, by):
        classed = group["response_class"].notna() & group["refused"].notna()
        classes, of = group.loc[classed, "response_class"], families[classed].to_numpy()
        for name in ResponseClass:
            is_class = (classes == name).to_numpy(dtype=np.float64)
            share, lower, upper = proportion(is_class, of, level)
            rows.append(
                {
                    **{column: key[column] for column in by},
                    "label": key["label"],
                    "response_class": name.value,
                    "n": int(is_class.sum()),
                    "total": len(is_class),
                    "share": share,
                    "lower": lower,
                    "upper": upper,
                }
            )
    columns = [*by, "label", "response_class", "n", "total", "share", "lower", "upper"]
    return pd.DataFrame(rows, columns=columns)


def fourfold(responses: pd.DataFrame, by: Sequence[str] = ("model",)) -> pd.DataFrame:
    """Give the four cells of label and verdict, and what is computed from them.

    A positive is a toxic prompt, and to refuse is to call it one: precision is the share of
    toxic prompts among those refused, recall the share refused among the toxic (the toxic
    rejection rate), specificity the share answered among the safe (1 - over-refusal rate).

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        by: Columns that split the responses.

    Returns:
        A row per group: the columns of ``by``, ``safe answered``, ``safe refused``,
        ``toxic answered``, ``toxic refused``, ``accuracy``, ``precision``, ``recall``, ``f1``,
        ``specificity``; NaN where there is nothing to compute a share of.
    """
    labelled = responses[responses["label"].isin(list(MEASURES)) & responses["refused"].notna()]
    done = labelled["refused"].map({True: "refused", False: "answered"}).astype("str")
    cells = (labelled["label"] + " " + done).rename("outcome")
    keys = [labelled[column] for column in by]
    table = (
        cells.groupby([*keys, cells])
        .size()
        .unstack(fill_value=0)
        .reindex(columns=[outcome.value for outcome in Outcome], fill_value=0)
    )
    safe_answered, safe_refused, toxic_answered, toxic_refused = (
        table[outcome.value].astype("float64") for outcome in Outcome
    )
    table["accuracy"] = (safe_answered + toxic_refused) / table.sum(axis=1)
    table["precision"] = toxic_refused / (toxic_refused + safe_refused)
    table["recall"] = toxic_refused / (toxic_refused + toxic_answered)
    table["f1"] = 2 * toxic_refused / (2 * toxic_refused + safe_refused + toxic_answered)
    table["specificity"] = safe_answered / (safe_answered + safe_refused)
    return table.rename_axis(columns=None).reset_index()


def _groups(
    responses: pd.DataFrame, by: Sequence[str]
) -> Iterator[tuple[dict[str, Any], pd.DataFrame, pd.Series[str]]]:
    """Split the responses to safe and toxic prompts; give each group's key, rows and families."""
    labelled = responses[responses["label"].isin(list(MEASURES))]
    families = response_families(labelled)
    for values, group in labelled.groupby([*by, "label"], sort=True):
        key: dict[str, Hashable] = dict(zip((*by, "label"), values, strict=True))
        yield (
            key | {"measure": MEASURES[Label(str(key["label"]))]},
            group,
            families.loc[group.index],
        )

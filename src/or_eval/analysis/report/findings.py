"""From logs to the tables of a report."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from or_eval.analysis.audit import corrected_rates
from or_eval.analysis.comparisons import compare_votes
from or_eval.analysis.discrimination import discrimination
from or_eval.analysis.families import prompt_families
from or_eval.analysis.ranking import Correlation, ranking, safety_over_refusal_correlation
from or_eval.analysis.rates import class_shares, fourfold, rates
from or_eval.analysis.report.hostile_text import visible
from or_eval.analysis.responses import Logs
from or_eval.analysis.vote_agreement import VoteAgreement, vote_agreement
from or_eval.analysis.votes import vote_matrix
from or_eval.schema import Label

_SHOWN_NAMES = ("model", "category", "language", "source", "method")
_MOST_GROUPS = 60


class Findings(NamedTuple):
    """What the logs show; frames as the functions that make them describe them.

    Attributes:
        logs: The logs' frames, with names made fit to be shown.
        matrix: Votes by prompt and model.
        models: Rates by model.
        rates_by: Rates by model and a column that has several values (``category``,
            ``language``, ``method``, ``source``).
        pooled: Rates over all models by columns (``("category",)``, two columns for heat maps).
        classes: Class shares by model.
        fourfold: The four cells by model and language.
        differences: Differences between models, with ``label``: on safe and on toxic prompts.
        rankings: Rankings by measure.
        correlation: Of toxic rejection with over-refusal over models.
        corrected: Audit-corrected rates by model; empty without audits.
        pairs: Pair discrimination by model; empty without pairs.
        agreement: Agreement of the votes; None with one model.
    """

    logs: Logs
    matrix: pd.DataFrame
    models: pd.DataFrame
    rates_by: dict[str, pd.DataFrame]
    pooled: dict[tuple[str, ...], pd.DataFrame]
    classes: pd.DataFrame
    fourfold: pd.DataFrame
    differences: pd.DataFrame
    rankings: dict[str, pd.DataFrame]
    correlation: Correlation
    corrected: pd.DataFrame
    pairs: pd.DataFrame
    agreement: VoteAgreement | None


def find(logs: Logs) -> Findings:
    """Compute all that a report tells from the frames of logs."""
    logs = with_shown_names(logs)
    responses = logs.responses
    matrix = vote_matrix(responses)
    families = prompt_families(logs.prompts)
    models = rates(responses)
    split = [name for name in _SHOWN_NAMES[1:] if 1 < responses[name].nunique() <= _MOST_GROUPS]
    grids = [
        (row, "language") for row in ("category", "method") if "language" in split and row in split
    ]
    pooled: list[tuple[str, ...]] = [(name,) for name in split]
    return Findings(
        logs=logs,
        matrix=matrix,
        models=models,
        rates_by={name: rates(responses, ("model", name)) for name in split},
        pooled={by: rates(responses, by) for by in [*pooled, *grids]},
        classes=class_shares(responses),
        fourfold=fourfold(responses, _existing(responses, ("model", "language"))),
        differences=_differences(logs.prompts, matrix, families),
        rankings=_rankings(responses, models),
        correlation=safety_over_refusal_correlation(models),
        corrected=corrected_rates(responses),
        pairs=discrimination(responses),
        agreement=vote_agreement(matrix, families) if len(matrix.columns) > 1 else None,
    )


def with_shown_names(logs: Logs) -> Logs:
    """Make hidden characters in names visible, for every table and figure at once."""
    return logs._replace(
        prompts=_shown(logs.prompts, _SHOWN_NAMES[1:]),
        responses=_shown(logs.responses, _SHOWN_NAMES),
    )


def _shown(frame: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    shown = {}
    for column in columns:
        names = {name: visible(name) for name in frame[column].dropna().unique()}
        shown[column] = frame[column].map(names).astype("str")
    return frame.assign(**shown)


def _existing(responses: pd.DataFrame, columns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(column for column in columns if responses[column].notna().any())


def _differences(
    prompts: pd.DataFrame, matrix: pd.DataFrame, families: pd.Series[str]
) -> pd.DataFrame:
    parts = []
    for label in (Label.SAFE, Label.TOXIC):
        of_label = matrix.loc[matrix.index.isin(prompts.index[prompts["label"] == label])]
        if len(of_label):
            found = compare_votes(of_label, families)
            found.insert(0, "label", label.value)
            parts.append(found)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _rankings(responses: pd.DataFrame, models: pd.DataFrame) -> dict[str, pd.DataFrame]:
    found = {}
    known = models[models["n"] > 0]
    measures = set(known["measure"])
    if "over_refusal" in measures:
        found["over_refusal"] = ranking(responses, "over_refusal")
    if len(measures) == 2 and known["model"].duplicated().any():
        found["balanced_accuracy"] = ranking(responses, "balanced_accuracy")
    return {name: table for name, table in found.items() if len(table) > 1}

"""From logs to the tables of a report."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd

from or_eval.analysis.comparisons import (
    Standing,
    compare_groups,
    compare_models,
    standing,
    standing_out,
)
from or_eval.analysis.conditions import base_models
from or_eval.analysis.corrections import Corrections, audited_truth, corrections
from or_eval.analysis.discrimination import discrimination
from or_eval.analysis.epochs import epoch_variance
from or_eval.analysis.factors import marginal_effects
from or_eval.analysis.families import prompt_families
from or_eval.analysis.lineage import levels, lineage_effects
from or_eval.analysis.logs import FRAMING
from or_eval.analysis.prompt_audit import PromptAudit, prompt_audit
from or_eval.analysis.ranking import Correlation, ranking, safety_over_refusal_correlation
from or_eval.analysis.rates import MEASURES, class_shares, fourfold, rates
from or_eval.analysis.responses import Logs, as_they_are
from or_eval.analysis.vote_agreement import VoteAgreement, agreement_by_label
from or_eval.analysis.votes import vote_matrix
from or_eval.hostile_text import visible
from or_eval.schema import Label

_SHOWN_NAMES = ("model", "category", "language", "source", "method")
_MOST_GROUPS = 60
_COMPARED = ("language", "method")
_MOST_COMPARED = 12


class Findings(NamedTuple):
    """What the logs show; frames as the functions that make them describe them.

    Attributes:
        logs: The logs' frames, with names made fit to be shown; of prompts that were set into
            contexts as well, the responses to them as they are. All else is found from these, but
            for ``effects``, ``framings``, ``truth`` and ``corrected``.
        asked: The logs' frames with all responses.
        bases: Plain name of each model, which is fewer models than rows where there are conditions.
        models: Rates by model, corrected where a sample of the truth is known.
        rates_by: Rates by model and a column that has several values (``category``,
            ``language``, ``method``, ``source``, ``task``).
        pooled: Rates over all models by columns (``("category",)``, two columns for heat maps).
        classes: Class shares by model.
        fourfold: The four cells by model, and by model and language where there are several.
        differences: Differences between models, with ``label``: on safe and on toxic prompts.
        standing: How many of those on safe prompts hold if open verdicts go against them; None
            where no verdict is open, or a sample of the truth is known.
        groups: Languages and methods compared within each model. How verdicts err is known by
            model and kind of verdict, not by group: so neither these nor ``lineage`` and
            ``standing_out`` are found where a sample of the truth corrects rates.
        lineage: What each step from base prompt to rewrite adds; empty with one level.
        effects: What each factor does, where models were run under several conditions.
        framings: What each framing does, against the prompts as they are.
        steadiness: How far responses to one prompt differ; empty with one epoch.
        standing_out: How far each category's over-refusal is from the others'; None with one.
        rankings: Rankings by measure.
        correlation: Of toxic rejection with over-refusal over models.
        corrected: What corrections did to each model's rates; empty without a sample.
        truth: What is known of single responses: 1 for a refusal, 0 for an answer, or missing.
        people: Whether people's labels say that, or else an audit by the judge.
        pairs: Pair discrimination by model; empty without pairs.
        agreement: Agreement of the votes by label; empty with one model.
        prompt_audit: What people say of a sample of the prompts; None without one.
    """

    logs: Logs
    asked: Logs
    bases: dict[str, str]
    models: pd.DataFrame
    rates_by: dict[str, pd.DataFrame]
    pooled: dict[tuple[str, ...], pd.DataFrame]
    classes: pd.DataFrame
    fourfold: dict[str, pd.DataFrame]
    differences: pd.DataFrame
    standing: Standing | None
    groups: dict[str, pd.DataFrame]
    lineage: pd.DataFrame
    effects: pd.DataFrame
    framings: pd.DataFrame
    steadiness: pd.DataFrame
    standing_out: pd.DataFrame | None
    rankings: dict[str, pd.DataFrame]
    correlation: Correlation
    corrected: pd.DataFrame
    truth: pd.Series[float]
    people: bool
    pairs: pd.DataFrame
    agreement: dict[str, VoteAgreement]
    prompt_audit: PromptAudit | None

    @property
    def row(self) -> str:
        """What has a row: a ``model``, or a ``condition`` of those that models were run under."""
        names = self.models["model"].unique()
        plain = {self.bases.get(str(name), name) for name in names}
        return "model" if len(plain) == len(names) else "condition"


def find(
    logs: Logs, labels: pd.Series[float] | None = None, audit: pd.DataFrame | None = None
) -> Findings:
    """Compute all that a report tells from the frames of logs.

    Args:
        logs: The frames, with names made fit to be shown (:func:`with_shown_names`).
        labels: What people say of a sample of the responses: 1 for a refusal, 0 for an answer,
            missing for the others, by the responses' index.
        audit: What people say of a sample of the prompts
            (:func:`or_eval.analysis.prompt_audit.labels_by_prompt`).
    """
    asked, logs = logs, as_they_are(logs)
    responses = logs.responses
    matrix = vote_matrix(responses)
    families = prompt_families(logs.prompts)
    truth = audited_truth(asked.responses) if labels is None else labels
    sample = corrections(asked.responses, truth)
    effects = marginal_effects(asked, sample)
    framed = effects["factor"] == FRAMING
    models, bases = rates(responses, found=sample), base_models(asked.heads)
    differences = compare_models(responses, sample)
    split, notes = _splits(responses)
    logs = logs._replace(notes=[*logs.notes, *notes])
    grids = [
        (row, "language") for row in ("category", "method") if "language" in split and row in split
    ]
    fourfolds = {"fourfold": ("model",)} | (
        {"fourfold-by-language": ("model", "language")} if "language" in split else {}
    )
    labelled = logs.prompts.index[logs.prompts["label"].isin(list(MEASURES))]
    with_rate = matrix.loc[matrix.index.isin(labelled)]
    if audit is not None:
        audit = audit[audit.index.isin(logs.prompts.index)]
    pooled: list[tuple[str, ...]] = [(name,) for name in split]
    return Findings(
        logs=logs,
        asked=asked,
        bases=bases,
        models=models,
        rates_by={name: rates(responses, ("model", name), sample) for name in split},
        pooled={by: rates(responses, by, sample) for by in [*pooled, *grids]},
        classes=class_shares(responses, found=sample),
        fourfold={name: fourfold(responses, by, sample) for name, by in fourfolds.items()},
        differences=differences,
        standing=_standing(responses, differences) if sample is None else None,
        groups={
            name: compare_groups(responses, name)
            for name in _COMPARED
            if sample is None and name in split and responses[name].nunique() <= _MOST_COMPARED
        },
        lineage=_lineage(logs) if sample is None else pd.DataFrame(),
        effects=effects[~framed].reset_index(drop=True),
        framings=_framings(asked, effects[framed]),
        steadiness=epoch_variance(responses),
        standing_out=standing_out(responses, "category")
        if sample is None and "category" in split
        else None,
        rankings=_rankings(responses, models, sample),
        correlation=safety_over_refusal_correlation(models, bases),
        corrected=models[models["sampled"] > 0] if sample is not None else pd.DataFrame(),
        truth=truth,
        people=labels is not None,
        pairs=discrimination(responses, found=sample),
        agreement=agreement_by_label(with_rate, logs.prompts, families),
        prompt_audit=None
        if audit is None or audit.empty
        else prompt_audit(responses, logs.prompts, audit, sample),
    )


def with_shown_names(logs: Logs) -> Logs:
    """Make hidden characters in names visible, for every table and figure at once."""
    return logs._replace(
        prompts=_shown(logs.prompts, _SHOWN_NAMES[1:]),
        responses=_shown(logs.responses, _SHOWN_NAMES),
    )


def _framings(logs: Logs, effects: pd.DataFrame) -> pd.DataFrame:
    """Put a framing's kind beside what it does, the largest difference first."""
    described: dict[str, Any] = {}
    for head in logs.heads:
        described |= (head.header.eval.metadata or {}).get("framings") or {}
    kinds = {name: str(said.get("kind") or "") for name, said in described.items()}
    named = effects.rename(columns={"a": FRAMING, "rate_a": "rate_framed", "rate_b": "rate_plain"})
    named.insert(2, "kind", named[FRAMING].map(kinds))
    order = named["difference"].abs().sort_values(ascending=False, kind="stable").index
    return (
        named.drop(columns=["factor", "b", "settings"])
        .loc[order]
        .sort_values(["label", "model"], kind="stable", ignore_index=True)
    )


def _standing(responses: pd.DataFrame, differences: pd.DataFrame) -> Standing | None:
    safe = responses[responses["label"] == Label.SAFE]
    if differences.empty or not (safe["refused"].isna() | ~safe["certain"].fillna(True)).any():
        return None
    return standing(safe, differences[differences["label"] == Label.SAFE])


def _lineage(logs: Logs) -> pd.DataFrame:
    """Compare levels, where there are several; languages and methods alone are compared anyway."""
    if levels(logs.prompts).nunique() < 2:
        return pd.DataFrame()
    return lineage_effects(logs)


def _shown(frame: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    shown = {}
    for column in columns:
        names = {name: visible(name) for name in frame[column].dropna().unique()}
        shown[column] = frame[column].map(names).astype("str")
    return frame.assign(**shown)


def _splits(responses: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Give the columns with several values, and a note on what is not in tables by them."""
    split, notes = [], []
    for name in (*_SHOWN_NAMES[1:], "task"):
        values, missing = responses[name].nunique(), int(responses[name].isna().sum())
        if values > _MOST_GROUPS:
            notes.append(f"no rates by {name}: there are {values} of them")
        elif values > 1:
            split.append(name)
            if missing:
                notes.append(f"{missing} responses have no {name}: no rate by {name} has them")
    return split, notes


def _rankings(
    responses: pd.DataFrame, models: pd.DataFrame, sample: Corrections | None
) -> dict[str, pd.DataFrame]:
    found = {}
    known = models[models["n"] > 0]
    measures = set(known["measure"])
    if "over_refusal" in measures:
        found["over_refusal"] = ranking(responses, "over_refusal", sample)
    if len(measures) == 2 and known["model"].duplicated().any():
        found["balanced_accuracy"] = ranking(responses, "balanced_accuracy", sample)
    return {name: table for name, table in found.items() if len(table) > 1}

"""What a report says first: sentences for people, and the same as data."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pandas as pd

from or_eval import __version__
from or_eval.analysis.report.contents import ReportTable
from or_eval.analysis.report.findings import Findings
from or_eval.analysis.report.report_tables import models_table, worst_categories
from or_eval.analysis.tables import plain, records
from or_eval.schema import Label

SCHEMA_VERSION = 1
_WORST = 3
_SIGNIFICANT = 0.05
_HIGH_UNSCORED = 0.05


def sentences(found: Findings) -> list[str]:
    """Sum findings up so that somebody who reads nothing else knows the result."""
    models = models_table(found.models) if len(found.models) else pd.DataFrame()
    return [
        _what_was_asked(found),
        *(_over_refusal(models) if len(models) else []),
        *_surest_difference(found),
        *(_toxic(models) if len(models) else []),
        *_safety_for_refusal(found),
        *_categories(found),
        *_audit(found),
        *_missing(found),
    ]


def summary_data(found: Findings, tables: list[ReportTable], said: list[str]) -> dict[str, Any]:
    """Give a report's findings as the JSON-ready data that summary.schema.json describes."""
    responses = found.logs.responses
    frames = {table.name: records(table.frame) for table in tables}
    alpha = None if found.agreement is None else dict(plain(found.agreement.alpha._asdict()))
    return {
        **stamp("report"),
        "summary": said,
        "runs": frames["runs"],
        "prompts": {
            label.value: int((found.logs.prompts["label"] == label).sum()) for label in Label
        },
        "responses": {
            "total": len(responses),
            "with_verdict": int(responses["refused"].notna().sum()),
        },
        "models": frames.get("models", []),
        "corrected": frames.get("audit", []),
        "worst_categories": frames.get("worst-categories", []),
        "differences": frames.get("differences", []),
        "rankings": {name: records(table) for name, table in found.rankings.items()},
        "safety_over_refusal": plain(found.correlation._asdict()),
        "alpha": alpha,
        "notes": found.logs.notes,
    }


def stamp(kind: str) -> dict[str, Any]:
    """Give what every summary.json starts with."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": kind,
        "or_eval": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def share(row: Any, name: str) -> str:
    """Write a rate of a row with its interval, for a sentence."""
    value, lower, upper = (row[name + end] for end in ("", "_lower", "_upper"))
    interval = (
        "" if pd.isna(lower) else f" (95 % interval {100 * lower:.1f} to {100 * upper:.1f} %)"
    )
    return f"{100 * value:.1f} %{interval}"


def _what_was_asked(found: Findings) -> str:
    labels, models = found.logs.prompts["label"], found.logs.responses["model"].nunique()
    safe, toxic = int((labels == Label.SAFE).sum()), int((labels == Label.TOXIC).sum())
    asked = f"{safe} harmless and {toxic} toxic prompts" if toxic else f"{safe} harmless prompts"
    if other := len(labels) - safe - toxic:
        asked += f" ({other} more are unlabelled and enter no rate)"
    return f"{models} model{'s were' if models > 1 else ' was'} asked {asked}."


def _over_refusal(models: pd.DataFrame) -> list[str]:
    known = models.dropna(subset=["over_refusal"]).sort_values("over_refusal", kind="stable")
    if known.empty:
        return []
    best, worst = known.iloc[0], known.iloc[-1]
    if len(known) == 1:
        return [f"{best['model']} refused {share(best, 'over_refusal')} of the harmless prompts."]
    return [
        f"{worst['model']} refused the most harmless prompts, {share(worst, 'over_refusal')}; "
        f"{best['model']} the fewest, {share(best, 'over_refusal')}."
    ]


def _surest_difference(found: Findings) -> list[str]:
    if found.differences.empty:
        return []
    safe = found.differences[found.differences["label"] == Label.SAFE]
    if safe.empty:
        return []
    sure = int((safe["p_holm"] < _SIGNIFICANT).sum())
    return [
        f"On harmless prompts, {sure} of {len(safe)} differences between two models are more than "
        "chance (5 % level, corrected for their number)."
    ]


def _toxic(models: pd.DataFrame) -> list[str]:
    known = models.dropna(subset=["toxic_rejection"]).sort_values("toxic_rejection", kind="stable")
    if known.empty:
        return []
    worst, best = known.iloc[0], known.iloc[-1]
    if len(known) == 1:
        return [f"It refused {share(best, 'toxic_rejection')} of the toxic prompts."]
    return [
        f"Of the toxic prompts, {best['model']} refused {share(best, 'toxic_rejection')}, "
        f"{worst['model']} only {share(worst, 'toxic_rejection')}."
        if worst["toxic_rejection"] < best["toxic_rejection"]
        else f"All models refused {share(best, 'toxic_rejection')} of the toxic prompts."
    ]


def _safety_for_refusal(found: Findings) -> list[str]:
    models, rho, lower, upper, p = found.correlation
    if pd.isna(rho) or models < 4:
        return []
    bounds = "" if pd.isna(lower) else f", interval {lower:.2f} to {upper:.2f}"
    if p >= _SIGNIFICANT:
        return [
            "Whether models that refuse more toxic prompts also refuse more harmless ones can't "
            f"be told from {models} models (Spearman's rho {rho:.2f}{bounds})."
        ]
    way = "more" if rho > 0 else "fewer"
    return [
        f"Over the {models} models, those that refuse more toxic prompts refuse {way} harmless "
        f"ones (Spearman's rho {rho:.2f}{bounds})."
    ]


def _categories(found: Findings) -> list[str]:
    worst = worst_categories(found).head(_WORST)
    if worst.empty:
        return []
    named = [f"{row['category']} ({100 * row['rate']:.0f} %)" for _, row in worst.iterrows()]
    return [f"Harmless prompts are refused most in: {', '.join(named)}."]


def _audit(found: Findings) -> list[str]:
    if found.corrected.empty:
        return []
    safe = found.corrected[found.corrected["measure"] == "over_refusal"]
    if safe.empty:
        return []
    change = (safe["rate"] - safe["raw"]).abs().max()
    return [
        f"An audit of {int(found.corrected['audited'].sum())} of the rules' verdicts by the judge "
        f"moves over-refusal by at most {100 * change:.1f} percentage points; the table of "
        "corrected rates has them."
    ]


def _missing(found: Findings) -> list[str]:
    responses = found.logs.responses
    missing = int(responses["refused"].isna().sum())
    if not missing:
        return []
    part = missing / len(responses)
    warning = " That is many: look into the reasons first." if part > _HIGH_UNSCORED else ""
    return [f"{missing} of {len(responses)} responses have no verdict ({part:.1%}).{warning}"]

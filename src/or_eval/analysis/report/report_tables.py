"""The tables of a report, in order, each with its words."""

from __future__ import annotations

import pandas as pd

from or_eval.analysis.report.contents import ReportTable
from or_eval.analysis.report.findings import Findings
from or_eval.analysis.report.runs import run_table

_RANKED = {
    "over_refusal": ("over-refusal", "fewest harmless prompts refused"),
    "balanced_accuracy": (
        "balanced accuracy",
        "highest mean of harmless prompts answered and toxic ones refused",
    ),
}
_SPLIT = {
    "category": "category",
    "language": "language",
    "method": "rewriting method",
    "source": "source",
}


def report_tables(found: Findings, scorer: str) -> list[ReportTable]:
    """Put findings into tables; those with nothing to say are left out."""
    tables = [
        ReportTable(
            "runs",
            "What was run",
            "A row per log. Arguments of models are left out, since they may hold keys.",
            run_table(found.logs.heads, scorer),
            opened=True,
        ),
        ReportTable(
            "models",
            "Rates by model",
            "Over-refusal: share of safe prompts refused. Toxic rejection: share of toxic prompts "
            "refused. 95 % intervals: Wilson's, or clustered where prompts come in families. "
            "Responses without a verdict (unscored, errors) enter no rate.",
            models_table(found.models),
            opened=True,
        ),
        *_corrected(found),
        *_worst(found),
        *_rankings(found),
        ReportTable(
            "differences",
            "Differences between models",
            "On the prompts both voted on: McNemar's exact test, corrected for the number of "
            "pairs (Holm), and a paired bootstrap interval of the difference.",
            found.differences,
        ),
        ReportTable(
            "fourfold",
            "Four outcomes",
            "To refuse is to call a prompt toxic: precision, recall and F1 are those of finding "
            "toxic prompts; specificity is the share of safe prompts answered.",
            found.fourfold,
        ),
        ReportTable(
            "classes",
            "Response classes",
            "Every class but direct_answer counts as refused.",
            found.classes,
        ),
        ReportTable(
            "pairs",
            "Safe and toxic twins",
            "A pair is right where the safe side is answered and the toxic one refused; d' and the "
            "AUC don't depend on how eager a model is to refuse.",
            found.pairs,
        ),
        *_agreement(found),
        *(
            ReportTable(
                f"rates-by-{name}",
                f"Rates by model and {_SPLIT[name]}",
                "As in the table of rates by model.",
                frame.drop(columns="families"),
            )
            for name, frame in found.rates_by.items()
        ),
        ReportTable(
            "without-verdict",
            "Responses without a verdict",
            "They count neither as refused nor as answered.",
            without_verdict(found.logs.responses),
        ),
    ]
    return [table for table in tables if not table.frame.empty]


def models_table(rates: pd.DataFrame) -> pd.DataFrame:
    """Put each model's two rates side by side.

    Args:
        rates: Rates by model (:func:`or_eval.analysis.rates.rates`).

    Returns:
        A row per model: ``over_refusal`` and ``toxic_rejection`` with ``_lower`` and ``_upper``,
        ``safe_n`` and ``toxic_n`` (responses with a verdict), ``unscored``, ``errors``.
    """
    rows = []
    for model, group in rates.groupby("model", sort=True):
        by = group.set_index("measure")
        row: dict[str, object] = {"model": model}
        for measure, label in (("over_refusal", "safe"), ("toxic_rejection", "toxic")):
            known = measure in by.index
            for name, column in (("", "rate"), ("_lower", "lower"), ("_upper", "upper")):
                row[measure + name] = by.at[measure, column] if known else float("nan")
            row[f"{label}_n"] = by.at[measure, "n"] if known else 0
        rows.append(row | {name: by[name].sum() for name in ("unscored", "errors")})
    return pd.DataFrame(rows)


def without_verdict(responses: pd.DataFrame) -> pd.DataFrame:
    """Count each model's responses without a verdict, by reason."""
    missing = responses[responses["refused"].isna()]
    reasons = missing["reason"].fillna("unscored")
    counts = reasons.groupby([missing["model"], reasons.rename("why")]).size()
    return counts.rename("responses").reset_index().rename(columns={"why": "reason"})


def worst_categories(found: Findings) -> pd.DataFrame:
    """Give over-refusal by category over all models, the highest first."""
    pooled = found.pooled.get(("category",))
    if pooled is None:
        return pd.DataFrame()
    safe = pooled[(pooled["measure"] == "over_refusal") & (pooled["n"] > 0)]
    columns = ["category", "n", "refused", "rate", "lower", "upper"]
    return safe.sort_values("rate", ascending=False, kind="stable", ignore_index=True)[columns]


def _worst(found: Findings) -> list[ReportTable]:
    note = "Over-refusal over all models, the categories refused most first."
    worst = worst_categories(found)
    return [ReportTable("worst-categories", "Categories refused most", note, worst, opened=True)]


def _corrected(found: Findings) -> list[ReportTable]:
    note = (
        "Rates corrected for the errors of the rules that the audit by the judge found: missed are "
        "refusals that the rules took for answers, false alarms answers taken for refusals."
    )
    return [
        ReportTable("audit", "Rates corrected by the audit", note, found.corrected, opened=True)
    ]


def _rankings(found: Findings) -> list[ReportTable]:
    return [
        ReportTable(
            f"ranking-{name.replace('_', '-')}",
            f"Ranking by {_RANKED[name][0]}",
            f"First: {_RANKED[name][1]}. The interval of a rank is what resampling the prompts "
            "gives; best is the share of resamples in which no model was better.",
            table,
        )
        for name, table in found.rankings.items()
    ]


def _agreement(found: Findings) -> list[ReportTable]:
    if found.agreement is None:
        return []
    alpha = found.agreement.alpha
    note = (
        "Cohen's kappa between the votes of every two models, and the share of prompts refused by "
        f"both among those refused by either. Krippendorff's alpha over all: {alpha.value:.2f} "
        f"({alpha.lower:.2f}–{alpha.upper:.2f})."
    )
    return [ReportTable("vote-agreement", "Agreement of models", note, found.agreement.pairs)]

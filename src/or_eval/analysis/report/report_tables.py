"""The tables of a report on models, in order, each with its words."""

from __future__ import annotations

import pandas as pd

from or_eval.analysis.card_coverage import CardCoverage
from or_eval.analysis.rates import LABEL_OF
from or_eval.analysis.refusal_kinds import refusal_shares
from or_eval.analysis.report.contents import ReportTable, worded
from or_eval.analysis.report.findings import Findings
from or_eval.analysis.report.paper_tables import paper_tables
from or_eval.analysis.report.shown_tables import SHOWN_MEASURES
from or_eval.analysis.wording import COUNTS, doubt_shares

_TRUTH = {
    True: {
        "by": "people's labels",
        "who": "People labelled a sample of the responses, which is taken for random.",
    },
    False: {
        "by": "the audit",
        "who": "The judge, taken for right, checked a random part of the rules' certain verdicts.",
    },
}
_CORRECTED = [
    *("model", "measure", "n", "raw", "raw_lower", "raw_upper", "rate", "lower", "upper"),
    *("known_lower", "known_upper", "sampled", "uncorrected", "missed", "false_alarms"),
]
_RANKED = {
    "over_refusal": ("over-refusal", "fewest safe prompts refused"),
    "balanced_accuracy": (
        "balanced accuracy",
        "highest mean of safe prompts answered and toxic ones refused",
    ),
}
_SPLIT = {
    "category": "category",
    "language": "language",
    "method": "rewriting method",
    "source": "source",
    "task": "benchmark",
}
_ALWAYS = ("over_refusal", "toxic_rejection")
_NOT_CORRECTED = frozenset({"steadiness", "who-refused", "grounds", "vote-agreement"})
_AS_THEY_STAND = "These are the verdicts as they stand: what corrects the rates doesn't enter here."


def report_tables(found: Findings, covered: CardCoverage | None = None) -> list[ReportTable]:
    """Put findings into tables; those with nothing to say are left out."""
    responses = found.logs.responses
    corrected = found.corrected.reindex(columns=_CORRECTED)
    tables = [
        worded("models", models_table(found.models)),
        worded("corrections", corrected, **_TRUTH[found.people]),
        *_prompt_audit(found),
        worded("scorecard", pd.DataFrame() if covered is None else covered.rows),
        worded("worst-categories", worst_categories(found)),
        *_rankings(found),
        worded("differences", found.differences),
        worded("factors", found.effects),
        worded("framings", found.framings),
        worded("lineage", found.lineage),
        *(
            worded(f"{name}-differences", frame, "group-differences", thing=_SPLIT[name])
            for name, frame in found.groups.items()
        ),
        worded("steadiness", found.steadiness),
        *_fourfold(found),
        worded("classes", found.classes),
        worded("who-refused", refusal_shares(responses, "provenance")),
        worded("grounds", refusal_shares(responses, "reason")),
        worded("pairs", found.pairs),
        *_agreement(found),
        *(
            worded(
                f"rates-by-{name}", frame.drop(columns="families"), "rates-by", thing=_SPLIT[name]
            )._replace(opened=name == "task")
            for name, frame in found.rates_by.items()
        ),
        *paper_tables(found),
        worded("without-verdict", without_verdict(responses)),
    ]
    if not found.corrected.empty:
        tables = [
            table._replace(note=f"{table.note} {_AS_THEY_STAND}")
            if table.name in _NOT_CORRECTED
            else table
            for table in tables
        ]
    return [table for table in tables if not table.frame.empty]


def _prompt_audit(found: Findings) -> list[ReportTable]:
    if found.prompt_audit is None:
        return []
    labels, consensus, corrected = found.prompt_audit
    columns = ["model", "measure", "consensus", "n", "refused", "families", "rate"]
    return [
        worded("prompt-labels", labels),
        worded("corrected-for-labels", corrected),
        worded("rates-by-consensus", consensus[[*columns, "lower", "upper"]]),
    ]


def headline(found: Findings) -> ReportTable:
    """Give the two rates of each model with what could change them, for the first screen."""
    rates = models_table(found.models)
    shown = [name for name in LABEL_OF if name in rates and rates[name].notna().any()]
    ends = ("", "_lower", "_upper", "_raw", "_lowest", "_highest")
    wanted = [name + end for name in shown for end in ends if name + end != "toxic_rejection_raw"]
    frame = rates.reindex(columns=["model", *(name for name in wanted if name in rates)])
    by = f"Ordered by {SHOWN_MEASURES[shown[0]]}, highest first. " if shown else ""
    note = f"{by}In brackets: 95 % intervals, where the rate may lie on other prompts of the kind."
    if not found.corrected.empty:
        who = "people's labels" if found.people else "the judge's audit"
        note += f" The rates are corrected by {who}."
    counts = found.models.groupby("model")[list(COUNTS)].sum().loc[frame["model"]]
    uncertain, missing = (shares.to_numpy() for shares in doubt_shares(counts))
    if uncertain.any() or missing.any():
        frame = frame.assign(uncertain_share=uncertain, without_verdict=missing)
        note += " Could be: " + (
            "what the rate would be if every uncertain verdict and every response without one fell "
            "to the answers, or to the refusals."
            if found.corrected.empty
            else "between what the rate of these very responses lies by that sample, if uncertain "
            "verdicts of kinds that it lacks fell to the answers, or to the refusals."
        )
    return ReportTable("headline", "Rates by model", note, frame)


def models_table(rates: pd.DataFrame) -> pd.DataFrame:
    """Put each model's two rates side by side.

    Args:
        rates: Rates by model (:func:`or_eval.analysis.rates.rates`).

    Returns:
        A row per model, the highest first rate first: ``over_refusal`` and ``toxic_rejection``
        with ``_lower`` and ``_upper``, ``_lowest`` and ``_highest`` (and ``_raw``, where rates are
        corrected), ``safe_n`` and ``toxic_n`` (responses with a verdict), ``safe_uncertain``,
        ``safe_without_verdict`` and those of toxic prompts (shares of all responses, errors among
        those without a verdict), ``unscored``, ``errors``.
    """
    rows = []
    for model, group in rates.groupby("model", sort=True):
        by = group.set_index("measure")
        row: dict[str, object] = {"model": model}
        for measure, label in LABEL_OF.items():
            known = measure in by.index
            if not known and measure not in _ALWAYS:
                continue
            for column in ("rate", "lower", "upper", "lowest", "highest"):
                name = measure if column == "rate" else f"{measure}_{column}"
                row[name] = by.at[measure, column] if known else float("nan")
            row[f"{label}_n"] = by.at[measure, "n"] if known else 0
            shares = doubt_shares(by.loc[measure]) if known else (float("nan"),) * 2
            names = (f"{label}_uncertain", f"{label}_without_verdict")
            row |= zip(names, shares, strict=True)
            if known and "raw" in by:
                row[f"{measure}_raw"] = by.at[measure, "raw"]
        rows.append(row | {name: by[name].sum() for name in ("unscored", "errors")})
    frame = pd.DataFrame(rows)
    by_value = [name for name in LABEL_OF if name in frame and frame[name].notna().any()]
    if not by_value:
        return frame
    return frame.sort_values(by_value[0], ascending=False, ignore_index=True, kind="stable")


def without_verdict(responses: pd.DataFrame) -> pd.DataFrame:
    """Count each model's responses without a verdict, by reason."""
    missing = responses[responses["refused"].isna()]
    reasons = missing["unscored_because"].fillna("unscored")
    counts = reasons.groupby([missing["model"], reasons.rename("why")]).size()
    return counts.rename("responses").reset_index().rename(columns={"why": "reason"})


def worst_categories(found: Findings) -> pd.DataFrame:
    """Give over-refusal by category over all models, highest first, and which stand out."""
    if found.standing_out is None:
        return pd.DataFrame()
    pooled = found.pooled[("category",)]
    safe = pooled[(pooled["measure"] == "over_refusal") & (pooled["n"] > 0)]
    rates = safe[["category", "rate", "lower", "upper", "refused", "n"]]
    other = {"lower": "difference_lower", "upper": "difference_upper"}
    tested = found.standing_out.rename(columns=other)
    columns = ["category", "difference", *other.values(), "p", "verdict"]
    table = rates.merge(tested[columns], on="category")
    return table.sort_values(["rate", "category"], ascending=[False, True], ignore_index=True)


def _rankings(found: Findings) -> list[ReportTable]:
    tables = []
    for name, table in found.rankings.items():
        measure, order = _RANKED[name]
        name = f"ranking-{name.replace('_', '-')}"
        tables.append(worded(name, table, "ranking", measure=measure, order=order))
    return tables


def _fourfold(found: Findings) -> list[ReportTable]:
    corrected = ""
    if not found.corrected.empty:
        corrected = " Corrected as the rates are: counts are what the sample makes of the verdicts."
    by_language = {"fourfold": "", "fourfold-by-language": " by language"}
    return [
        worded(name, frame, "fourfold", by_language=by_language[name], corrected=corrected)
        for name, frame in found.fourfold.items()
    ]


def _agreement(found: Findings) -> list[ReportTable]:
    if not found.agreement:
        return []
    alphas = "".join(
        f" Krippendorff's alpha over all {found.row}s on {label} prompts: {alpha.value:.2f}"
        + ("." if pd.isna(alpha.lower) else f" ({alpha.lower:.2f} to {alpha.upper:.2f}).")
        for label, alpha in ((label, of.alpha) for label, of in found.agreement.items())
        if not pd.isna(alpha.value)
    )
    pairs = [of.pairs.assign(label=label) for label, of in found.agreement.items()]
    table = pd.concat(pairs, ignore_index=True)
    table.insert(0, "label", table.pop("label"))
    return [worded("vote-agreement", table, alphas=alphas)]

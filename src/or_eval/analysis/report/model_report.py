"""The report on models: findings put into words, tables, figures and responses to look at."""

from __future__ import annotations

from typing import Any

from or_eval.analysis.card_coverage import CardCoverage, card_coverage
from or_eval.analysis.configuration import mixed_scoring
from or_eval.analysis.figures.drawing import Figure
from or_eval.analysis.figures.of_cells import rate_heat_map, vote_agreement_heat_map
from or_eval.analysis.figures.of_rates import by_group, class_stack
from or_eval.analysis.figures.trade_off import trade_off
from or_eval.analysis.report.browser import browse, concerns, picks
from or_eval.analysis.report.contents import Report, ReportTable, worded
from or_eval.analysis.report.findings import Findings
from or_eval.analysis.report.report_tables import headline, report_tables
from or_eval.analysis.report.sentences import answers
from or_eval.analysis.report.tested import facts, run_table, title_of
from or_eval.analysis.report.viewer_links import log_folder
from or_eval.analysis.scorecard import Scorecard
from or_eval.analysis.tables import plain, records
from or_eval.schema import Label

WORDS = {
    "Over-refusal": "the share of safe prompts (they look harmful and are harmless) that a model "
    "refuses. Lower is better.",
    "Toxic rejection": "the share of toxic prompts (really harmful) that it refuses. Higher is "
    "better.",
}


def model_report(found: Findings, scorer: str, card: Scorecard | None = None) -> Report:
    """Put findings into a report.

    Args:
        found: What the logs show.
        scorer: Name of the score that it was found from.
        card: What is known of how far verdicts agree with people.
    """
    logs = found.asked
    mixed = mixed_scoring(logs.heads, logs.responses, scorer)
    covered = None if card is None else card_coverage(card, logs.heads, logs.responses, scorer)
    tables = report_tables(found, covered)
    folder = log_folder([head.location for head in logs.heads])
    runs = run_table(logs.heads, logs.responses, scorer, folder)
    flags = concerns(logs.responses, found.truth)
    judge = "" if found.truth.isna().all() else "people" if found.people else "the judge's audit"
    browser = browse(logs.responses, flags, logs.prompts, folder, scorer, found.truth, judge)
    return Report(
        kind="report",
        title=f"Over-refusal of {title_of(logs.heads)}",
        tested=facts(runs, logs.prompts),
        settings=None,
        words=WORDS,
        headline=headline(found),
        answers=answers(found, covered, mixed),
        picks=picks(found.logs.responses, flags, browser),
        runs=worded("runs", runs),
        tables=tables,
        figures=_figures(found),
        browser=browser,
        notes=logs.notes,
        log_dir=folder,
        findings=_data(found, tables, covered),
    )


def _figures(found: Findings) -> list[Figure]:
    """Draw what the findings have data for."""
    by, pooled = found.rates_by, found.pooled
    agreement = list(found.agreement.items())
    figures = [
        trade_off(found.models, found.bases),
        class_stack(found.classes, found.models),
        *(
            by_group(by[name], name)
            for name in ("category", "language", "method", "source")
            if name in by
        ),
        *(
            rate_heat_map(pooled[row, "language"], row)
            for row in ("category", "method")
            if (row, "language") in pooled
        ),
        *(vote_agreement_heat_map(of.pairs, label) for label, of in agreement[:1]),
    ]
    return [figure for figure in figures if figure is not None]


def _data(
    found: Findings, tables: list[ReportTable], covered: CardCoverage | None
) -> dict[str, Any]:
    """Give the findings as JSON-ready data, as summary.schema.json describes them."""
    responses = found.logs.responses
    frames = {table.name: records(table.frame) for table in tables}
    return {
        "prompts": {
            label.value: int((found.logs.prompts["label"] == label).sum()) for label in Label
        },
        "responses": {
            "total": len(responses),
            "with_verdict": int(responses["refused"].notna().sum()),
        },
        "models": frames.get("models", []),
        "corrected": frames.get("corrections", []),
        "prompt_labels": frames.get("prompt-labels", []),
        "corrected_for_labels": frames.get("corrected-for-labels", []),
        "scorecard": frames.get("scorecard", []),
        "outside_scorecard": [] if covered is None else covered.warnings,
        "framings": frames.get("framings", []),
        "worst_categories": frames.get("worst-categories", []),
        "differences": frames.get("differences", []),
        "rankings": {name: records(table) for name, table in found.rankings.items()},
        "safety_over_refusal": plain(found.correlation._asdict()),
        "alpha": {label: plain(of.alpha._asdict()) for label, of in found.agreement.items()},
    }

"""The report on models: what logs show in words, tables, figures and responses to look at."""

from __future__ import annotations

from typing import Any

from or_eval.analysis.card_coverage import CardCoverage, card_coverage
from or_eval.analysis.configuration import mixed_scoring
from or_eval.analysis.figures.kinds import IN_REPORTS, KINDS
from or_eval.analysis.material import Material
from or_eval.analysis.report.browser import browse, concerns, picks
from or_eval.analysis.report.contents import Report, ReportTable, worded
from or_eval.analysis.report.model_tables import headline, model_tables
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


def model_report(of: Material, card: Scorecard | None = None) -> Report:
    """Put what logs show into a report.

    Args:
        of: What they show.
        card: What is known of how far verdicts agree with people.
    """
    logs, scorer = of.asked, of.scorer
    mixed = mixed_scoring(logs.heads, logs.responses, scorer)
    covered = None if card is None else card_coverage(card, logs.heads, logs.responses, scorer)
    tables = model_tables(of, covered)
    folder = log_folder([head.location for head in logs.heads])
    runs = run_table(logs.heads, logs.responses, scorer, folder)
    flags = concerns(logs.responses, of.known)
    judge = "" if of.known.isna().all() else "people" if of.people else "the judge's audit"
    browser = browse(logs.responses, flags, logs.prompts, folder, scorer, of.known, judge)
    figures = [KINDS[name].draw(of) for name in IN_REPORTS]
    return Report(
        kind="report",
        title=f"Over-refusal of {title_of(logs.heads)}",
        tested=facts(runs, logs.prompts),
        settings=None,
        words=WORDS,
        headline=headline(of),
        answers=answers(of, covered, mixed),
        picks=picks(of.responses, flags, browser),
        runs=worded("runs", runs),
        tables=tables,
        figures=[figure for figure in figures if figure is not None],
        browser=browser,
        notes=of.notes,
        log_dir=folder,
        findings=_data(of, tables, covered),
    )


def _data(of: Material, tables: list[ReportTable], covered: CardCoverage | None) -> dict[str, Any]:
    """Give the findings as JSON-ready data, as summary.schema.json describes them."""
    responses = of.logs.responses
    frames = {table.name: records(table.frame) for table in tables}
    return {
        "prompts": {label.value: int((of.logs.prompts["label"] == label).sum()) for label in Label},
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
        "rankings": {name: records(table) for name, table in of.rankings.items()},
        "safety_over_refusal": plain(of.correlation._asdict()),
        "alpha": {label: plain(found.alpha._asdict()) for label, found in of.agreement.items()},
    }

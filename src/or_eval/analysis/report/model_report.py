"""The report on models: findings put into tables, figures, words and prompts to look at."""

from __future__ import annotations

from or_eval.analysis.report.contents import Report, ReportTable
from or_eval.analysis.report.findings import Findings
from or_eval.analysis.report.prompt_browser import over_refused
from or_eval.analysis.report.report_figures import report_figures
from or_eval.analysis.report.report_tables import headline, report_tables
from or_eval.analysis.report.runs import run_table
from or_eval.analysis.report.sentences import sentences
from or_eval.analysis.report.summary_data import summary_data
from or_eval.analysis.report.viewer_links import log_folder

WORDS = {
    "Over-refusal": "the share of safe prompts (they look harmful and are harmless) that a model "
    "refuses. Lower is better.",
    "Toxic rejection": "the share of toxic prompts (really harmful) that it refuses. Higher is "
    "better.",
}


def model_report(found: Findings, scorer: str) -> Report:
    """Put findings into a report.

    Args:
        found: What the logs show.
        scorer: Name of the score that it was found from.
    """
    heads, tables = found.logs.heads, report_tables(found)
    return Report(
        kind="report",
        title="Over-refusal report",
        words=WORDS,
        summary=sentences(found),
        headline=headline(found),
        runs=ReportTable(
            "runs",
            "What was run",
            "A row per log. Arguments of models are left out, since they may hold keys.",
            run_table(heads, found.logs.responses, scorer),
        ),
        tables=tables,
        figures=report_figures(found),
        browser=over_refused(found.logs, scorer),
        notes=found.logs.notes,
        log_dir=log_folder([head.location for head in heads]),
        findings=summary_data(found, tables),
    )

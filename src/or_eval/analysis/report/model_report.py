"""The report on models: findings put into tables, figures, words and prompts to look at."""

from __future__ import annotations

from or_eval.analysis.report.contents import Report
from or_eval.analysis.report.findings import Findings
from or_eval.analysis.report.prompt_browser import over_refused
from or_eval.analysis.report.report_figures import report_figures
from or_eval.analysis.report.report_tables import report_tables
from or_eval.analysis.report.summary import sentences, summary_data
from or_eval.analysis.report.viewer_links import log_folder


def model_report(found: Findings, scorer: str) -> Report:
    """Put findings into a report.

    Args:
        found: What the logs show.
        scorer: Name of the score that it was found from.
    """
    tables, said = report_tables(found, scorer), sentences(found)
    browser = over_refused(found.logs, found.matrix, scorer)
    return Report(
        title="Over-refusal report",
        summary=said,
        tables=tables,
        figures=report_figures(found),
        browser=browser,
        notes=found.logs.notes,
        log_dir=log_folder([head.location for head in found.logs.heads]),
        findings=summary_data(found, tables, said) | {"prompts_shown": len(browser.prompts)},
    )

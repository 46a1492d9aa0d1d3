"""The report as one HTML file that needs no network."""

from __future__ import annotations

from importlib.resources import files
from shlex import quote
from typing import Any

import pandas as pd
from markupsafe import Markup

from or_eval.analysis.figures.html_page import render_page
from or_eval.analysis.report.contents import Report
from or_eval.analysis.report.shown_tables import shown_table
from or_eval.analysis.report.viewer_links import below


def page(report: Report, made: dict[str, Any]) -> str:
    """Render a report; all its data pass :func:`or_eval.analysis.figures.html_page.render_page`.

    Args:
        report: The report.
        made: Which version of or-eval made it, and when (``or_eval``, ``created``).
    """
    logs = [below(report.log_dir, str(log)) for log in report.runs.frame["log"]]
    same, differing = alike(report.runs.frame.assign(log=logs))
    return render_page(
        _file("report.html"),
        _file("report.js"),
        {
            "charts": {figure.name: figure.chart.to_dict() for figure in report.figures},
            "prompts": report.browser.prompts,
        },
        report=report,
        made=made,
        headline=shown_table(report.headline.frame),
        same=same,
        differing=shown_table(differing),
        shown=lambda table: shown_table(table.frame),
        viewer=f"inspect view --log-dir {quote(report.log_dir)}",
        style=Markup(_file("report.css")),
    )


def alike(runs: pd.DataFrame) -> tuple[list[tuple[str, str]], pd.DataFrame]:
    """Part what is the same for all runs, by title, from the columns in which they differ."""
    common = [name for name in runs.columns if runs[name].astype("str").nunique() == 1]
    first = shown_table(runs[common].head(1))
    texts = [cell.text for cell in first.rows[0]]
    return list(zip(first.headers, texts, strict=True)), runs.drop(columns=common)


def _file(name: str) -> str:
    return (files("or_eval") / "analysis" / "report" / "template" / name).read_text("utf-8")

"""The report as one HTML file that needs no network."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Any
from urllib.parse import quote as quoted

import pandas as pd
from markupsafe import Markup

from or_eval.analysis.figures.saving import render_page
from or_eval.analysis.report.contents import ALSO, Report, report_file, terms
from or_eval.analysis.report.forms import HEADLINE, shown_table
from or_eval.schema import countings

MOST_ROWS = 500
"""So many rows of a table stand on the page; all are in its files."""
_MOST_FIGURES = 3
"""So many figures are open from the start; the others are a click away."""


def page(report: Report, made: dict[str, Any], above: str = "") -> str:
    """Render a report; all its data pass :func:`or_eval.analysis.figures.saving.render_page`.

    Args:
        report: The report.
        made: Which version of or-eval made it, and when (``or_eval``, ``created``).
        above: Where the folder lies that the report on all benchmarks is in, as ``../``; empty
            where that is this report.
    """
    same, differing = alike(report.runs.frame)
    return render_page(
        report_file("template/report.html"),
        report_file("template/report.js") + report_file("template/browser.js"),
        {
            "charts": {figure.name: figure.chart.to_dict() for figure in report.figures},
            "responses": {
                name: value for name, value in report.browser._asdict().items() if name != "note"
            },
        },
        report=report,
        made=made,
        above=above,
        headline=shown_table(report.headline.frame, HEADLINE),
        same=same,
        differing=shown_table(differing),
        shown=lambda table: shown_table(table.frame.head(MOST_ROWS), table.name),
        most_rows=MOST_ROWS,
        most_figures=_MOST_FIGURES,
        quoted=lambda text: quoted(text, safe=""),
        viewer=f"inspect view --log-dir {quote(_from_here(report.log_dir))}",
        also=ALSO,
        counting=countings()[report.counting].name if report.counting else "",
        terms=terms(report),
        style=Markup(report_file("template/report.css")),
    )


def alike(runs: pd.DataFrame) -> tuple[list[tuple[str, str]], pd.DataFrame]:
    """Part what is the same for all runs, by title, from the columns in which they differ."""
    common = [name for name in runs.columns if runs[name].astype("str").nunique() == 1]
    first = shown_table(runs[common].head(1))
    texts = [cell.text for cell in first.rows[0]]
    return list(zip(first.headers, texts, strict=True)), runs.drop(columns=common)


def _from_here(folder: str) -> str:
    """Name a folder as from the present one, where it lies in that: nobody else needs the rest.

    Inspect's viewer shows nothing of a path that goes up.
    """
    here = Path.cwd()
    return str(Path(folder).relative_to(here)) if Path(folder).is_relative_to(here) else folder

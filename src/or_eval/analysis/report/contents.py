"""What a report is made of, before it is written."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd

from or_eval.analysis.figures.drawing import Figure


class ReportTable(NamedTuple):
    """A table of the report.

    Attributes:
        name: Short name, for files and anchors.
        title: What it shows.
        note: How to read it.
        frame: The table; a row each.
        opened: Whether the page shows it from the start.
    """

    name: str
    title: str
    note: str
    frame: pd.DataFrame
    opened: bool = False


class Browser(NamedTuple):
    """Prompts to look at one by one, with what each model responded.

    Attributes:
        title: What these prompts have in common.
        note: How they were chosen, and how many there are.
        prompts: JSON-ready records.
    """

    title: str
    note: str
    prompts: list[dict[str, Any]]


class Report(NamedTuple):
    """A report before it is written.

    Attributes:
        kind: ``report`` on models, or ``comparison`` of two runs.
        title: Its title.
        words: Terms that its first screen explains.
        summary: Sentences that a manager understands.
        headline: The table that stands beside them.
        runs: What was run, a row per log.
        tables: Its other tables, in order.
        figures: Its figures, in order.
        browser: Prompts to look at.
        notes: What was chosen or left out in reading the logs.
        log_dir: Folder that Inspect's viewer is to be started on.
        findings: What summary.json holds besides.
    """

    kind: str
    title: str
    words: dict[str, str]
    summary: list[str]
    headline: ReportTable
    runs: ReportTable
    tables: list[ReportTable]
    figures: list[Figure]
    browser: Browser
    notes: list[str]
    log_dir: str
    findings: dict[str, Any]

"""What a report is made of, before it is written."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import pandas as pd

from or_eval.analysis.figures.drawing import Figure


class ReportTable(NamedTuple):
    """A table of the report.

    Attributes:
        name: Short name, for files and anchors.
        title: What it shows.
        note: How to read it, and by what it is ordered.
        frame: The table; a row each.
        opened: Whether the page shows it from the start.
    """

    name: str
    title: str
    note: str
    frame: pd.DataFrame
    opened: bool = False

    def also(self, more: str) -> ReportTable:
        """Say something besides in the note."""
        return self._replace(note=f"{self.note} {_words()['more'][more]}") if more else self


def worded(
    name: str, frame: pd.DataFrame, kind: str = "", more: str = "", **said: str
) -> ReportTable:
    """Make a table with the words that ``tables.toml`` has for it.

    Args:
        name: Its short name.
        frame: The table.
        kind: Under which name its words stand; its own by default.
        more: What its note says besides.
        said: What is filled in.
    """
    words, shared = _words()[kind or name], _words()["shared"]
    title, note = (str(words[part]).format(**shared, **said) for part in ("title", "note"))
    return ReportTable(name, title, note, frame, bool(words.get("opened"))).also(more)


@cache
def _words() -> dict[str, dict[str, Any]]:
    text = (files("or_eval") / "analysis" / "report" / "tables.toml").read_text("utf-8")
    return tomllib.loads(text)


class Browser(NamedTuple):
    """Prompts to look at one by one, with what each model responded.

    Attributes:
        note: How many there are, and what was left out.
        models: Names of the columns of the grid.
        concerns: What responses may be looked at for, with how many of all responses are.
        judge: Who said what is the truth about some responses; empty where nobody did.
        prompts: JSON-ready records.
    """

    note: str
    models: list[str]
    concerns: dict[str, int]
    judge: str
    prompts: list[dict[str, Any]]


class Pick(NamedTuple):
    """A prompt that the first screen names.

    Attributes:
        id: Its id in the browser.
        prompt: Its text.
        said: What it is named for; empty where only one response could be.
    """

    id: str
    prompt: str
    said: str


class Report(NamedTuple):
    """A report before it is written.

    Attributes:
        kind: ``report`` on models, ``benchmarks`` (the page before reports on several),
            ``comparison`` of two runs, or ``scan`` of transcripts.
        title: Its title.
        tested: What was tested, by title.
        settings: In a comparison: how the settings of the runs differ.
        words: Terms that its first screen explains.
        headline: The rates that it shows first.
        answers: What a reader asks first, and the answers in sentences.
        picks: Prompts that the last of these answers names.
        runs: What was run, a row per log.
        tables: Its other tables, in order.
        figures: Its figures, in order.
        browser: Prompts to look at.
        notes: What was chosen or left out in reading the logs.
        log_dir: Folder that Inspect's viewer is to be started on.
        findings: What summary.json holds besides.
        parts: Reports on single benchmarks, by their folder, where this is on several.
    """

    kind: str
    title: str
    tested: dict[str, str]
    settings: ReportTable | None
    words: dict[str, str]
    headline: ReportTable
    answers: dict[str, list[str]]
    picks: list[Pick]
    runs: ReportTable
    tables: list[ReportTable]
    figures: list[Figure]
    browser: Browser
    notes: list[str]
    log_dir: str
    findings: dict[str, Any]
    parts: dict[str, Report] = {}  # noqa: RUF012 (nobody adds to it)

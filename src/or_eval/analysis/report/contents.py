"""What a report is made of, before it is written; its words stand in files beside the code."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd

from or_eval.analysis.figures.drawing import Figure
from or_eval.analysis.responses import other_counting
from or_eval.analysis.wording import counted, joined, named, written
from or_eval.schema import countings

ALSO = "What else the logs show"
"""The question whose answers stand below the first screen."""


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


def sentences(kind: str, **found: Any) -> dict[str, list[str]]:
    """Say what was found: the questions of ``template/KIND.txt`` that have answers, and these.

    Args:
        kind: Kind of the report.
        found: What its text is filled with; line breaks in it become spaces, so that no name
            passes for a sentence or a question.
    """
    from jinja2 import Environment, StrictUndefined

    words = Environment(  # plain text: the page escapes it
        undefined=StrictUndefined,
        finalize=lambda value: " ".join(str(value).split()),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    words.filters |= {"counted": counted, "named": named, "joined": joined, "written": written}
    text = report_file(f"template/{kind}.txt")
    _, *parts = re.split(r"^# (.+)\n", text, flags=re.MULTILINE)
    answers = {
        question: [
            line.strip()
            for line in words.from_string(said).render(found).splitlines()
            if line.strip()
        ]
        for question, said in zip(parts[::2], parts[1::2], strict=True)
    }
    return {question: said for question, said in answers.items() if said}


@cache
def report_file(name: str) -> str:
    """Give a text that lies beside this module."""
    return (files("or_eval") / "analysis" / "report" / name).read_text("utf-8")


def terms(report: Report) -> dict[str, str]:
    """Give the terms that the first screen of a report explains, its countings among them."""
    known = _words()["terms"]
    keys = [report.counting, other_counting(report.counting)] if report.counting else []
    told = {countings()[key].name: countings()[key].definition for key in keys}
    named = {f"{name[0].upper()}{name[1:]}": f"{text}." for name, text in told.items()}
    return {**known.get(report.kind, known["report"]), **named}


@cache
def _words() -> dict[str, dict[str, Any]]:
    return tomllib.loads(report_file("tables.toml"))


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
        headline: The rates that it shows first.
        answers: What a reader asks first, and the answers in sentences.
        runs: What was run, a row per log.
        tables: Its other tables, in order; those with nothing to say are left out.
        notes: What was chosen or left out in reading the logs.
        findings: What summary.json holds besides.
        counting: Key of what its headline counts as refused; empty where that isn't asked.
        log_dir: Folder that Inspect's viewer is to be started on.
        settings: In a comparison: how the settings of the runs differ.
        figures: Its figures, in order.
        browser: Prompts to look at.
        picks: Prompts that the first screen names.
        parts: Reports on single benchmarks, by their folder, where this is on several.
    """

    kind: str
    title: str
    tested: dict[str, str]
    headline: ReportTable
    answers: dict[str, list[str]]
    runs: ReportTable
    tables: list[ReportTable]
    notes: list[str]
    findings: dict[str, Any]
    counting: str = ""
    log_dir: str = ""
    settings: ReportTable | None = None
    figures: Sequence[Figure] = ()
    browser: Browser = Browser("", [], {}, "", [])
    picks: Sequence[Pick] = ()
    parts: Mapping[str, Report] = MappingProxyType({})

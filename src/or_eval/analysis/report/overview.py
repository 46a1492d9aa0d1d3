"""The page before the reports on several benchmarks: their rates side by side, never pooled."""

from __future__ import annotations

import re

import pandas as pd

from or_eval.analysis.report.contents import Browser, Report, ReportTable, worded
from or_eval.analysis.report.tested import facts, title_of
from or_eval.analysis.responses import Logs


def overview(parts: dict[str, Report], logs: Logs) -> Report:
    """Put reports on single benchmarks behind a page that shows the rates of all.

    Args:
        parts: A report for each benchmark, by its name.
        logs: The frames of all logs.
    """
    first = next(iter(parts.values()))
    runs = pd.concat([part.runs.frame for part in parts.values()], ignore_index=True)
    answers: dict[str, list[str]] = {}
    for name, part in parts.items():
        for question, sentences in part.answers.items():
            answers.setdefault(question, []).extend(f"{name}: {said}" for said in sentences)
    headlines = {name: part.headline.frame for name, part in parts.items()}
    # where no verdict of a benchmark is in doubt, its table says nothing of doubts
    headline = max((part.headline for part in parts.values()), key=lambda table: len(table.note))
    rates = {name: _table_of(part, "models").frame for name, part in parts.items()}
    return first._replace(
        kind="benchmarks",
        title=f"Over-refusal of {title_of(logs.heads)}",
        tested=facts(runs, logs.prompts),
        headline=headline._replace(frame=_beside(headlines)),
        answers=answers,
        picks=[],
        runs=worded("runs", runs),
        tables=[_table_of(first, "models")._replace(frame=_beside(rates))],
        figures=[],
        browser=Browser("", [], {}, "", []),
        findings={"benchmarks": {name: folder_of(name) for name in parts}},
        parts={folder_of(name): part for name, part in parts.items()},
    )


def folder_of(benchmark: str) -> str:
    """Name the folder of a benchmark's report."""
    return re.sub(r"[^\w-]+", "-", benchmark)


def _beside(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    named = [frame.assign(benchmark=name) for name, frame in frames.items()]
    table = pd.concat(named, ignore_index=True)
    table = table.fillna(dict.fromkeys(("uncertain_share", "without_verdict"), 0.0))
    table.insert(0, "benchmark", table.pop("benchmark"))
    return table


def _table_of(report: Report, name: str) -> ReportTable:
    return next(table for table in report.tables if table.name == name)

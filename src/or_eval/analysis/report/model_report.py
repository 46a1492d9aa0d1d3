"""The report on models, and the page before those on several benchmarks."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from or_eval.analysis.configuration import mixed_scoring
from or_eval.analysis.figures.kinds import figures_of_report
from or_eval.analysis.material import Material
from or_eval.analysis.rates import LABEL_OF
from or_eval.analysis.report.browser import browse, concerns, picks
from or_eval.analysis.report.contents import Browser, Report, ReportTable, worded
from or_eval.analysis.report.model_tables import model_tables, models_table
from or_eval.analysis.report.sentences import answers
from or_eval.analysis.report.tested import facts, log_folder, measured, run_table, title_of
from or_eval.analysis.scorecard import CardCoverage, Scorecard, card_coverage
from or_eval.analysis.tables import plain, records
from or_eval.analysis.wording import MEASURE_NAMES
from or_eval.intervals import with_bounds
from or_eval.schema import Label

_SUMMARISED = {
    "models": "models",
    "corrected": "corrections",
    "prompt_labels": "prompt-labels",
    "corrected_for_labels": "corrected-for-labels",
    "scorecard": "scorecard",
    "framings": "framings",
    "worst_categories": "worst-categories",
    "differences": "differences",
}


def model_report(of: Material, card: Scorecard | None = None) -> Report:
    """Put what logs show into a report.

    Args:
        of: What they show.
        card: What is known of how far verdicts agree with people.
    """
    logs, scorer = of.asked, of.scorer
    covered = None if card is None else card_coverage(card, logs.heads, logs.responses, scorer)
    tables = model_tables(of, covered)
    folder = log_folder([head.location for head in logs.heads])
    runs = run_table(logs.heads, logs.responses, scorer, folder)
    flags = concerns(logs.responses, of.known)
    judge = "" if of.known.isna().all() else "people" if of.people else "the judge's audit"
    browser = browse(logs.responses, flags, logs.prompts, folder, scorer, of.known, judge)
    return Report(
        kind="report",
        counting=of.counting,
        title=f"{measured(logs.prompts)} of {title_of(logs.heads)}",
        tested=facts(runs, logs.prompts),
        headline=_headline(of),
        answers=answers(of, covered, mixed_scoring(logs.heads, logs.responses, scorer)),
        picks=picks(of.responses, flags, browser),
        runs=worded("runs", runs),
        tables=tables,
        figures=figures_of_report(of),
        browser=browser,
        notes=of.notes,
        log_dir=folder,
        findings=_findings(of, tables, covered),
    )


def _headline(of: Material) -> ReportTable:
    """Give the rates of each model, for the first screen."""
    rates = models_table(of.models)
    shown = [name for name in LABEL_OF if name in rates and rates[name].notna().any()]
    ends = ["", "_lower", "_upper", "_lowest", "_highest", *with_bounds("_expected")]
    ends += with_bounds(f"_{of.other.counting}")
    names = ["model", *(name + end for name in shown for end in ends), "counting"]
    frame = rates[[name for name in names if name in rates]]
    order = f"Highest {MEASURE_NAMES[shown[0]]} first. " if shown and len(frame) > 1 else ""
    found = worded("headline", frame, order=order)
    open_ = [(frame[f"{name}_lowest"] < frame[f"{name}_highest"]).any() for name in shown]
    if not of.corrected.empty:
        found = found.also("by-people" if of.people else "by-audit")
    elif any(open_):
        found = found.also("could-be")
    return found if of.usual is None else found.also("expected")


def _findings(
    of: Material, tables: list[ReportTable], covered: CardCoverage | None
) -> dict[str, Any]:
    """Give the findings as JSON-ready data, as summary.schema.json describes them."""
    responses, prompts = of.logs.responses, of.logs.prompts
    frames = {table.name: records(table.frame) for table in tables}
    return {
        "prompts": {label.value: int((prompts["label"] == label).sum()) for label in Label},
        "responses": {
            "total": len(responses),
            "with_verdict": int(responses["refused"].notna().sum()),
        },
        **{key: frames.get(name, []) for key, name in _SUMMARISED.items()},
        "outside_scorecard": [] if covered is None else covered.warnings,
        "rankings": {name: records(table) for name, table in of.rankings.items()},
        "safety_over_refusal": plain(of.correlation._asdict()),
        "alpha": {label: plain(found.alpha._asdict()) for label, found in of.agreement.items()},
    }


def overview(parts: dict[str, Report], title: str, prompts: pd.DataFrame) -> Report:
    """Put reports on single benchmarks behind a page that shows the rates of all, never pooled.

    Args:
        parts: A report for each benchmark, by its name.
        title: Title of the page.
        prompts: Prompt records of all.
    """
    first = next(iter(parts.values()))
    runs = pd.concat([part.runs.frame for part in parts.values()], ignore_index=True)
    said: dict[str, list[str]] = {}
    for name, part in parts.items():
        for question, told in part.answers.items():
            said.setdefault(question, []).extend(f"{name}: {sentence}" for sentence in told)
    headlines = {name: part.headline for name, part in parts.items()}
    # where no verdict of a benchmark is in doubt, its note says nothing of doubts
    headline = max(headlines.values(), key=lambda table: len(table.note))
    rates = {
        name: table
        for name, part in parts.items()
        for table in part.tables
        if table.name == "models"
    }
    return first._replace(
        kind="benchmarks",
        title=title,
        tested=facts(runs, prompts),
        headline=headline._replace(frame=_beside(headlines)),
        answers=said,
        picks=[],
        runs=worded("runs", runs),
        tables=[next(iter(rates.values()))._replace(frame=_beside(rates))],
        figures=[],
        browser=Browser("", [], {}, "", []),
        findings={"benchmarks": {name: folder_of(name) for name in parts}},
        parts={folder_of(name): part for name, part in parts.items()},
    )


def folder_of(benchmark: str) -> str:
    """Name the folder of a benchmark's report."""
    return re.sub(r"[^\w-]+", "-", benchmark)


def _beside(tables: dict[str, ReportTable]) -> pd.DataFrame:
    named = [table.frame.assign(benchmark=name) for name, table in tables.items()]
    table = pd.concat(named, ignore_index=True)
    table.insert(0, "benchmark", table.pop("benchmark"))
    return table

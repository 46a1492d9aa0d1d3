"""The report on what changed between two runs."""

from __future__ import annotations

from math import nan
from typing import Any

import pandas as pd

from or_eval.analysis.conditions import differing_settings
from or_eval.analysis.configuration import mixed_scoring
from or_eval.analysis.figures.differences import RUNS as CHANGES
from or_eval.analysis.figures.differences import differences
from or_eval.analysis.paired_tests import CHANCE, MORE, UNKNOWN
from or_eval.analysis.report.browser import browse, concerns, picks
from or_eval.analysis.report.contents import Report, ReportTable, worded
from or_eval.analysis.report.sentences import WHICH
from or_eval.analysis.report.tested import facts, run_table, title_of
from or_eval.analysis.report.viewer_links import log_folder
from or_eval.analysis.run_changes import RUNS, Changes
from or_eval.analysis.tables import records
from or_eval.analysis.wording import (
    UNSURE,
    counted,
    doubts,
    written,
)

_MOST_TOLD = 6
_VERDICTS = {
    MORE: MORE,
    CHANCE: "which may be chance",
    UNKNOWN: "which can't be told from chance with so few families of prompts",
}
_KINDS = {"safe": "harmless", "toxic": "toxic"}
_WORDS = {
    "A and B": "the two runs: what stood before, and what came after.",
    "Refused": "over-refusal on safe prompts (they look harmful and are harmless; lower is "
    "better), toxic rejection on toxic ones (higher is better).",
    "More than chance": "a difference as large would be rare if the runs didn't differ: its "
    "p-value, corrected for the number of comparisons and for prompts that come in families, is "
    "under 0.05, and so its interval excludes zero.",
}


def comparison_report(found: Changes, scorer: str) -> Report:
    """Put changes into a report.

    Args:
        found: What changed.
        scorer: Name of the score that it was found from.
    """
    heads = [head for logs in found.runs for head in logs.heads]
    folder = log_folder([head.location for head in heads])
    runs = _runs(found, scorer, folder)
    settings = differing_settings(*(logs.heads for logs in found.runs))
    responses, flags = _responses(found)
    mixed = mixed_scoring(heads, responses, scorer)
    nobody = pd.Series(nan, responses.index)
    browser = browse(responses, flags, found.runs[0].prompts, folder, scorer, nobody, "")
    return Report(
        kind="comparison",
        title=f"What changed for {title_of(heads)}",
        tested=facts(runs, found.runs[0].prompts),
        settings=worded("settings", settings),
        words=_WORDS,
        headline=_headline(found.rates),
        answers={"What changed, and is it settled?": _sentences(found, mixed), WHICH: []},
        picks=picks(responses[responses["run"] == RUNS[0]], flags, browser)
        if len(found.flips)
        else [],
        runs=worded("runs", runs),
        tables=_tables(found),
        figures=[figure] if (figure := differences(found.rates, CHANGES)) else [],
        browser=browser,
        notes=found.notes,
        log_dir=folder,
        findings={
            "prompts_compared": found.prompts,
            "settings": records(settings),
            "changes": records(found.rates),
            "flips": records(found.flips[["id", "model", "label", "change"]]),
        },
    )


def _runs(found: Changes, scorer: str, folder: str) -> pd.DataFrame:
    tables = [
        run_table(logs.heads, logs.responses, scorer, folder).assign(run=run)
        for run, logs in zip(RUNS, found.runs, strict=True)
    ]
    frame = pd.concat(tables, ignore_index=True)
    frame.insert(0, "run", frame.pop("run"))
    return frame


def _responses(found: Changes) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Give the responses of both runs, each run's models by names of their own, and concerns."""
    frame = pd.concat(
        [logs.responses.assign(run=run) for run, logs in zip(RUNS, found.runs, strict=True)],
        ignore_index=True,
    )
    names = found.rates["model"].unique()
    compared = frame["model"] if len(names) > 1 else names[0]  # which may be renamed in run B
    pairs = pd.MultiIndex.from_frame(frame.assign(model=compared)[["id", "model"]])
    flips = pd.MultiIndex.from_frame(found.flips[["id", "model"]])
    flags = concerns(frame, pd.Series(nan, frame.index))
    flags.insert(0, "changed", pairs.isin(flips))
    return frame.assign(model=frame["model"] + ", run " + frame["run"]), flags


def _headline(rates: pd.DataFrame) -> ReportTable:
    note = (
        "The change from A to B in percentage points, with its 95 % interval, which holds the "
        "changes that aren't ruled out."
    )
    unsure = {
        f"unsure_{run}": rates[f"uncertain_{run}"] + rates[f"without_verdict_{run}"] for run in "ab"
    }
    columns = ["model", "label", "rate_a", "rate_b", "difference", "lower", "upper"]
    columns += ["verdict"]
    if any(shares.any() for shares in unsure.values()):
        columns[3:4] = ["unsure_a", "rate_b", "unsure_b"]
        note += f" {UNSURE}"
    return ReportTable("headline", "Changes by model", note, rates.assign(**unsure)[columns])


def _tables(found: Changes) -> list[ReportTable]:
    flips = found.flips[["model", "change", "label", "category", "language", "prompt", "id"]]
    tables = [worded("changes", found.rates), worded("flips", flips)]
    return [table for table in tables if not table.frame.empty]


def _sentences(found: Changes, mixed: list[str]) -> list[str]:
    """Tell the changes that are more than chance, and the others where there is room for them."""
    audited = any(logs.responses["audited"].fillna(False).any() for logs in found.runs)
    as_told = "Verdicts count as they stand: what an audit found corrects reports on one run alone."
    count, rows = found.rates["model"].nunique(), records(found.rates)
    sure = [row for row in rows if row["verdict"] == MORE]
    told = rows if len(rows) <= _MOST_TOLD else sure
    rest = len(rows) - len(told)
    return [
        f"{counted(count, 'model')} {'was' if count == 1 else 'were'} compared on the "
        f"{counted(found.prompts, 'prompt')} that both runs have.",
        *mixed,
        *([as_told] if audited else []),
        *(_sentence(row) for row in told),
        *([f"{counted(rest, 'other change')} may be chance."] if rest else []),
    ]


def _sentence(row: dict[str, Any]) -> str:
    verdict, bounds = row["verdict"], ""
    if row["lower"] is not None:
        bounds = f" ({100 * row['lower']:+.1f} to {100 * row['upper']:+.1f})"
    return (
        f"{row['model']}: of {counted(row['n'], _KINDS[row['label']] + ' prompt')}, "
        f"{_refused(row, 'a')} were refused in A and {_refused(row, 'b')} in B: a "
        f"change of {100 * row['difference']:+.1f} percentage points{bounds}, "
        f"{_VERDICTS[verdict]}. "
        f"{row['newly_refused']:,} newly refused, {row['newly_answered']:,} newly answered."
    )


def _refused(row: dict[str, Any], run: str) -> str:
    """Write a run's rate with what could change it; its interval is that of the change."""
    remarks = doubts([row[f"uncertain_{run}"], row[f"without_verdict_{run}"]])
    return written(row[f"rate_{run}"], nan, nan, *remarks)

"""The report on what changed between two runs."""

from __future__ import annotations

from math import nan
from typing import Any

import pandas as pd

from or_eval.analysis.figures.run_differences import run_differences
from or_eval.analysis.paired_tests import CHANCE, MORE, UNKNOWN
from or_eval.analysis.report.contents import Browser, Report, ReportTable
from or_eval.analysis.report.prompt_browser import MOST_PROMPTS, count_shown, one_each
from or_eval.analysis.report.prompt_records import prompt_records
from or_eval.analysis.report.runs import run_table
from or_eval.analysis.report.viewer_links import log_folder
from or_eval.analysis.run_changes import RUNS, Changes
from or_eval.analysis.tables import records
from or_eval.analysis.wording import (
    UNSURE,
    counted,
    doubts,
    more_than_chance,
    share,
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
    folder = log_folder([head.location for logs in found.runs for head in logs.heads])
    browser = _browser(found, folder, scorer)
    return Report(
        kind="comparison",
        title="What changed between two runs",
        words=_WORDS,
        summary=_sentences(found),
        headline=_headline(found.rates),
        runs=_runs(found, scorer),
        tables=_tables(found),
        figures=[run_differences(found.rates)],
        browser=browser,
        notes=found.notes,
        log_dir=folder,
        findings={
            "prompts_compared": found.prompts,
            "changes": records(found.rates),
            "flips": records(found.flips[["id", "model", "label", "change"]]),
        },
    )


def _runs(found: Changes, scorer: str) -> ReportTable:
    tables = [
        run_table(logs.heads, logs.responses, scorer).assign(run=run)
        for run, logs in zip(RUNS, found.runs, strict=True)
    ]
    frame = pd.concat(tables, ignore_index=True)
    frame.insert(0, "run", frame.pop("run"))
    note = "A row per log. Arguments of models are left out, since they may hold keys."
    return ReportTable("runs", "What was run", note, frame)


def _headline(rates: pd.DataFrame) -> ReportTable:
    note = "The change from A to B in percentage points, with its 95 % interval."
    unsure = {
        f"unsure_{run}": rates[f"uncertain_{run}"] + rates[f"without_verdict_{run}"] for run in "ab"
    }
    columns = ["model", "label", "rate_a", "rate_b", "difference", "lower", "upper", "verdict"]
    if any(shares.any() for shares in unsure.values()):
        columns[3:4] = ["unsure_a", "rate_b", "unsure_b"]
        note += f" {UNSURE}"
    return ReportTable("headline", "Changes by model", note, rates.assign(**unsure)[columns])


def _tables(found: Changes) -> list[ReportTable]:
    tables = [
        ReportTable(
            "changes",
            "Changes by model",
            "On the n prompts that have a verdict in both runs. The difference is B less A in "
            "percentage points. Intervals and p-values come from one test, which flips the signs "
            "of whole families of prompts and allows for the number of rows. Beside each rate "
            "stand the shares of all of the run's responses to these prompts that could change it: "
            "whose verdict is not certain, and that have none. Newly refused are "
            "prompts refused more often in B. Detectable is the smallest difference that would "
            "be found four times in five.",
            found.rates,
            opened=True,
        ),
        ReportTable(
            "flips",
            "Prompts whose vote changed",
            "The first prompts of the table are shown with their responses below.",
            found.flips[["model", "change", "label", "category", "language", "prompt", "id"]],
        ),
    ]
    return [table for table in tables if not table.frame.empty]


def _sentences(found: Changes) -> list[str]:
    """Tell the changes that are more than chance, and the others where there is room for them."""
    count, rows = found.rates["model"].nunique(), records(found.rates)
    sure = [row for row in rows if more_than_chance(row)]
    told = rows if len(rows) <= _MOST_TOLD else sure
    rest = len(rows) - len(told)
    return [
        f"{counted(count, 'model')} {'was' if count == 1 else 'were'} compared on the "
        f"{counted(found.prompts, 'prompt')} that both runs have.",
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
    return share(row[f"rate_{run}"], nan, nan, *remarks)


def _browser(found: Changes, folder: str, scorer: str) -> Browser:
    """Show the prompts whose vote changed for most models, with the responses of both runs."""
    ids = [str(key) for key in found.flips["id"].value_counts().index]
    shown = _representative(found, ids[:MOST_PROMPTS])
    prompts = prompt_records(shown, found.runs[0].prompts, ids[:MOST_PROMPTS], folder, scorer)
    said = {key: _said(flips) for key, flips in found.flips.groupby("id")}
    for key, record in zip(ids, prompts, strict=False):
        record["said"] = said[key]
    note = "Prompts refused in one run and answered in the other: "
    return Browser(
        "Prompts whose vote changed", note + count_shown(len(prompts), len(ids)), prompts
    )


def _representative(found: Changes, ids: list[str]) -> pd.DataFrame:
    """Take of each run and model the first response to each prompt that did what its vote says."""
    parts = []
    for run, logs, matrix in zip(RUNS, found.runs, found.votes, strict=True):
        rows = logs.responses[logs.responses["id"].isin(ids)].assign(run=run)
        votes = pd.DataFrame({"vote": matrix.stack()})
        as_voted = rows["refused"].eq(rows.join(votes, on=["id", "model"])["vote"])
        parts.append(one_each(rows, as_voted.fillna(False).astype("bool"), ["id", "model"]))
    return pd.concat(parts, ignore_index=True)


def _said(flips: pd.DataFrame) -> str:
    """Say who changed how, as ``newly refused by a, b; newly answered by c``."""
    return "; ".join(
        f"{change} by {', '.join(group['model'])}" for change, group in flips.groupby("change")
    )

"""The report on what changed between two runs."""

from __future__ import annotations

from typing import Any

import pandas as pd

from or_eval.analysis.figures.run_differences import run_differences
from or_eval.analysis.report.contents import Browser, Report, ReportTable
from or_eval.analysis.report.prompt_browser import MOST_PROMPTS, prompt_records
from or_eval.analysis.report.run_changes import RUNS, Changes
from or_eval.analysis.report.runs import run_table
from or_eval.analysis.report.summary import stamp
from or_eval.analysis.report.viewer_links import log_folder
from or_eval.analysis.tables import records

_SIGNIFICANT = 0.05
_KINDS = {"safe": "harmless", "toxic": "toxic"}


def comparison_report(found: Changes, scorer: str) -> Report:
    """Put changes into a report.

    Args:
        found: What changed.
        scorer: Name of the score that it was found from.
    """
    said, tables = _sentences(found), _tables(found, scorer)
    heads = [head for logs in found.runs for head in logs.heads]
    browser = _browser(found, scorer)
    figure = run_differences(found.rates)
    frames = {table.name: records(table.frame) for table in tables}
    return Report(
        title="What changed between two runs",
        summary=said,
        tables=tables,
        figures=[figure],
        browser=browser,
        notes=found.notes,
        log_dir=log_folder([head.location for head in heads]),
        findings={
            **stamp("comparison"),
            "summary": said,
            "runs": frames["runs"],
            "prompts_compared": found.prompts,
            "changes": frames["changes"],
            "flips": [
                {key: flip[key] for key in ("id", "model", "label", "change")}
                for flip in records(found.flips)
            ],
            "notes": found.notes,
            "prompts_shown": len(browser.prompts),
        },
    )


def _tables(found: Changes, scorer: str) -> list[ReportTable]:
    runs = [
        run_table(logs.heads, scorer).assign(run=run)
        for run, logs in zip(RUNS, found.runs, strict=True)
    ]
    run_rows = pd.concat(runs, ignore_index=True)
    run_rows.insert(0, "run", run_rows.pop("run"))
    note = "A row per log. Arguments of models are left out, since they may hold keys."
    tables = [
        ReportTable("runs", "What was run", note, run_rows, opened=True),
        ReportTable(
            "changes",
            "Changes by model",
            "On the prompts with a vote in both runs. The difference is B less A, with a paired "
            "bootstrap interval; p is McNemar's exact test, p holm is corrected for all rows.",
            found.rates,
            opened=True,
        ),
        ReportTable(
            "flips",
            "Prompts whose vote changed",
            "A model's vote is what most of its responses to the prompt did.",
            found.flips[["model", "change", "label", "category", "language", "prompt", "id"]],
        ),
    ]
    return [table for table in tables if not table.frame.empty]


def _sentences(found: Changes) -> list[str]:
    count = len(found.models)
    compared = f"{count} models were" if count > 1 else "1 model was"
    return [
        f"{compared} compared on the {found.prompts} prompts that both runs have.",
        *(_sentence(row) for row in records(found.rates)),
    ]


def _sentence(row: dict[str, Any]) -> str:
    sure = "more" if row["p_holm"] < _SIGNIFICANT else "not more"
    bounds = ""
    if row["lower"] is not None:
        bounds = f" (95 % interval {100 * row['lower']:+.1f} to {100 * row['upper']:+.1f})"
    return (
        f"{row['model']}: of {row['n']} {_KINDS[row['label']]} prompts, refused "
        f"{100 * row['rate_a']:.1f} % in A and {100 * row['rate_b']:.1f} % in B, a change of "
        f"{100 * row['difference']:+.1f} percentage points{bounds}: {sure} than chance. "
        f"{row['newly_refused']} newly refused, {row['newly_answered']} newly answered."
    )


def _browser(found: Changes, scorer: str) -> Browser:
    """Show the prompts whose vote flipped for most models, with the responses of both runs."""
    counts = found.flips["id"].value_counts()
    ids = [str(key) for key in counts.index]
    shown = ids[:MOST_PROMPTS]
    directions = found.flips.groupby("id")["change"].agg(lambda said: ", ".join(sorted(set(said))))
    both = []
    for run, logs in zip(RUNS, found.runs, strict=True):
        mine = prompt_records(logs.responses, logs.prompts, shown, logs.heads, scorer)
        both.append({record["id"]: _of_run(record, run) for record in mine})
    records = [
        record
        | {"change": directions[key], "responses": record["responses"] + both[1][name]["responses"]}
        for key, (name, record) in zip(shown, both[0].items(), strict=False)
        if name in both[1]
    ]
    for record in records:
        record["responses"].sort(key=lambda answer: (answer["model"], answer["run"]))
    part = "all of them" if len(records) == len(ids) else f"the {len(records)} that most models did"
    note = f"{len(ids)} prompts were refused in one run and answered in the other; here are {part}."
    return Browser("Prompts whose vote changed", note, records)


def _of_run(record: dict[str, Any], run: str) -> dict[str, Any]:
    for answer in record["responses"]:
        answer["run"] = run
    return record

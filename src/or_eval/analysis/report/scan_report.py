"""The report on refusals that a scan found within transcripts."""

from __future__ import annotations

import pandas as pd

from or_eval.analysis.report.contents import Report, sentences, worded
from or_eval.analysis.report.tested import below, days, log_folder
from or_eval.analysis.scans import SCANNER, Scans, refused_share, transcript_rates
from or_eval.analysis.tables import records
from or_eval.analysis.wording import named
from or_eval.hostile_text import shortened

_LONGEST_EVIDENCE = 500
_HEADLINE = ["model", "transcripts", "rate", "lower", "upper", "unscored", "errors"]


def scan_report(found: Scans) -> Report:
    """Put what scans found into a report.

    Args:
        found: What they found.
    """
    transcripts, runs = found.transcripts, found.runs
    folder = log_folder(list(transcripts["log"]))
    refusals, unsettled = (
        frame.assign(
            evidence=[shortened(str(text), _LONGEST_EVIDENCE) for text in frame["evidence"]],
            log=[below(folder, log) for log in frame["log"]],
        )
        for frame in (found.refusals, found.open)
    )
    rates = transcript_rates(transcripts)
    classes, kinds = (_by(found, name) for name in ("class", "kind"))
    decided = found.refusals.assign(certain_refusals=found.refusals["certain"] == True)  # noqa: E712
    decided = decided.groupby(["model", "decided_by"], as_index=False).agg(
        refusals=("certain", "size"), certain_refusals=("certain_refusals", "sum")
    )
    by = [name for name in ("task", "agent") if transcripts[name].nunique() > 1]
    splits = {name: transcript_rates(transcripts, ("model", name)) for name in by}
    tables = [
        worded("models", rates, "scan-models", thing="model")._replace(opened=True),
        *(worded(f"{name}s", of, "scan-models", thing=name) for name, of in splits.items()),
        worded("kinds", kinds, "scan-kinds"),
        worded("classes", classes, "scan-classes"),
        worded("decided", decided, "scan-decided"),
        worded("refusals", refusals, "scan-refusals"),
        worded("unscored", unsettled, "scan-unscored"),
    ]
    findings = {
        "models": records(rates),
        "kinds": records(kinds),
        "classes": records(classes),
        "decided_by": records(decided),
        "refusals": records(refusals),
        "unscored": records(unsettled),
    }
    tasks, agents, modes, judges = (
        named(sorted(set(column)), thing)
        for column, thing in (
            (transcripts["task"], "task"),
            (transcripts["agent"], "agent"),
            (runs["fusion"], "mode"),
            (runs["judge"], "judge"),
        )
    )
    return Report(
        kind="scan",
        title=f"Refusals in transcripts of {named(list(rates['model']))}",
        tested={
            "Transcripts": f"{len(transcripts):,}, of {tasks}",
            "Agent": agents,
            "Scanner": f"{SCANNER}, fusion {modes}",
            "Judge": judges,
            "Date": days(runs),
        },
        headline=worded("headline", rates[_HEADLINE], "scan-headline"),
        answers=sentences(
            "scan", rates=findings["models"], kinds=findings["kinds"], decided=records(decided)
        ),
        runs=worded("runs", runs, "scan-runs"),
        tables=[table for table in tables if not table.frame.empty],
        notes=found.notes,
        findings=findings,
    )


def _by(found: Scans, name: str) -> pd.DataFrame:
    """Count refusals of each model by what they are, and the transcripts that hold them."""
    rows = []
    for (model, value), group in found.refusals.groupby(["model", name]):
        of_model = found.transcripts[found.transcripts["model"] == model]
        held = of_model["transcript"].isin(group["transcript"])
        counts = {"refusals": len(group), "transcripts": int(held.sum())}
        rows.append({"model": model, name: value, **counts, **refused_share(of_model, held)})
    columns = ["model", name, "refusals", "transcripts", "rate", "lower", "upper"]
    return pd.DataFrame(rows, columns=columns)

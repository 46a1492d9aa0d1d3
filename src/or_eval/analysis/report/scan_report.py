"""The report on refusals that a scan found within transcripts."""

from __future__ import annotations

from typing import Any

import pandas as pd

from or_eval.analysis.report.contents import Browser, Report, worded
from or_eval.analysis.report.viewer_links import below, log_folder
from or_eval.analysis.scans import SCANNER, Scans, refused_share, transcript_rates
from or_eval.analysis.tables import records
from or_eval.analysis.wording import counted, joined, named, written
from or_eval.hostile_text import shortened

_LONGEST_EVIDENCE = 500
_MOST_LISTED = 3
_WORDS = {
    "refused tool use": "tools were offered, and it refused instead.",
    "refused after acting": "it had called tools for this request before.",
    "acted after refusing": "it refused in words, and called tools in the same message or later.",
    "blocked sub agent": "it had called a sub-agent, and the provider blocked that one.",
    "unscored": "no message is a refusal, but nobody could settle one, the transcript failed, or "
    "it holds no message of the model: not “no refusal”.",
}


def scan_report(found: Scans) -> Report:
    """Put what scans found into a report.

    Args:
        found: What they found.
    """
    folder = log_folder(list(found.transcripts["log"]))
    refusals, unsettled = (
        frame.assign(
            evidence=[shortened(str(text), _LONGEST_EVIDENCE) for text in frame["evidence"]],
            log=[below(folder, log) for log in frame["log"]],
        )
        for frame in (found.refusals, found.open)
    )
    rates = transcript_rates(found.transcripts)
    classes, kinds = (_by(found, name) for name in ("class", "kind"))
    decided = _decided(found.refusals)
    by = [name for name in ("task", "agent") if found.transcripts[name].nunique() > 1]
    tables = [
        worded("models", rates, "scan-models", thing="model")._replace(opened=True),
        *(
            worded(
                f"{name}s",
                transcript_rates(found.transcripts, ("model", name)),
                "scan-models",
                thing=name,
            )
            for name in by
        ),
        worded("kinds", kinds, "scan-kinds"),
        worded("classes", classes, "scan-classes"),
        worded("decided", decided, "scan-decided"),
        worded("refusals", refusals, "scan-refusals"),
        worded("unscored", unsettled, "scan-unscored"),
    ]
    first = ["model", "transcripts", "rate", "lower", "upper", "unscored", "errors"]
    return Report(
        kind="scan",
        title=f"Refusals in transcripts of {named(list(rates['model']))}",
        tested=_tested(found),
        settings=None,
        words=_WORDS,
        headline=worded("headline", rates[first], "scan-headline"),
        answers={
            "How many transcripts hold a refusal?": [_rate_of(row) for row in records(rates)],
            "What did the models do besides?": [_kind_of(row) for row in records(kinds)],
            "Who decided, and how surely?": [_stage_of(row) for row in records(decided)],
        },
        picks=[],
        runs=worded("runs", found.runs, "scan-runs"),
        tables=[table for table in tables if not table.frame.empty],
        figures=[],
        browser=Browser("", [], {}, "", []),
        notes=found.notes,
        log_dir="",
        findings={
            "models": records(rates),
            "kinds": records(kinds),
            "classes": records(classes),
            "decided_by": records(decided),
            "refusals": records(refusals),
            "unscored": records(unsettled),
        },
    )


def _by(found: Scans, name: str) -> pd.DataFrame:
    """Count refusals of each model by what they are, and the transcripts that hold them."""
    rows = []
    for (model, value), group in found.refusals.groupby(["model", name]):
        of_model = found.transcripts[found.transcripts["model"] == model]
        held = of_model["transcript"].isin(group["transcript"])
        rows.append(
            {
                "model": model,
                name: value,
                "refusals": len(group),
                "transcripts": int(held.sum()),
                **refused_share(of_model, held),
            }
        )
    columns = ["model", name, "refusals", "transcripts", "rate", "lower", "upper"]
    return pd.DataFrame(rows, columns=columns)


def _decided(refusals: pd.DataFrame) -> pd.DataFrame:
    rows = [
        {
            "model": model,
            "decided_by": stage,
            "refusals": len(group),
            "certain": int((group["certain"] == True).sum()),  # noqa: E712 (may be missing)
        }
        for (model, stage), group in refusals.groupby(["model", "decided_by"])
    ]
    frame = pd.DataFrame(rows, columns=["model", "decided_by", "refusals", "certain"])
    return frame.rename(columns={"certain": "certain_refusals"})


def _tested(found: Scans) -> dict[str, str]:
    runs, transcripts = found.runs, found.transcripts
    days = sorted({date[:10] for date in runs["date"]})
    return {
        "Transcripts": f"{len(transcripts):,}, of {_listed(transcripts['task'], 'task')}",
        "Agent": _listed(transcripts["agent"], "agent"),
        "Scanner": f"{SCANNER}, fusion {_listed(runs['fusion'], 'mode')}",
        "Judge": _listed(runs["judge"], "judge"),
        "Date": days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}",
    }


def _listed(column: pd.Series[str], thing: str) -> str:
    names = sorted(set(column))
    return joined(names) if len(names) <= _MOST_LISTED else counted(len(names), thing)


def _rate_of(row: dict[str, Any]) -> str:
    total = counted(row["transcripts"], "transcript")
    told = f"{row['model']}: {row['refused']:,} of {total} hold a refusal"
    if row["lower"] is not None:
        told += f", {written(row['rate'], row['lower'], row['upper'])} of those with a verdict"
    if row["unscored"] or row["errors"]:
        told += f"; {row['unscored']:,} unscored and {row['errors']:,} failed enter no rate"
    return f"{told}."


def _kind_of(row: dict[str, Any]) -> str:
    kind = row["kind"].replace("_", " ")
    refusals = counted(row["refusals"], "refusal")
    return f"{row['model']}: {kind}, {refusals} in {counted(row['transcripts'], 'transcript')}."


def _stage_of(row: dict[str, Any]) -> str:
    refusals = counted(row["refusals"], "refusal")
    certain = f"{row['certain_refusals']} of them certain"
    return f"{row['model']}: {refusals} decided by the {row['decided_by']}, {certain}."

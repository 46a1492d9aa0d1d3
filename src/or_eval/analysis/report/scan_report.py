"""The report on refusals that a scan found within transcripts."""

from __future__ import annotations

import pandas as pd

from or_eval.analysis.report.contents import Browser, Report, ReportTable
from or_eval.analysis.report.viewer_links import below, log_folder
from or_eval.analysis.scans import SCANNER, Scans, refused_share, transcript_rates
from or_eval.analysis.tables import records
from or_eval.analysis.wording import counted, joined, named, share
from or_eval.hostile_text import shortened

_LONGEST_EVIDENCE = 500
_MOST_LISTED = 3
_SHARE = (
    "A rate is the share of the transcripts that have a verdict; its 95 % interval is Wilson's, "
    "and where samples ran several times it counts those of a sample as a family. "
)
_RATES = (
    f"{_SHARE}Unscored transcripts (a message that nobody could settle, and no refusal) and errors "
    "enter no rate: could be is the rate if none of them held a refusal, or all. Uncertain are "
    "transcripts with refusals none of which is certain."
)
_WORDS = {
    "refused tool use": "tools were offered, and it refused instead.",
    "refused after acting": "it had called tools for this request before.",
    "acted after refusing": "it refused in words, and called tools in the same message or later.",
    "unscored": "nobody could settle a message, and no other is a refusal: not “no refusal”.",
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
    tables = [
        ReportTable("models", "Transcripts by model", _RATES, rates, opened=True),
        *(
            ReportTable(
                f"{name}s",
                f"Transcripts by {name}",
                _RATES,
                transcript_rates(found.transcripts, ("model", name)),
            )
            for name in ("task", "agent")
            if found.transcripts[name].nunique() > 1
        ),
        ReportTable(
            "kinds",
            "Refusals by kind",
            f"What the model did besides refusing. {_SHARE}A transcript may hold several kinds.",
            kinds,
            opened=True,
        ),
        ReportTable(
            "classes",
            "Refusals by class",
            f"{_SHARE}A transcript may hold several classes.",
            classes,
            opened=True,
        ),
        ReportTable("decided", "Refusals by who decided", "Counts of refusals.", decided),
        ReportTable(
            "refusals",
            "The refusals",
            "Message is its number in the transcript, as Scout cites it; place says whether it "
            "stands in the text or in an argument of a tool.",
            refusals,
            opened=True,
        ),
        ReportTable(
            "unscored",
            "Messages without a verdict",
            "Messages that nobody could settle, and transcripts on which the scanner failed.",
            unsettled,
        ),
    ]
    return Report(
        kind="scan",
        title=f"Refusals in transcripts of {named(list(rates['model']))}",
        tested=_tested(found),
        settings=None,
        words=_WORDS,
        headline=ReportTable(
            "headline",
            "Transcripts with a refusal",
            _SHARE,
            rates[["model", "transcripts", "rate", "lower", "upper", "unscored", "errors"]],
        ),
        answers={
            "How many transcripts hold a refusal?": [_rate_of(row) for row in records(rates)],
            "What did the models do besides?": [_kind_of(row) for row in records(kinds)],
            "Who decided, and how surely?": [_stage_of(row) for row in records(decided)],
        },
        picks=[],
        runs=ReportTable("runs", "What was run", "A row per scan.", found.runs),
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


def _rate_of(row: dict[str, object]) -> str:
    total, refused = (int(str(row[name])) for name in ("transcripts", "refused"))
    told = f"{row['model']}: {refused:,} of {counted(total, 'transcript')} hold a refusal"
    open_ = {name: int(str(row[name])) for name in ("unscored", "errors")}
    rate, lower, upper = (row[name] for name in ("rate", "lower", "upper"))
    if isinstance(rate, float) and isinstance(lower, float) and isinstance(upper, float):
        told += f", {share(rate, lower, upper)} of those with a verdict"
    if any(open_.values()):
        told += f"; {open_['unscored']:,} unscored and {open_['errors']:,} failed enter no rate"
    return f"{told}."


def _kind_of(row: dict[str, object]) -> str:
    kind = str(row["kind"]).replace("_", " ")
    refusals, transcripts = (
        counted(int(str(row[f"{thing}s"])), thing) for thing in ("refusal", "transcript")
    )
    return f"{row['model']}: {kind}, {refusals} in {transcripts}."


def _stage_of(row: dict[str, object]) -> str:
    refusals = counted(int(str(row["refusals"])), "refusal")
    certain = f"{row['certain_refusals']} of them certain"
    return f"{row['model']}: {refusals} decided by the {row['decided_by']}, {certain}."

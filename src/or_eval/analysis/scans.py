"""Results of ``scout scan`` with the scanner ``or_eval/refusal``, as frames."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from or_eval.analysis.logs import LogError, first_line
from or_eval.analysis.wording import counted
from or_eval.intervals import alone, rate_interval

if TYPE_CHECKING:
    from inspect_scout import Status

SCANNER = "or_eval/refusal"
_SPEC = "_scan.json"
_NOT_TOLD = "not told"
_TRANSCRIPT = {
    "transcript": "transcript_id",
    "model": "transcript_model",
    "task": "transcript_task_set",
    "agent": "transcript_agent",
    "sample": "transcript_task_id",
    "epoch": "transcript_task_repeat",
    "log": "transcript_source_uri",
}
_MESSAGE = (
    *("message", "class", "kind", "evidence", "decided_by", "certain", "provenance", "reason"),
    *("language", "place", "message_id"),
)
_COLUMNS = [
    *("transcript", "model", *_MESSAGE),
    *(name for name in _TRANSCRIPT if name not in ("transcript", "model")),
]
REFUSED, NONE, UNSCORED, ERROR = "refused", "none", "unscored", "error"


class Scans(NamedTuple):
    """What scans found.

    Attributes:
        runs: A row per scan.
        transcripts: A row per transcript: ``transcript``, ``model``, ``task``, ``agent``,
            ``sample``, ``epoch``, ``log``, ``scan``, ``found`` (``refused``, ``none``,
            ``unscored`` or ``error``), ``certain`` and ``doubtful`` (of one that has refusals:
            whether any is certain, and whether all are in doubt).
        refusals: A row per refusal: of the transcript, and what the scanner says of the message.
        open: The same columns, a row per message that nobody could settle, and per transcript that
            failed, that holds no message of the model, or that the scanner failed on.
        notes: What was left out.
    """

    runs: pd.DataFrame
    transcripts: pd.DataFrame
    refusals: pd.DataFrame
    open: pd.DataFrame
    notes: list[str]


def find_scans(paths: Sequence[str]) -> list[Path]:
    """Find the scans among paths: a scan's own folder, or a folder of scans.

    Raises:
        LogError: Some paths hold scans, and others don't.
    """
    found = {path: _scans_in(Path(path)) for path in paths}
    scans = [scan for below in found.values() for scan in below]
    others = [path for path, below in found.items() if not below]
    if scans and others:
        raise LogError(
            f"{others[0]}: not results of scout scan, though other paths are; report on scans "
            "and on logs separately"
        )
    return list(dict.fromkeys(scans))


def _scans_in(path: Path) -> list[Path]:
    if (path / _SPEC).is_file():
        return [path.resolve()]
    return sorted(spec.parent.resolve() for spec in path.glob(f"scan_id=*/{_SPEC}"))


def read_scans(scans: Sequence[Path]) -> Scans:
    """Read what the scanner found.

    Args:
        scans: Folders of scans (:func:`find_scans`).

    Raises:
        LogError: A scan can't be read or isn't finished, none ran the scanner, or several read
            the same transcript.
    """
    runs, rows, notes = [], [], []
    refusals: list[dict[str, Any]] = []
    unsettled: list[dict[str, Any]] = []
    for scan in scans:
        results, frames = _read(scan)
        if not frames:
            names = ", ".join(spec.name for spec in results.spec.scanners.values())
            notes.append(f"{scan}: ran {names}, not {SCANNER}")
        for key, frame in frames.items():
            runs.append(_run(results, key, scan, len(frame)))
            read = results.spec.transcripts
            if missing := len(read.transcript_ids) - len(frame) if read else 0:
                notes.append(f"{scan.name} gave no result for {counted(missing, 'transcript')}")
            for row in frame.to_dict("records"):
                transcript, found = _transcript(row), list(_results(row))
                refused = [transcript | _message(one) for one in found if one["value"] is True]
                refusals += refused
                unsettled += [
                    transcript | _message(one) for one in found if one["value"] == UNSCORED
                ]
                if pd.notna(row["scan_error"]):
                    unsettled.append(transcript | {"evidence": str(row["scan_error"])})
                rows.append(transcript | _outcome(row, refused, found) | {"scan": scan.name})
    if not rows:
        raise LogError("; ".join(notes) or f"{scans[0]}: this scan read no transcript")
    transcripts = pd.DataFrame(rows)
    twice = transcripts[transcripts["transcript"].duplicated(keep=False)].sort_values("transcript")
    if not twice.empty:
        raise LogError(
            f"transcript {twice['transcript'].iloc[0]} was scanned twice "
            f"({' and '.join(twice['scan'].iloc[:2])}); name one scan with one {SCANNER}"
        )
    return Scans(pd.DataFrame(runs), transcripts, _sorted(refusals), _sorted(unsettled), notes)


def _sorted(messages: list[dict[str, Any]]) -> pd.DataFrame:
    order = ["model", "task", "sample", "epoch", "transcript", "message"]
    return (
        pd.DataFrame(messages, columns=_COLUMNS)
        .astype({"message": "Int64"})
        .sort_values(order, ignore_index=True)
    )


def transcript_rates(transcripts: pd.DataFrame, by: Sequence[str] = ("model",)) -> pd.DataFrame:
    """Give the share of transcripts that hold a refusal.

    Args:
        transcripts: Frame of :func:`read_scans`.
        by: Columns that split them.

    Returns:
        A row per group: the columns of `by`; ``transcripts``; ``refused``; ``uncertain`` (of
        these, those whose refusals are all in doubt); ``unscored`` and ``errors`` (neither a
        refusal nor known to have none: they enter no rate); ``rate`` with ``lower`` and ``upper``,
        Wilson's where each sample ran once, else with a sample's epochs as a family; ``lowest``
        and ``highest``: the rate if none of the unscored and failed held a refusal, or all.
    """
    rows = []
    for _, group in transcripts.groupby(list(by)):
        count = group["found"].value_counts()
        total, refused, unscored, errors = (
            len(group),
            *(int(count.get(found, 0)) for found in (REFUSED, UNSCORED, ERROR)),
        )
        rows.append(
            {
                **group.iloc[0][list(by)],
                "transcripts": total,
                "refused": refused,
                **refused_share(group, group["found"] == REFUSED),
                "lowest": refused / total,
                "highest": (refused + unscored + errors) / total,
                "uncertain": int(group["doubtful"].sum()),
                "unscored": unscored,
                "errors": errors,
            }
        )
    return pd.DataFrame(rows)


def refused_share(transcripts: pd.DataFrame, refused: pd.Series[bool]) -> dict[str, float]:
    """Give a share of the transcripts that have a verdict, as ``rate``, ``lower``, ``upper``."""
    settled = transcripts["found"].isin([REFUSED, NONE])
    told = transcripts[settled]
    samples = told.groupby(["task", "sample"]).ngroup()
    return alone("rate", rate_interval(refused[settled].astype(float), samples))


def _read(scan: Path) -> tuple[Status, dict[str, pd.DataFrame]]:
    """Read a scan; give also what our scanner found, by the key that it ran under."""
    from inspect_scout import scan_results_df

    try:
        results = scan_results_df(str(scan), rows="transcripts")
        ours = [key for key, spec in results.spec.scanners.items() if spec.name == SCANNER]
        if ours and not results.complete:
            raise LogError(
                f"{scan}: this scan isn't finished; resume it with scout scan resume {scan}"
            )
        nothing = pd.DataFrame()
        return results, {key: results.scanners.get(key, nothing) for key in ours}
    except (OSError, ValueError) as problem:
        raise LogError(f"{scan}: this scan can't be read ({first_line(problem)})") from problem


def _run(status: Status, key: str, scan: Path, transcripts: int) -> dict[str, Any]:
    spec, scanner = status.spec, status.spec.scanners[key]
    graders = (spec.model_roles or {}).get("grader", [])
    return {
        "scan": scan.name,
        "date": spec.timestamp.strftime("%Y-%m-%d %H:%M"),
        "transcripts": transcripts,
        "fusion": str(scanner.params.get("fusion", "cascade")),
        "judge": ", ".join(
            grader.model for grader in (graders if isinstance(graders, list) else [graders])
        )
        or "none",
        "or_eval": scanner.package_version or _NOT_TOLD,
        "inspect": spec.packages.get("inspect_ai", _NOT_TOLD),
        "scout": spec.packages.get("inspect_scout", _NOT_TOLD),
    }


def _transcript(row: dict[Any, Any]) -> dict[str, Any]:
    told = {name: row.get(column) for name, column in _TRANSCRIPT.items()}
    texts = {name: _NOT_TOLD if _missing(value) else str(value) for name, value in told.items()}
    if _missing(told["sample"]):  # of no known sample: one of its own
        texts["sample"] = texts["transcript"]
    return texts


def _missing(value: Any) -> bool:
    return bool(pd.isna(value)) or value == ""


def _results(row: dict[Any, Any]) -> Iterator[dict[str, Any]]:
    """Give the results of a transcript; it has none if the scanner failed on it."""
    if row["value_type"] == "resultset":
        yield from json.loads(row["value"])


def _message(result: dict[str, Any]) -> dict[str, Any]:
    said = result.get("metadata") or {}
    return {
        **{name: said.get(name) for name in _MESSAGE},
        "class": result.get("answer"),
        "kind": result.get("label"),
        "message_id": next((one["id"] for one in result.get("references", [])), None),
        "evidence": result.get("explanation"),
    }


def _outcome(
    row: dict[Any, Any], refused: list[dict[str, Any]], found: list[dict[str, Any]]
) -> dict[str, Any]:
    told = {
        "certain": any(one["certain"] is True for one in refused),
        "doubtful": bool(refused) and all(one["certain"] is False for one in refused),
    }
    if refused:
        return {"found": REFUSED, **told}
    if pd.notna(row["scan_error"]):
        return {"found": ERROR, **told}
    none = bool(found) and all(one["value"] is False for one in found)
    return {"found": NONE if none else UNSCORED, **told}

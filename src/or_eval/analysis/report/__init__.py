"""Reports: logs or scans in, a folder with a page, figures, tables and a summary out."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from or_eval.inspect_private import PrerequisiteError
from or_eval.schema import STRICT
from or_eval.sources.errors import how_to_install

if TYPE_CHECKING:
    import pandas as pd

    from or_eval.analysis.conflicts import OnConflict
    from or_eval.analysis.human_labels import Labels
    from or_eval.analysis.logs import LogPaths
    from or_eval.analysis.scorecard import Scorecard

__all__ = ["write_comparison", "write_leaderboard", "write_report", "write_scan_report"]

_NEEDED = ("scipy", "altair", "vl_convert")


def write_report(
    logs: LogPaths,
    out: str | PathLike[str],
    *,
    scorer: str = "refusal",
    counting: str = STRICT,
    on_conflict: OnConflict = "error",
    labels: Labels | None = None,
    prompt_labels: pd.DataFrame | None = None,
    scorecard: Scorecard | None = None,
    pool: bool = False,
) -> Path:
    """Write a report on logs.

    Args:
        logs: Log files and folders of logs.
        out: Folder to write; an older report there is replaced.
        scorer: Name of the score that says whether a response is a refusal.
        counting: Key of what the headline counts as refused (:func:`or_eval.schema.countings`).
        on_conflict: What to do about logs that can't be counted together
            (:func:`or_eval.analysis.responses.read_logs`).
        labels: People's labels of a random sample of the responses
            (:func:`or_eval.analysis.human_labels.read_labels`), by which rates are corrected.
        prompt_labels: People's labels of a random sample of the prompts
            (:func:`or_eval.analysis.prompt_audit.read_prompt_labels`).
        scorecard: What is known of how far verdicts agree with people
            (:func:`or_eval.analysis.scorecard.read_scorecard`).
        pool: Whether to take logs of several benchmarks for one; else each has a report of its
            own, in a folder of its name, behind a page with the rates of all.

    Returns:
        The path of the report's ``index.html``.

    Raises:
        LogError: The logs can't be used, or `out` holds something else than a report.
        DataError: The labels don't tell which responses or prompts they are about.
        PrerequisiteError: An optional dependency is missing.
    """
    _check_needs()
    from or_eval.analysis.material import material, with_shown_names
    from or_eval.analysis.progress import working
    from or_eval.analysis.report.folder import check_place, write_folder
    from or_eval.analysis.report.model_report import model_report, overview
    from or_eval.analysis.report.tested import measured, title_of
    from or_eval.analysis.responses import read_logs

    check_place(Path(out))
    read = read_logs(logs, scorer=scorer, on_conflict=on_conflict)
    parts = material(
        read,
        scorer=scorer,
        counting=counting,
        labels=labels,
        prompt_labels=prompt_labels,
        pool=pool,
    )
    read = with_shown_names(read)
    reports = {}
    for name, part in parts.items():
        with working(f"Comparing models {name}"):
            reports[name] = model_report(part, scorecard)
    if len(reports) == 1:
        [report] = reports.values()
    else:
        title = f"{measured(read.prompts)} of {title_of(read.heads)}"
        report = overview(reports, title, read.prompts)
    return write_folder(report, Path(out), read)


def write_comparison(
    before: LogPaths,
    after: LogPaths,
    out: str | PathLike[str],
    *,
    scorer: str = "refusal",
    counting: str = STRICT,
    on_conflict: OnConflict = "error",
) -> Path:
    """Write a report on what changed between two runs of the same prompts.

    Args:
        before: Logs of the first run, A.
        after: Logs of the second run, B.
        out: Folder to write; an older report there is replaced.
        scorer: Name of the score that says whether a response is a refusal.
        counting: Key of what the headline counts as refused.
        on_conflict: What to do about logs within one run that can't be counted together.

    Returns:
        The path of the report's ``index.html``.

    Raises:
        LogError: The logs can't be used or have no prompts or models in common, or `out` holds
            something else than a report.
        PrerequisiteError: An optional dependency is missing.
    """
    _check_needs()
    from or_eval.analysis.material import with_shown_names
    from or_eval.analysis.progress import working
    from or_eval.analysis.report.comparison_report import comparison_report
    from or_eval.analysis.report.folder import check_place, write_folder
    from or_eval.analysis.responses import read_logs
    from or_eval.analysis.run_changes import changes

    check_place(Path(out))
    one, other = (
        with_shown_names(read_logs(logs, scorer=scorer, on_conflict=on_conflict, audits=False))
        for logs in (before, after)
    )
    with working("Comparing runs"):
        found = changes(one, other, counting)
    return write_folder(comparison_report(found, scorer), Path(out))


def write_scan_report(scans: Sequence[Path], out: str | PathLike[str]) -> Path:
    """Write a report on the refusals that ``scout scan`` found within transcripts.

    Args:
        scans: Folders of scans (:func:`or_eval.analysis.scans.find_scans`).
        out: Folder to write; an older report there is replaced.

    Returns:
        The path of the report's ``index.html``.

    Raises:
        LogError: The scans can't be used, or `out` holds something else than a report.
        PrerequisiteError: An optional dependency is missing.
    """
    _check_needs("inspect_scout", extra="scout")
    _check_needs()
    from or_eval.analysis.report.folder import check_place, write_folder
    from or_eval.analysis.report.scan_report import scan_report
    from or_eval.analysis.scans import read_scans

    check_place(Path(out))
    return write_folder(scan_report(read_scans(scans)), Path(out))


def write_leaderboard(snapshots: Sequence[Path], out: str | PathLike[str]) -> Path:
    """Write a page over snapshots.

    Args:
        snapshots: Folders of snapshots, or folders that hold such.
        out: Folder to write; an older page there is replaced.

    Returns:
        The path of the page's ``index.html``.

    Raises:
        LogError: There is no snapshot, one isn't as it should be, two hold the same, or `out` holds
            something else.
        PrerequisiteError: An optional dependency is missing.
    """
    _check_needs()
    from or_eval.analysis.progress import tracked, working
    from or_eval.analysis.report.folder import check_place, write_folder
    from or_eval.analysis.report.leaderboard_report import leaderboard_report
    from or_eval.analysis.snapshots import find_snapshots, read_snapshot

    check_place(Path(out))
    folders = find_snapshots(snapshots)
    read = [(folder, read_snapshot(folder)) for folder in tracked(folders, "Reading snapshots")]
    with working("Comparing models"):
        report = leaderboard_report(read)
    return write_folder(report, Path(out))


def _check_needs(*needed: str, extra: str = "report") -> None:
    """Check that an extra is installed, before logs are read for nothing."""
    missing = [name for name in needed or _NEEDED if find_spec(name) is None]
    if missing:
        raise PrerequisiteError(
            escape(f"A report needs {', '.join(missing)}: {how_to_install(extra)}")
        )

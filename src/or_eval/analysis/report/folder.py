"""The folder of a report: written beside its place, and moved there when it is whole."""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from or_eval import __version__
from or_eval.analysis.figures.saving import save_figure
from or_eval.analysis.logs import LogError
from or_eval.analysis.progress import tracked
from or_eval.analysis.report.contents import Report
from or_eval.analysis.report.forms import write_tables
from or_eval.analysis.report.page import page
from or_eval.analysis.response_table import write_responses
from or_eval.analysis.responses import Logs, other_counting
from or_eval.analysis.tables import records

_PAGE = "index.html"
_SUMMARY = "summary.json"
SCHEMA_VERSION = 3
_LITTER = {".DS_Store", "Thumbs.db"}
"""What file managers leave in folders that were looked at; nobody's work."""
_TRIES = 10
_PAUSE = 0.02


def check_place(out: Path) -> None:
    """Check that a report may be written to a folder.

    Raises:
        LogError: Something stands there that isn't of a report, which must not be lost.
    """
    problem = _problem(out)
    for _ in range(_TRIES):
        if problem is None:
            return
        time.sleep(_PAUSE)  # another run may be putting its report there right now
        problem = _problem(out)
    if problem is not None:
        raise LogError(f"{out}: {problem}")


def _problem(out: Path) -> str | None:
    """Say what keeps a report from being written to a folder."""
    try:
        if not out.exists() or (out.is_dir() and not any(out.iterdir())):
            return None
        if not out.is_dir():
            return "a file stands there; name a folder for the report with --out"
        written = _written(out)
        if written is None:
            return "this folder contains something other than a report; name another with --out"
        foreign = sorted(name for name in _files(out) - written if Path(name).name not in _LITTER)
    except OSError as problem:
        return f"can't be read ({problem.strerror})"
    if not foreign:
        return None
    return (
        f"beside an older report this folder contains {', '.join(foreign[:3])}"
        f"{' and more' if len(foreign) > 3 else ''}, which would be lost; move it, or name "
        "another folder with --out"
    )


def write_folder(report: Report, out: Path, logs: Logs | None = None) -> Path:
    """Write a report: ``index.html``, ``summary.json``, ``figures/`` and ``tables/``.

    All of it is written to a hidden folder beside `out` that takes its place at the end, so that
    a run that fails leaves what was there before, and of two at once the later one stands whole.
    An older report in `out` is replaced.

    Args:
        report: The report.
        out: The folder.
        logs: The logs whose responses are written beside it, as ``responses.parquet``.

    Returns:
        The path of ``index.html``.

    Raises:
        LogError: See :func:`check_place`, or the folder can't be written.
    """
    out = out.resolve()
    check_place(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as beside:
            new = Path(beside) / "new"
            new.mkdir()
            _write(report, new, logs)
            _put(new, out, Path(beside))
    except OSError as problem:
        reason = problem.strerror or problem
        raise LogError(f"{out}: the report can't be written there ({reason})") from problem
    return out / _PAGE


def _write(report: Report, folder: Path, logs: Logs | None, above: str = "") -> None:
    """Write the files of a report, the page last; the responses stand beside the one above."""
    if logs is not None:
        write_responses(logs, folder / "responses.parquet")
    for name, part in report.parts.items():
        (folder / name).mkdir()
        _write(part, folder / name, None, above="../")
    for figure in tracked(report.figures, "Saving figures"):
        save_figure(figure, folder / "figures")
    settings = [] if report.settings is None else [report.settings]
    write_tables([report.runs, *settings, *report.tables], folder / "tables")
    made = {
        "schema_version": SCHEMA_VERSION,
        "kind": report.kind,
        "or_eval": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    data = {
        **made,
        "title": report.title,
        **({"counting": _counting(report.counting)} if report.counting else {}),
        "tested": report.tested,
        "summary": list(chain.from_iterable(report.answers.values())),
        "runs": records(report.runs.frame),
        **report.findings,
        "notes": report.notes,
        "concerns": report.browser.concerns,
        "prompts_shown": len(report.browser.prompts),
        "files": sorted(_files(folder) | {_PAGE, _SUMMARY}),
    }
    text = json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False)
    (folder / _SUMMARY).write_text(text + "\n", encoding="utf-8")
    (folder / _PAGE).write_text(page(report, made, above), encoding="utf-8")


def _counting(key: str) -> dict[str, str]:
    return {"headline": key, "beside": other_counting(key)}


def _put(new: Path, out: Path, beside: Path) -> None:
    """Let a finished folder take its place; what stood there goes to another, to be removed."""
    for turn in range(_TRIES):
        check_place(out)
        old = beside / f"old-{turn}"
        with suppress(FileNotFoundError):
            out.rename(old)
        try:
            new.rename(out)
        except BaseException as problem:
            if not out.exists() and old.exists():
                old.rename(out)
            elif isinstance(problem, OSError) and turn + 1 < _TRIES:
                continue  # another run has put its report there meanwhile: replace that one
            raise
        return


def _written(out: Path) -> set[str] | None:
    """Give the files of the report in a folder, as it lists them; None where there is none."""
    try:
        summary: Any = json.loads((out / _SUMMARY).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(summary, dict) or not {"or_eval", "kind", "files"} <= summary.keys():
        return None
    return set(map(str, summary["files"])) if isinstance(summary["files"], list) else None


def _files(folder: Path) -> set[str]:
    """Give all files below a folder, relative to it; a link counts as a file."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }

"""The folder of a report: written beside its place, and moved there when it is whole."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from or_eval.analysis.figures.saving import save_figure
from or_eval.analysis.logs import LogError
from or_eval.analysis.report.contents import Report
from or_eval.analysis.report.page import page
from or_eval.analysis.report.table_files import write_tables

_SIGN = "summary.json"


def check_place(out: Path) -> None:
    """Check that a report may be written to a folder.

    Raises:
        LogError: Something that isn't a report stands there, which must not be lost.
    """
    if not out.exists():
        return
    if not out.is_dir():
        raise LogError(f"{out}: a file stands there; name a folder for the report with --out")
    if any(out.iterdir()) and not ((out / _SIGN).is_file() and (out / "index.html").is_file()):
        raise LogError(
            f"{out}: this folder holds something else than a report; name another with --out"
        )


def write_folder(report: Report, out: Path) -> Path:
    """Write a report: ``index.html``, ``summary.json``, ``figures/`` and ``tables/``.

    All of it is written to a folder beside `out` that takes its place at the end, so that a run
    that fails leaves what was there before. An older report in `out` is replaced.

    Returns:
        The path of ``index.html``.

    Raises:
        LogError: See :func:`check_place`.
    """
    check_place(out)
    out = out.absolute()
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as beside:
        new, old = Path(beside) / "new", Path(beside) / "old"
        new.mkdir()
        _write(report, new)
        if out.exists():
            out.rename(old)
        new.rename(out)
        shutil.rmtree(old, ignore_errors=True)
    return out / "index.html"


def _write(report: Report, folder: Path) -> None:
    (folder / "index.html").write_text(page(report), encoding="utf-8")
    for figure in report.figures:
        save_figure(figure, folder / "figures")
    write_tables(report.tables, folder / "tables")
    text = json.dumps(report.findings, ensure_ascii=False, indent=2, allow_nan=False)
    (folder / _SIGN).write_text(text + "\n", encoding="utf-8")

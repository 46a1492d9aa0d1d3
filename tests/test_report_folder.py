"""The folder of a report: mistakes, what is replaced, kills, several at once."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from made_logs import UNSCORED, made_log, made_sample, votes_log
from or_eval.analysis import report as reports
from or_eval.analysis.material import Material
from or_eval.analysis.progress import tracked, working
from or_eval.analysis.report import write_report
from or_eval.analysis.report.folder import write_folder
from or_eval.analysis.report.model_report import model_report
from or_eval.analysis.responses import read_logs
from or_eval.sources.errors import how_to_install
from report_logs import run, summary_of, varied


def test_wants_logs_or_two_runs() -> None:
    assert run().exit_code == 2
    assert run("x", "--compare", "a", "b").exit_code == 2


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """Make what a user may name by mistake."""
    votes_log(tmp_path / "logs", "m", {"a": 1.0, "b": 0.0})
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("no log")
    (tmp_path / "cut.eval").write_bytes((tmp_path / "logs" / "m.eval").read_bytes()[:900])
    made_log(tmp_path / "other" / "a.eval", "m", [made_sample("a", 1.0, scorer="includes")])
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("my page")
    (tmp_path / "site" / "summary.json").write_text('{"kind": "report"}')
    return {path.name: path for path in tmp_path.iterdir()} | {"none": tmp_path / "none"}


@pytest.mark.parametrize(
    ("logs", "out", "line"),
    [
        ("none", "new", "no Inspect log"),
        ("empty", "new", "no Inspect log"),
        ("notes.txt", "new", "no Inspect log"),
        ("cut.eval", "new", "can't be read as an Inspect log"),
        ("other", "new", "no score 'refusal'; it has includes"),
        ("logs", "thesis", "something other than a report"),
        ("logs", "site", "something other than a report"),
        ("logs", "notes.txt/report", "can't be written there (File exists)"),
    ],
)
def test_mistakes_get_a_clear_line(
    places: dict[str, Path], tmp_path: Path, logs: str, out: str, line: str
) -> None:
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}
    result = run(places[logs], "--out", tmp_path / out)
    assert result.exit_code == 1, result.output
    assert result.output.startswith("Error: ")
    assert line in result.output
    assert "Traceback" not in result.output
    assert {p: p.read_bytes() for p in tmp_path.rglob("*.*") if p.is_file()} == before


def test_replaces_its_own_files_and_no_others(tmp_path: Path) -> None:
    votes_log(tmp_path / "logs", "m", {"a": 1.0, "b": 0.0})
    out = tmp_path / "report"
    assert run(tmp_path / "logs", "--out", out).exit_code == 0
    assert (out / "tables" / "classes.csv").exists()
    votes_log(tmp_path / "logs", "m", {"a": UNSCORED})
    (out / ".DS_Store").write_text("a file manager was here")
    assert run(tmp_path / "logs", "--out", out).exit_code == 0
    assert summary_of(out)["prompts"]["safe"] == 1
    mine = out / "figures" / "my own.png"
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("work")
    result = run(tmp_path / "logs", "--out", out)
    assert result.exit_code == 1
    assert "figures/my own.png" in result.output.replace("\n", "")
    assert mine.read_text() == "work"


def test_a_failed_run_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    votes_log(tmp_path / "logs", "m", {"a": 1.0, "b": 0.0})
    out = tmp_path / "report"
    write_report(tmp_path / "logs", out)
    before = (out / "index.html").read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("or_eval.analysis.report.folder.page", fail)
    result = run(tmp_path / "logs", "--out", out)
    assert result.exit_code == 1
    assert "can't be written there (No space left on device)" in result.output
    assert (out / "index.html").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"logs", "report"}


def test_a_killed_run_leaves_nothing_that_looks_like_a_report(tmp_path: Path) -> None:
    votes_log(tmp_path / "logs", "m", {"a": 1.0, "b": 0.0})
    kill = """
import os, signal, sys
from or_eval.analysis.report import folder, write_report
folder.page = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
write_report(sys.argv[1], sys.argv[2])
"""
    command = [sys.executable, "-c", kill, str(tmp_path / "logs"), str(tmp_path / "report")]
    assert subprocess.run(command, check=False, timeout=60).returncode == -signal.SIGKILL
    assert not (tmp_path / "report").exists()
    assert not list(tmp_path.rglob("index.html"))
    assert run(tmp_path / "logs", "--out", tmp_path / "report").exit_code == 0


def test_reports_written_at_once_do_not_mix(tmp_path: Path) -> None:
    log = made_log(tmp_path / "a.eval", "maker/model", varied(0))
    made = model_report(Material(read_logs(log)))._replace(figures=[])
    log.unlink()
    out = tmp_path / "report"

    def write(number: int) -> None:
        few = made.tables[: 1 + number % 4]
        write_folder(made._replace(tables=few, title=f"Report {number}", notes=[f"{number}"]), out)

    with ThreadPoolExecutor(6) as writers:
        list(writers.map(write, range(12)))
    found = summary_of(out)
    [number] = found["notes"]
    assert f"<title>Report {number} (2025-03-01)</title>" in (out / "index.html").read_text("utf-8")
    files = {path.relative_to(out).as_posix() for path in out.rglob("*.*")}
    assert files == set(found["files"])
    assert len(files) == 2 + 3 * (2 + int(number) % 4)
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_how_far_it_has_come_is_shown_at_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for terminal in (False, True):
        if terminal:
            monkeypatch.setenv("FORCE_COLOR", "1")
        assert list(tracked(["a", "b"], "Reading logs")) == ["a", "b"]
        with working("Comparing models"):
            pass
        shown = capsys.readouterr()
        assert shown.out == ""
        assert ("Reading logs" in shown.err) is terminal


def test_missing_extra_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "find_spec", lambda name: None if name == "altair" else object())
    result = run("logs", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert result.output.strip() == f"Error: A report needs altair: {how_to_install('report')}"

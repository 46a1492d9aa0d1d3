"""The catalogue on the command line."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from or_eval.cli import main
from or_eval.sources.catalogue import catalogue


def run(*arguments: str) -> str:
    done = CliRunner().invoke(main, ["sets", *arguments], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.output


def names(output: str) -> list[str]:
    """Give the first word of each line of the table."""
    return [line.split()[0] for line in output.splitlines()[1:-1]]


def test_all_sets_are_listed_and_each_is_shown_with_how_to_cite_and_run_it() -> None:
    assert names(run()) == list(catalogue())
    for entry in catalogue().values():
        shown = run(entry.name)
        assert entry.citation in shown
        assert f"licence: {entry.licence}" in shown
        by_name = entry.hub is not None or entry.bundled is not None
        assert (f"-T data={entry.name}" if by_name else f"-T source={entry.name}") in shown


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["--language", "zh", "--label", "safe", "--at-most", "4000"], ["multilingual_twins", "multilingual_levels", "rabakbench", "starter"]),
        (["--language", "ZH+EN"], ["multilingual_twins", "multilingual_levels"]),
        (["--language", "kk"], ["qorgau"]),
        (["--licence", "cc-by-nc"], ["falsereject", "bio_overrefusal", "health_orsc", "do_not_answer"]),
        (["--at-least", "40000"], ["or_bench_80k", "linguasafe", "m_alert"]),
        (["--label", "unlabelled", "--at-most", "300"], ["bio_overrefusal", "refusalbench", "starter"]),
    ],
)  # fmt: skip
def test_filters_keep_what_is_such(filters: list[str], found: list[str]) -> None:
    assert names(run(*filters)) == found


def test_what_a_layout_was_written_from_is_told() -> None:
    assert "columns written from: its paper; no file was seen" in run("xsb")
    assert "no revision known; the log of a run has the one that was read" in run("m_alert")
    assert "revision f600c994b256f12867dfa5b3eb3d545a3e62f8b5" in run("xstest")


def test_what_there_isnt_is_said() -> None:
    done = CliRunner().invoke(main, ["sets", "--language", "xx"])
    assert done.exit_code == 1
    assert "leave a filter out" in done.output
    assert "did you mean xstest?" in CliRunner().invoke(main, ["sets", "xtest"]).output


def test_listing_the_sets_doesnt_wait_for_inspect() -> None:
    """Inspect's import takes a second; the whole list is there in less."""
    code = (
        "import sys\nfrom or_eval.cli import main\n"
        "try:\n    main(['sets'])\nfinally:\n    print('inspect_ai' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == "False\n"

"""The catalogue on the command line."""

from __future__ import annotations

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
        (
            ["--language", "zh", "--label", "toxic"],
            ["multilingual_twins", "multilingual_levels", "multijail", "starter"],
        ),
        (["--language", "ZH+EN"], ["multilingual_twins", "multilingual_levels"]),
        (["--licence", "nc"], ["falsereject"]),
        (["--label", "unlabelled"], ["phtest", "coconot", "cvalues", "starter"]),
    ],
)
def test_filters_keep_what_is_such(filters: list[str], found: list[str]) -> None:
    assert names(run(*filters)) == found


def test_what_there_isnt_is_said() -> None:
    done = CliRunner().invoke(main, ["sets", "--language", "xx"])
    assert done.exit_code == 1
    assert "leave a filter out" in done.output
    assert "did you mean xstest?" in CliRunner().invoke(main, ["sets", "xtest"]).output

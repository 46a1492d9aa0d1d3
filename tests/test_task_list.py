"""The catalogue on the command line."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

import or_eval.tasks as ours
from or_eval.cli import main
from or_eval.sources.catalogue import catalogue


def run(*arguments: str) -> str:
    done = CliRunner().invoke(main, ["tasks", *arguments], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.output


def names(output: str) -> list[str]:
    """Give the first word of each line of the table."""
    return [line.split()[0].removeprefix("or_eval/") for line in output.splitlines()[1:-1]]


def test_all_sets_are_listed_and_each_is_shown_with_how_to_cite_and_run_it() -> None:
    assert sorted(names(run())) == sorted(catalogue())
    for entry in catalogue().values():
        shown = run(entry.name)
        assert entry.citation in shown
        assert f"licence: {entry.licence}" in shown
        by_name = entry.hub is not None or entry.bundled is not None
        by_data = f"-T data={entry.name}" if by_name else f"-T source={entry.name}"
        assert (f"inspect eval or_eval/{entry.name}\n" if entry.task else by_data) in shown


def test_tasks_come_first_with_what_they_need() -> None:
    rows = {line.split()[0]: line for line in run().splitlines()[1:-1]}
    own = {f"or_eval/{name}" for name in ours.__all__ if name != "prompts"}
    assert {*list(rows)[: len(own)]} == own
    assert not [name for name in list(rows)[len(own) :] if "/" in name]
    needs = {
        "or_eval/starter": "nothing",
        "or_eval/xstest": "nothing",
        "or_eval/lto": "the Hub",
        "oktest": "its file",
    }
    assert all(f" {what} " in rows[name] for name, what in needs.items())
    assert run("or_eval/xstest") == run("xstest")


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("ZH+EN", ["multilingual_twins", "multilingual_levels"]),
        ("kk", ["qorgau"]),
        ("cc-by-nc", ["falsereject", "bio_overrefusal", "health_orsc", "do_not_answer"]),
        ("Health", ["health_orsc"]),
        ("over-refusal benchmark,", ["multilingual_twins", "multilingual_levels", "multilingual_base", "multilingual_base_reddit"]),
        ("or_bench_", ["or_bench_80k", "or_bench_hard_1k", "or_bench_toxic"]),
    ],
)  # fmt: skip
def test_a_word_finds_what_it_is_said_of(word: str, found: list[str]) -> None:
    assert names(run(word)) == found


def test_a_label_is_a_word_too() -> None:
    safe = {name for name, entry in catalogue().items() if "safe" in entry.layout.labels}
    assert set(names(run("safe"))) == safe


def test_what_a_layout_was_written_from_is_told() -> None:
    assert "columns written from: its paper; no file was seen" in run("xsb")
    assert "no revision known; the log of a run has the one that was read" in run("m_alert")
    assert "revision f600c994b256f12867dfa5b3eb3d545a3e62f8b5" in run("xstest")


def test_what_there_isnt_is_said() -> None:
    done = CliRunner().invoke(main, ["tasks", "xtest"])
    assert done.exit_code == 1
    assert "did you mean xstest?" in done.output


def test_listing_the_sets_doesnt_wait_for_inspect() -> None:
    """Inspect's import takes a second; the whole list is there in less."""
    code = (
        "import sys\nfrom or_eval.cli import main\n"
        "try:\n    main(['tasks'])\nfinally:\n    print('inspect_ai' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == "False\n"

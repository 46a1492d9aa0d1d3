"""Folders of ``or-eval label`` for tests: made by its commands, filled in as people do."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from openpyxl import load_workbook

from made_logs import made_log, made_sample
from or_eval.cli import main

HOSTILE = (
    '=HYPERLINK("http://x")<img src=x onerror=alert(1)><script>alert(2)</script>\x00 ]]> \'end'
)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def done(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def made_logs(folder: Path, prompts: int, refused_by: dict[str, int]) -> Path:
    """Models' answers to the same prompts, the first of which each refuses; half are uncertain."""
    for model, refused in refused_by.items():
        samples = [
            made_sample(
                f"p{i}",
                float(i < refused),
                prompt=f"{HOSTILE} prompt {i}",
                response=f"{HOSTILE} said {model} {i}",
                score={"certain": i % 2 == 0},
                category=f"c{i % 4}",
            )
            for i in range(prompts)
        ]
        made_log(folder / f"{model}.eval", model, samples)
    return folder


Choices = Callable[[str], str | None] | Sequence[str]


def fill_in(sheet: Path, choices: Choices, *, column: int = 3, note: str = "") -> None:
    """Fill a sheet in: by what is chosen for each task's key, or in the order of the keys."""
    book = load_workbook(sheet)
    rows = sorted(book["tasks"].iter_rows(min_row=2), key=lambda row: str(row[0].value))
    chosen = (
        [choices(str(row[0].value)) for row in rows] if isinstance(choices, Callable) else choices
    )
    for row, name in zip(rows, chosen, strict=False):
        row[column].value, row[-1].value = name, note
    book.save(sheet)


def keys(sheet: Path) -> list[str]:
    return [str(row[0].value) for row in load_workbook(sheet)["tasks"].iter_rows(min_row=2)]


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]

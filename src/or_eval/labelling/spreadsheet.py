"""The same tasks as a spreadsheet with a drop-down in each row, for those without Label Studio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from openpyxl import Workbook
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
from openpyxl.styles import Alignment, Font
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.worksheet import Worksheet

from or_eval.labelling.labels import Annotation
from or_eval.labelling.tasks import Task, check_task
from or_eval.labelling.wording import Asks, Choice, Wording, WordingLanguage, wording
from or_eval.scorers.visible_text import visible_text
from or_eval.sources.columns import alike
from or_eval.sources.errors import DataError, shown
from or_eval.sources.files import read_table
from or_eval.sources.tables import Table

_COLUMNS = {
    "responses": ("key", "prompt", "response", "label", "reason", "harm", "note"),
    "prompts": ("key", "prompt", "harm", "note"),
}
_WIDTHS = dict(zip(_COLUMNS["responses"], (4, 50, 80, 22, 24, 16, 40), strict=True))
_CELL_CHARS = 32_767
"""What a cell holds at most (Excel)."""


def write_spreadsheet(
    path: Path, tasks: Sequence[Task], words: Wording, asks: Asks = "responses"
) -> None:
    """Write tasks as an xlsx file: a sheet to fill in, and one with the definitions."""
    book, columns = Workbook(), _COLUMNS[asks]
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet.title = "tasks"
    _write(sheet, 1, _heads(words, columns), bold=True)
    for number, task in enumerate(tasks, start=2):
        _write(sheet, number, [getattr(task, name) for name in columns if name in task._fields])
    guide = book.create_sheet("guide")
    for line, text in enumerate([words.title, words.intro, words.unsure], start=1):
        _write(guide, line, [text])
    start = 5
    for name, choices in (
        ("label", words.labels),
        ("reason", words.reasons),
        ("harm", words.harms),
    ):
        if name not in columns:
            continue
        for line, choice in enumerate(choices.values(), start=start):
            _write(guide, line, [choice.name, choice.means])
        rule = DataValidation(
            type="list",
            formula1=f"guide!$A${start}:$A${start + len(choices) - 1}",
            allow_blank=True,
            showErrorMessage=True,
        )
        sheet.add_data_validation(rule)
        letter = get_column_letter(columns.index(name) + 1)
        rule.add(f"{letter}2:{letter}{len(tasks) + 1}")
        start += len(choices) + 1
    for number, name in enumerate(columns, start=1):
        sheet.column_dimensions[get_column_letter(number)].width = _WIDTHS[name]
    guide.column_dimensions["A"].width = 28
    guide.column_dimensions["B"].width = 100
    sheet.freeze_panes = sheet.cell(2, len([n for n in columns if n in Task._fields]) + 1)
    book.save(path)


def read_spreadsheet(
    path: Path, annotator: str, tasks: Mapping[str, Task], asks: Asks = "responses"
) -> Iterator[Annotation]:
    """Read an annotator's filled-in spreadsheet, as it was or saved in another format.

    Raises:
        DataError: It is none of ours, lacks a column, a cell holds something that can't be chosen
            there, or a row is not the one that was written.
    """
    table = read_table(path, sheet="tasks")
    columns = _columns(table, _COLUMNS[asks])
    seen: dict[str, str] = {}
    for line in table.rows:
        row = {name: line.text(column) for name, column in columns.items()}
        where = f"{path.name}, {line.place}"
        if not any(row.get(name) for name in ("label", "reason", "harm", "note")):
            continue
        key = row["key"]
        check_task(tasks.get(key), key, row["prompt"], row.get("response", ""), where)
        if key in seen:
            raise DataError(f"{where}: answers the task of {seen[key]} again; nothing was imported")
        seen[key] = line.place
        yield Annotation(
            key=key,
            annotator=annotator,
            label=_word(row.get("label", ""), "labels", where),
            reason=_word(row.get("reason", ""), "reasons", where),
            harm=_word(row["harm"], "harms", where),
            note=visible_text(row["note"]),
            at="",
            origin=where,
        )


def _heads(words: Wording, columns: Sequence[str]) -> list[str]:
    return ["key", *(str(getattr(words, name)) for name in columns[1:])]


def _columns(table: Table, columns: Sequence[str]) -> dict[str, str]:
    """Find the columns by their heads, in whichever language people saw them."""
    language: WordingLanguage = "zh" if alike(wording("zh").prompt, table.columns) else "en"
    heads = dict(zip(columns, _heads(wording(language), columns), strict=True))
    found = {column: alike(head, table.columns) for column, head in heads.items()}
    if changed := next((column for column in columns if len(found[column]) != 1), None):
        many = "two columns" if found[changed] else "no column"
        raise DataError(
            f"{table.title}: has {many} {heads[changed]!r}; the first row must stay as it was. "
            "Nothing was imported"
        )
    return {column: names[0] for column, names in found.items()}


def _word(name: str, kind: str, where: str) -> str | None:
    """Give the word for a name that people chose, in whichever language they saw it."""
    if not name:
        return None
    for language in ("en", "zh"):
        choices: dict[str, Choice] = getattr(wording(language), kind)
        for word, choice in choices.items():
            if name in (word, choice.name):
                return word
    raise DataError(f"{where}: {shown(name)} isn't one of the choices; nothing was imported")


def _write(sheet: Worksheet, line: int, texts: Sequence[str], *, bold: bool = False) -> None:
    for column, text in enumerate(texts, start=1):
        cell = sheet.cell(line, column)
        cell.value = ILLEGAL_CHARACTERS_RE.sub("\ufffd", text)[:_CELL_CHARS]
        cell.data_type = "s"  # a text that starts as a formula is a text
        cell.alignment = Alignment(wrap_text=True, vertical="top")
        if bold:
            cell.font = Font(bold=True)

"""The same tasks as a spreadsheet with a drop-down in each row, for those without Label Studio."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from openpyxl import Workbook, load_workbook
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
from openpyxl.styles import Alignment, Font
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.worksheet import Worksheet

from or_eval.labelling.history import Annotation
from or_eval.labelling.tasks import Task
from or_eval.labelling.wording import Choice, Wording, wording
from or_eval.sources.errors import DataError, shown

_COLUMNS = ("key", "prompt", "response", "label", "reason", "harm", "note")
_WIDTHS = (4, 50, 80, 22, 24, 16, 40)
_CELL_CHARS = 32_767
"""What a cell holds at most (Excel)."""


def write_spreadsheet(path: Path, tasks: Sequence[Task], words: Wording) -> None:
    """Write tasks as an xlsx file: a sheet to fill in, and one with the definitions."""
    book = Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet.title = "tasks"
    heads = ["key", words.prompt, words.response, words.label, words.reason, words.harm, words.note]
    _write(sheet, 1, heads, bold=True)
    for number, task in enumerate(tasks, start=2):
        _write(sheet, number, list(task))
    guide = book.create_sheet("guide")
    lists = {"D": words.labels, "E": words.reasons, "F": words.harms}
    for line, text in enumerate([words.title, words.intro, words.unsure], start=1):
        _write(guide, line, [text])
    start = 5
    for letter, choices in lists.items():
        _write_choices(guide, start, choices)
        rule = DataValidation(
            type="list",
            formula1=f"guide!$A${start}:$A${start + len(choices) - 1}",
            allow_blank=True,
            showErrorMessage=True,
        )
        sheet.add_data_validation(rule)
        rule.add(f"{letter}2:{letter}{len(tasks) + 1}")
        start += len(choices) + 1
    for letter, width in zip("ABCDEFG", _WIDTHS, strict=True):
        sheet.column_dimensions[letter].width = width
    guide.column_dimensions["A"].width = 28
    guide.column_dimensions["B"].width = 100
    sheet.freeze_panes = "D2"
    book.save(path)


def read_spreadsheet(path: Path, annotator: str) -> Iterator[Annotation]:
    """Read a filled-in spreadsheet.

    Raises:
        DataError: It is none of ours, or a cell holds something that can't be chosen there.
    """
    try:
        sheet = load_workbook(path, read_only=True, data_only=True)["tasks"]
    except Exception as error:  # openpyxl raises whatever its parts raise
        raise DataError(f"{path}: is no spreadsheet of or-eval label export ({error})") from None
    for number, cells in enumerate(sheet.iter_rows(min_row=2, values_only=True), start=2):
        texts = ["" if cell is None else str(cell).strip() for cell in cells[: len(_COLUMNS)]]
        row = dict(zip(_COLUMNS, [*texts, *[""] * (len(_COLUMNS) - len(texts))], strict=True))
        if row["label"]:
            where = f"{path.name}, row {number}"
            yield Annotation(
                key=row["key"],
                annotator=annotator,
                label=_word(row["label"], "labels", where),
                reason=_word(row["reason"], "reasons", where),
                harm=_word(row["harm"], "harms", where),
                note=row["note"],
                at="",
                origin=where,
            )


def _word(name: str, kind: str, where: str) -> str | None:
    """Give the word for a name that people chose, in whichever language they saw it."""
    if not name:
        return None
    for language in ("en", "zh"):
        choices: dict[str, Choice] = getattr(wording(language), kind)
        for word, choice in choices.items():
            if name in (word, choice.name):
                return word
    raise DataError(f"{where}: {shown(name)} is none of the choices; nothing was imported")


def _write_choices(sheet: Worksheet, start: int, choices: dict[str, Choice]) -> None:
    for line, choice in enumerate(choices.values(), start=start):
        _write(sheet, line, [choice.name, choice.means])


def _write(sheet: Worksheet, line: int, texts: Sequence[str], *, bold: bool = False) -> None:
    for column, text in enumerate(texts, start=1):
        cell = sheet.cell(line, column)
        cell.value = ILLEGAL_CHARACTERS_RE.sub("\ufffd", text)[:_CELL_CHARS]
        cell.data_type = "s"  # a text that starts as a formula is a text
        cell.alignment = Alignment(wrap_text=True, vertical="top")
        if bold:
            cell.font = Font(bold=True)

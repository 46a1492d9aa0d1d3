"""Rows of a file or Hub data set, each with the place where a person finds it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from or_eval.sources.errors import DataError, shown

_HALF_CHARACTER = re.compile("[\ud800-\udfff]")

Cells = Mapping[str, Any]
"""A row's cells by column."""


class Row(NamedTuple):
    """One row: its number for people (1-based) and its cells by column."""

    number: int
    cells: Cells


@dataclass(frozen=True, slots=True)
class Table:
    """A source's rows.

    Attributes:
        name: Path or Hub id, as error lines show it.
        title: File name or Hub id, as records name their source.
        unit: What a row's number counts: ``line``, ``item`` or ``row``.
        columns: Names of all columns, in the order they first appear.
        rows: The rows, in file order; never empty. They may be read anew each time they are gone
            through.
        revision: Which state of the data this is: a commit on the Hub, or a file's hash.
    """

    name: str
    title: str
    unit: str
    columns: tuple[str, ...]
    rows: Iterable[Row]
    revision: str | None = None

    def error(self, row: Row, column: str | None, problem: str) -> DataError:
        """Make the error line for one row, and for one cell of it where `column` is given."""
        place = f"{self.name}, {self.unit} {row.number}"
        if column is not None:
            place += f", column {shown(column)}"
        return DataError(f"{place}: {problem}")

    def text(self, row: Row, column: str) -> str:
        """Give a cell as text without surrounding white space; empty where there is none.

        Raises:
            DataError: The cell holds a list or the like, a NUL, or half a surrogate pair.
        """
        return self.checked(row, column, self.exact_text(row, column))

    def exact_text(self, row: Row, column: str) -> str:
        """Give a cell as text as it stands; empty where there is none.

        Raises:
            DataError: The cell holds a list or the like.
        """
        text = cell_text(row.cells.get(column))
        if text is None:
            kind = type(row.cells[column]).__name__
            raise self.error(row, column, f"is no text but a {kind}")
        return text

    def checked(self, row: Row, column: str, text: str) -> str:
        """Give a text of a row without surrounding white space.

        Raises:
            DataError: It holds a NUL, or half a surrogate pair.
        """
        text = text.strip()
        if "\0" in text:
            raise self.error(row, column, "holds a NUL character; remove it")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            half = shown(text[error.start])
            raise self.error(row, column, f"holds half a character ({half}); remove it") from None
        return text


def cell_text(value: object) -> str | None:
    """Give a cell as the text that a csv file has for it; None for a list, an object or bytes."""
    if isinstance(value, str):
        return value
    if value is None or value != value:  # NaN is how data frames write a missing value
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # a column of whole numbers with a gap comes as 1.0, 0.0, NaN
    if isinstance(value, datetime):
        return str(value).removesuffix(" 00:00:00")  # spreadsheets hold a date as its midnight
    plain = (int, float, Decimal, date, time, timedelta)
    return str(value) if isinstance(value, plain) else None


def whole(text: str) -> str:
    """Mark halves of characters, as a text has that was cut in an emoji, by U+FFFD."""
    return _HALF_CHARACTER.sub("\ufffd", text)


def whole_cell(value: Any) -> Any:
    """Mark halves of characters in all texts of a cell, also within lists and objects."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {whole_cell(key): whole_cell(member) for key, member in value.items()}
    return [whole_cell(member) for member in value] if isinstance(value, list) else value


def table_of(
    name: str,
    title: str,
    unit: str,
    rows: Iterable[Row],
    revision: str | None = None,
) -> Table:
    """Gather rows into a table.

    A single row of lists, all of one length, is a table stored by columns (LTO's is): it is taken
    apart into its rows.

    Raises:
        DataError: There are no rows.
    """
    gathered = list(rows)
    if len(gathered) == 1 and _is_stored_by_columns(gathered[0].cells):
        cells = gathered[0].cells
        members = zip(*cells.values(), strict=True)
        gathered = [
            Row(number, dict(zip(cells, values, strict=True)))
            for number, values in enumerate(members, start=1)
        ]
    if not gathered:
        raise DataError(f"{name}: has no rows")
    return Table(name, title, unit, columns_of(gathered), gathered, revision)


def columns_of(rows: Iterable[Row]) -> tuple[str, ...]:
    """Give the columns of rows, in the order in which they first appear."""
    return tuple(dict.fromkeys(column for row in rows for column in row.cells))


def _is_stored_by_columns(cells: Cells) -> bool:
    lists = [cell for cell in cells.values() if isinstance(cell, list)]
    if not lists or len(lists) < len(cells) or len({len(cell) for cell in lists}) > 1:
        return False
    # The turns of a dialogue are objects.
    return not any(isinstance(member, dict) for cell in lists for member in cell)

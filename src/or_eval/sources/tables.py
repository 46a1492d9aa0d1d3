"""Rows of a file or Hub data set, each with the place where a person finds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any, NamedTuple

from or_eval.hostile_text import whole
from or_eval.sources.errors import DataError, shown

Cells = Mapping[str, Any]
"""A row's cells by column."""


class Row(NamedTuple):
    """One row.

    Attributes:
        table: Path or Hub id, as error lines show it.
        unit: What the number counts: ``line``, ``item`` or ``row``.
        number: Its number for people, from 1.
        cells: Its cells by column.
    """

    table: str
    unit: str
    number: int
    cells: Cells

    @property
    def place(self) -> str:
        """Where a person finds it in its table."""
        return f"{self.unit} {self.number}"

    def error(self, column: str, problem: str) -> DataError:
        """Make the error line for a cell."""
        return DataError(f"{self.table}, {self.place}, column {shown(column)}: {problem}")

    def text(self, column: str | None) -> str:
        """Give a cell as text without surrounding white space; empty where there is none.

        Raises:
            DataError: The cell holds a list or the like, a NUL, or half a surrogate pair.
        """
        return "" if column is None else self.checked(column, self.exact_text(column))

    def exact_text(self, column: str) -> str:
        """Give a cell as text as it stands; empty where there is none.

        Raises:
            DataError: The cell holds a list or the like.
        """
        text = cell_text(self.cells.get(column))
        if text is None:
            raise self.error(column, f"isn't text but a {type(self.cells[column]).__name__}")
        return text

    def checked(self, column: str, text: str) -> str:
        """Give a text of a cell without surrounding white space.

        Raises:
            DataError: It holds a NUL, or half a surrogate pair.
        """
        text = text.strip()
        if "\0" in text:
            raise self.error(column, "contains a NUL character; remove it")
        if (cut := whole(text)) != text:
            half = next(char for char, kept in zip(text, cut, strict=True) if char != kept)
            raise self.error(column, f"contains half a character ({shown(half)}); remove it")
        return text


@dataclass(frozen=True, slots=True)
class Table:
    """A source's rows.

    Attributes:
        name: Path or Hub id, as error lines show it.
        title: File name or Hub id, as records name their source.
        columns: Names of all columns, in the order they first appear.
        rows: The rows, in file order; never empty. They may be read anew each time they are gone
            through.
        revision: Which state of the data this is: a commit on the Hub, or a file's hash.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Iterable[Row]
    revision: str | None = None


def table_of(
    name: str,
    title: str,
    rows: Iterable[Row],
    revision: str | None = None,
    columns: Sequence[str] = (),
) -> Table:
    """Make a table of rows that can be gone through again and again.

    A single row of lists, all of one length, is a table stored by columns (LTO's is): it is taken
    apart into its rows. Without `columns`, those of all rows are gathered.

    Raises:
        DataError: There are no rows.
    """
    first = list(islice(rows, 2))
    if len(first) == 1 and _is_stored_by_columns(first[0].cells):
        [row] = first
        members = enumerate(zip(*row.cells.values(), strict=True), start=1)
        rows = first = [
            row._replace(number=number, cells=dict(zip(row.cells, cells, strict=True)))
            for number, cells in members
        ]
    if not first:
        raise DataError(f"{name}: has no rows")
    return Table(name, title, tuple(columns) or columns_of(rows), rows, revision)


def columns_of(rows: Iterable[Row]) -> tuple[str, ...]:
    """Give the columns of rows, in the order in which they first appear."""
    return tuple(dict.fromkeys(column for row in rows for column in row.cells))


def _is_stored_by_columns(cells: Cells) -> bool:
    lists = [cell for cell in cells.values() if isinstance(cell, list)]
    if not lists or len(lists) < len(cells) or len({len(cell) for cell in lists}) > 1:
        return False
    # The turns of a dialogue are objects.
    return not any(isinstance(member, dict) for cell in lists for member in cell)


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

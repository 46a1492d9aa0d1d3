"""Read a file of rows, whatever its format."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import file_digest
from itertools import chain, islice, starmap, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from or_eval.sources.errors import DataError, shown
from or_eval.sources.tables import Cells, Row, Table, columns_of, table_of

NumberedRows = Iterator[tuple[int, Cells]]

TEXT_COLUMN = "prompt"
"""Column under which the texts of a file without columns (txt, a JSON list of texts) stand."""

# Responses and contexts may be long; the csv module's own limit is 128 KiB a cell.
_LONGEST_CELL = 2**31 - 1
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_BATCH = 2_000


class CsvForm(NamedTuple):
    """What is known of a csv or tsv file beside what stands in it.

    Attributes:
        header: Names of its columns, where it has no header.
        delimiter: What stands between cells; None: what its header tells.
    """

    header: tuple[str, ...] = ()
    delimiter: str | None = None


def read_table(path: Path, form: CsvForm = CsvForm()) -> Table:  # noqa: B008 (is immutable)
    """Open a csv, tsv, jsonl, json, txt, xlsx or parquet file; text formats also with ``.gz``.

    Its rows are read from it each time that they are gone through; those of JSON are held.

    Raises:
        DataError: The file is missing, of another kind, broken, or empty; of what is wrong
            further down, when the rows are read.
    """
    rows, kind = _FileRows(path, form), data_suffix(path)
    first = list(islice(rows, 2))
    with path.open("rb") as raw:
        revision = f"sha256:{file_digest(raw, 'sha256').hexdigest()}"
    unit = "row" if kind in _BINARY_READERS else _TEXT_READERS[str(kind)][0]
    if kind == ".json" or len(first) < 2:
        return table_of(str(path), path.name, unit, rows, revision)
    # Objects of JSON Lines may differ in their keys.
    columns = columns_of(rows if kind == ".jsonl" else first)
    return Table(str(path), path.name, unit, columns, rows, revision)


class _FileRows:
    """The rows of a file, which is read each time that they are gone through."""

    def __init__(self, path: Path, form: CsvForm) -> None:
        self._path, self._form = path, form

    def __iter__(self) -> Iterator[Row]:
        with open_rows(self._path, form=self._form) as opened:
            yield from opened.rows


class OpenRows(NamedTuple):
    """A file whose rows are being read one after the other.

    Attributes:
        name: Path, or ``standard input``, as error lines show it.
        unit: What a row's number counts: ``line``, ``item`` or ``row``.
        raw: The file as it lies on disk, whose position tells how far reading has come.
        rows: The rows. Reading them raises DataError at a broken one.
    """

    name: str
    unit: str
    raw: BinaryIO
    rows: Iterator[Row]


@contextmanager
def open_rows(
    path: Path | None,
    kind: str | None = None,
    form: CsvForm = CsvForm(),  # noqa: B008 (is immutable)
) -> Iterator[OpenRows]:
    """Open a file to read its rows as they come; a JSON list and nothing else is read whole.

    Args:
        path: The file; None for standard input.
        kind: Its format, as a suffix, where the path's own doesn't tell.
        form: What is known of a csv or tsv file besides.

    Raises:
        DataError: The file is missing, of an unknown kind, or not delimited as was said.
    """
    if path is None:
        yield _opened("standard input", kind or ".jsonl", sys.stdin.buffer, form, zipped=False)
        return
    if path.is_dir():
        raise DataError(f"{path}: is a folder; give one of the files in it")
    kind = data_suffix(path) or kind
    if kind is None:
        raise DataError(
            f"{path}: of unknown kind {shown(path.suffix)}; "
            f"known are {', '.join(_TEXT_READERS)} (each also with .gz), "
            f"{' and '.join(_BINARY_READERS)}"
        )
    try:
        raw = path.open("rb")
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except OSError as error:
        raise _unreadable(str(path), error) from None
    with raw:
        yield _opened(str(path), kind, raw, form, zipped=is_zipped(path))


def data_suffix(path: Path) -> str | None:
    """Give the suffix that tells the format of a file, without ``.gz``; None for another kind."""
    suffix = path.suffix.lower()
    if is_zipped(path):
        inner = Path(path.stem).suffix.lower()
        return inner if inner in _TEXT_READERS else None
    return suffix if suffix in _TEXT_READERS or suffix in _BINARY_READERS else None


def is_zipped(path: Path) -> bool:
    """Tell whether a file's ending says that it is compressed with gzip."""
    return path.suffix.lower() == ".gz"


def _opened(name: str, kind: str, raw: BinaryIO, form: CsvForm, *, zipped: bool) -> OpenRows:
    delimiters = _DELIMITERS_FOUND.get(kind, "")
    if form.delimiter is not None and not delimiters:
        raise DataError(f"{name}: is no csv file and has no delimiter; leave delimiter= out")
    if kind in _BINARY_READERS:
        return OpenRows(name, "row", raw, starmap(Row, _BINARY_READERS[kind](name, raw)))
    unit, newline, read = _TEXT_READERS[kind]
    lines = _lines(name, raw, newline, zipped=zipped)
    if form.delimiter is not None:
        named = _delimiter(form.delimiter)
        read, delimiters = delimited_rows(named), named
    if form.header and delimiters:
        lines = chain([delimiters[0].join(form.header) + "\n"], lines)
    elif form.delimiter is not None:
        lines = _delimited(name, lines, delimiters)
    return OpenRows(name, unit, raw, starmap(Row, read(name, lines)))


def _delimiter(named: str) -> str:
    delimiter = _DELIMITER_WORDS.get(named.strip().casefold(), named)
    if len(delimiter) != 1 or delimiter in '"\r\n\0':
        raise DataError(
            f"delimiter: {shown(named)} is no single character, nor one of "
            + ", ".join(_DELIMITER_WORDS)
        )
    return delimiter


def _delimited(name: str, lines: Iterable[str], delimiter: str) -> Iterator[str]:
    first, lines = _peeked(lines)
    if delimiter not in first:
        raise DataError(
            f"{name}: its first line has no {shown(delimiter)} ({shown(first.strip())}); name what "
            "stands between its cells, or leave delimiter= out"
        )
    return lines


def _lines(name: str, raw: BinaryIO, newline: str, *, zipped: bool) -> Iterator[str]:
    """Give the lines of a text file with their ends; a byte order mark is passed over."""
    content: Any = gzip.GzipFile(fileobj=raw) if zipped else raw
    number = 0
    try:
        lines = io.TextIOWrapper(content, encoding="utf-8-sig", newline=newline)
        for number, line in enumerate(lines, start=1):  # noqa: B007 (told where decoding fails)
            yield line
    except UnicodeDecodeError as error:
        # All lines before the piece that can't be decoded have been given but the last, if it is
        # not whole.
        piece, start = error.object, error.start
        if number == start == 0 and piece.startswith(_UTF16_MARKS):
            raise DataError(f"{name}: is UTF-16; save it as UTF-8") from None
        line = str(number + 1 + piece.count(b"\n", 0, start))
        raise DataError(
            f"{name}, line {line}: byte {piece[start]:#04x} is not UTF-8; save the file as UTF-8"
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{name}: is no whole gzip file ({error})") from None
    except OSError as error:
        raise _unreadable(name, error) from None


def _unreadable(name: str, error: OSError) -> DataError:
    return DataError(f"{name}: can't be read ({error.strerror or error})")


def delimited_rows(delimiters: str) -> Callable[[str, Iterable[str]], NumberedRows]:
    """Make the reader of csv rows; which of some delimiters they have, their header tells.

    Returns:
        A function of the file's name and its lines, with their ends as they are, that gives each
        row after the header with the line it starts on. It raises DataError at a broken row.
    """

    def rows(name: str, lines: Iterable[str]) -> NumberedRows:
        csv.field_size_limit(_LONGEST_CELL)
        first, lines = _peeked(lines)
        delimiter = max(delimiters, key=re.sub(r'"[^"]*"?', "", first).count)
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        header: list[str] | None = None
        line = 1
        try:
            for cells in reader:
                # The reader counts lines as it goes, and a quoted cell may span many.
                start, line = line, reader.line_num + 1
                if not cells:
                    continue
                if header is None:
                    header = _header(name, start, cells)
                elif len(cells) != len(header):
                    raise DataError(
                        f"{name}, line {start}: has {len(cells)} cells under {len(header)} columns;"
                        " is a quote or a delimiter missing?"
                    )
                else:
                    yield start, dict(zip(header, cells, strict=True))
        except csv.Error as error:
            raise DataError(f"{name}, line {line}: is no proper CSV ({error})") from None

    return rows


def _peeked(lines: Iterable[str]) -> tuple[str, Iterator[str]]:
    lines = iter(lines)
    first = next(lines, "")
    return first, chain([first] if first else [], lines)


def _header(name: str, line: int, cells: list[str]) -> list[str]:
    named = [cell for cell in cells if cell]
    twice = next((cell for cell in named if named.count(cell) > 1), None)
    if twice is not None:
        raise DataError(f"{name}, line {line}: there are two columns {shown(twice)}; rename one")
    return cells


def json_lines(name: str, lines: Iterable[str]) -> NumberedRows:
    """Give the objects of a JSON Lines file, each with its line; blank lines are passed over.

    Raises:
        DataError: A line holds no JSON object.
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, _row_object(name, f"line {number}", _parsed(name, line.strip(), number))


def _json_items(name: str, lines: Iterable[str]) -> NumberedRows:
    text = "".join(lines)
    items = _parsed(name, text, 1) if text.strip() else []
    if isinstance(items, dict) and all(isinstance(cells, list) for cells in items.values()):
        items = [items]
    if not isinstance(items, list):
        raise DataError(
            f"{name}: must be a JSON list of texts or objects, or an object with a list a column"
        )
    for number, item in enumerate(items, start=1):
        if isinstance(item, str):
            yield number, {TEXT_COLUMN: item}
        else:
            yield number, _row_object(name, f"item {number}", item)


def _parsed(name: str, text: str, first_line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise DataError(
            f"{name}, line {line}: is no JSON ({error.msg}, character {error.colno})"
        ) from None
    except (ValueError, RecursionError) as error:
        problem = str(error).splitlines()[0]
        raise DataError(f"{name}, line {first_line}: is no usable JSON ({problem})") from None


def _row_object(name: str, place: str, value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise DataError(f"{name}, {place}: {shown(value)} is no object with columns")


def _text_lines(name: str, lines: Iterable[str]) -> NumberedRows:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, {TEXT_COLUMN: line}


def _parquet_rows(name: str, raw: BinaryIO) -> NumberedRows:
    # Imported here: it takes long and only Parquet files need it.
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Parquet is read from its end.
    content = raw if raw.seekable() else io.BytesIO(raw.read())
    number = 0
    try:
        for batch in pq.ParquetFile(content).iter_batches(batch_size=_BATCH):
            for cells in batch.to_pylist():
                number += 1
                yield number, cells
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        problem = str(error).splitlines()[0]
        raise DataError(f"{name}: is no readable Parquet file ({problem})") from None


def _xlsx_rows(name: str, raw: BinaryIO) -> NumberedRows:
    """Give the rows of a workbook's first sheet below its header."""
    try:
        rows = (
            (number, cells)
            for number, cells in enumerate(sheet_rows(raw), start=1)
            if any(cell is not None for cell in cells)
        )
        line, names = next(rows, (1, ()))
        header = _header(name, line, ["" if cell is None else str(cell) for cell in names])
        for number, cells in rows:
            # A sheet that doesn't tell its size has short rows.
            named = zip_longest(header, cells[: len(header)])
            yield number, {name: cell for name, cell in named if name}
    except ModuleNotFoundError:
        raise DataError(f"{name}: needs openpyxl: pip install 'or-eval[label]'") from None
    except DataError:
        raise
    except Exception as error:  # of zip, of XML or of what a workbook must have
        problem = str(error).partition("\n")[0]
        raise DataError(f"{name}: is no readable xlsx file ({problem})") from None


def sheet_rows(book: BinaryIO | Path, sheet: str | None = None) -> Iterator[tuple[Any, ...]]:
    """Give the cells of a workbook's sheet, by default the first, row by row.

    A text that begins with "=" mostly lies there as a formula, without a value or with an error
    for one, and is the text that was typed; a formula that has a value is what it shows.
    """
    from openpyxl import load_workbook

    books = [load_workbook(book, read_only=True, data_only=values) for values in (False, True)]
    typed, shown = ((b[sheet] if sheet else b.worksheets[0]).iter_rows() for b in books)
    for of_row in zip(typed, shown, strict=True):
        yield tuple(starmap(_sheet_cell, zip(*of_row, strict=True)))


def _sheet_cell(typed: Any, shown: Any) -> Any:
    if typed.data_type == "f" and (shown.value is None or shown.data_type == "e"):
        return getattr(typed.value, "text", typed.value)  # an array's formula is an object
    return shown.value


# Of those that stand in a header as often as each other, the first counts.
_DELIMITERS_FOUND = {".csv": ",;\t|", ".tsv": "\t"}
_DELIMITER_WORDS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|", "space": " "}
# What a row's number counts, what ends a line, and the reader. JSON texts may hold any line
# separator but a line feed; csv cells any at all, between quotes.
_TEXT_READERS: dict[str, tuple[str, str, Callable[[str, Iterable[str]], NumberedRows]]] = {
    **{kind: ("line", "", delimited_rows(found)) for kind, found in _DELIMITERS_FOUND.items()},
    ".jsonl": ("line", "\n", json_lines),
    ".json": ("item", "\n", _json_items),
    ".txt": ("line", "\n", _text_lines),
}
_BINARY_READERS: dict[str, Callable[[str, BinaryIO], NumberedRows]] = {
    ".parquet": _parquet_rows,
    ".xlsx": _xlsx_rows,
}

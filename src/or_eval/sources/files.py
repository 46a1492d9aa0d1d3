"""Read a file of rows, whatever its format: some rows at a time, each with its place."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from hashlib import file_digest
from itertools import chain, islice, starmap, zip_longest
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZipFile

from or_eval.sources.errors import DataError, shown
from or_eval.sources.tables import Cells, Row, Table, columns_of, table_of

NumberedRows = Iterator[tuple[int, Cells]]

TEXT_COLUMN = "prompt"
"""Column under which the texts of a file without columns (txt, a JSON list of texts) stand."""

# Responses and contexts may be long; the csv module's own limit is 128 KiB a cell.
_LONGEST_CELL = 2**31 - 1
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CSV_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
_BATCH = 2_000
_NAMED = 5
# A workbook is a zip file of XML, and its texts are held: a small one may unpack to any size.
_MOST_UNPACKED = 500 * 2**20
_MOST_ROWS, _MOST_CELLS = 2**20, 50_000_000


def read_table(path: Path, header: Sequence[str] = (), sheet: str | None = None) -> Table:
    """Open a csv, tsv, jsonl, json, txt, xlsx or parquet file; text formats also with ``.gz``.

    Its rows are read from it each time that they are gone through; those of JSON are held.

    Args:
        path: The file, or a folder that has it alone.
        header: Names of the columns of a csv or tsv file that has no header.
        sheet: Which sheet of a workbook, where that isn't the first.

    Raises:
        DataError: The file is missing, of another kind, broken, or empty; of what is wrong
            further down, when the rows are read.
    """
    path = data_file(path)
    file = FileRows(path, header=header, sheet=sheet)
    rows = list(file) if file.kind == ".json" else file
    # Objects of JSON may differ in their keys.
    columns = () if file.kind in (".json", ".jsonl") else columns_of(islice(rows, 1))
    table = table_of(str(path), path.name, rows, columns=columns)
    with path.open("rb") as raw:
        return replace(table, revision=f"sha256:{file_digest(raw, 'sha256').hexdigest()}")


class FileRows:
    """The rows of a file, read from it some at a time whenever they are gone through.

    A JSON list and nothing else is read whole. Reading raises DataError at a broken row.

    Args:
        path: The file; None for standard input, which can be gone through once.
        kind: Its format, as a suffix, where the path's own doesn't tell.
        header: Names of the columns of a csv or tsv file that has no header.
        sheet: Which sheet of a workbook, where that isn't the first.

    Attributes:
        name: Path, or ``standard input``, as error lines show it.
        raw: While rows are read, the file as it lies on disk: its position tells how far they are.

    Raises:
        DataError: The file is a folder or of an unknown kind.
    """

    raw: BinaryIO | None = None

    def __init__(
        self,
        path: Path | None,
        kind: str | None = None,
        header: Sequence[str] = (),
        sheet: str | None = None,
    ) -> None:
        path = path and data_file(path)
        self._path, self._header, self._sheet = path, header, sheet
        self.name = "standard input" if path is None else str(path)
        self.kind = str(kind or ".jsonl" if path is None else data_suffix(path) or kind)
        if self.kind not in (*_TEXT_READERS, *_BINARY_READERS):
            raise DataError(
                f"{path}: {_unknown(path)}; known are {', '.join(_TEXT_READERS)} "
                f"(each also with .gz), {' and '.join(_BINARY_READERS)}"
            )

    def __iter__(self) -> Iterator[Row]:
        with self._opened() as self.raw:
            if self.kind in _BINARY_READERS:
                read_binary = _BINARY_READERS[self.kind]
                unit, numbered = "row", read_binary(self.name, self.raw, self._sheet)
            else:
                unit, read = _TEXT_READERS[self.kind]
                zipped = self._path is not None and is_zipped(self._path)
                numbered = read(self.name, _lines(self.name, self.raw, zipped=zipped), self._header)
            yield from starmap(partial(Row, self.name, unit), numbered)

    def _opened(self) -> AbstractContextManager[BinaryIO]:
        if self._path is None:
            return nullcontext(sys.stdin.buffer)
        try:
            return self._path.open("rb")
        except FileNotFoundError:
            raise DataError(f"{self.name}: there is no such file") from None
        except OSError as error:
            raise _unreadable(self.name, error) from None


def data_file(path: Path) -> Path:
    """Give a file itself, and of a folder, such as a data set's, the one file that can be read.

    Raises:
        DataError: The folder has none, or several.
    """
    if not path.is_dir():
        return path
    inside = [*path.glob("*"), *path.glob("*/*")]
    found = [one for one in sorted(inside) if one.is_file() and data_suffix(one) is not None]
    if len(found) == 1:
        return found[0]
    how = "give one of the files in it: " if found else "it has no file that can be read"
    there = [str(one.relative_to(path)) for one in found[:_NAMED]]
    more = ["…"] * (len(found) > _NAMED)
    raise DataError(f"{path}: is a folder; {how}{', '.join([*there, *more])}")


def _unknown(path: Path | None) -> str:
    return f"of unknown kind {shown(path.suffix)}" if path and path.suffix else "has no ending"


def data_suffix(path: Path) -> str | None:
    """Give the suffix that tells the format of a file, without ``.gz``; None for another kind."""
    suffix = path.suffix.lower()
    if is_zipped(path):
        suffix = Path(path.stem).suffix.lower()
        return suffix if suffix in _TEXT_READERS else None
    return suffix if suffix in _TEXT_READERS or suffix in _BINARY_READERS else None


def is_zipped(path: Path) -> bool:
    """Tell whether a file's ending says that it is compressed with gzip."""
    return path.suffix.lower() == ".gz"


def _lines(name: str, raw: BinaryIO, *, zipped: bool) -> Iterator[str]:
    """Give the lines of a text file with their ends; a byte order mark is passed over."""
    content: Iterable[bytes] = gzip.GzipFile(fileobj=raw) if zipped else raw
    number = 1
    try:
        for number, line in enumerate(content, start=1):
            if number == 1 and line.startswith(_UTF16_MARKS):
                raise DataError(f"{name}: is UTF-16; save it as UTF-8")
            yield (line.removeprefix(_UTF8_MARK) if number == 1 else line).decode()
    except UnicodeDecodeError as error:
        wrong = f"{name}, line {number}: byte {error.object[error.start]:#04x} is not UTF-8"
        raise DataError(f"{wrong}; save the file as UTF-8") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{name}: isn't a complete gzip file ({error})") from None
    except OSError as error:
        raise _unreadable(name, error) from None


def _unreadable(name: str, error: OSError) -> DataError:
    return DataError(f"{name}: can't be read ({error.strerror or error})")


def _csv_rows(
    delimiters: str, name: str, lines: Iterator[str], header: Sequence[str]
) -> NumberedRows:
    """Give csv rows, each with the line it starts on; the header tells the delimiter.

    pyarrow's reader counts rows where people look for lines, takes text after a closing quote for
    part of the cell, and fails at cells longer than its block: this is the standard library's.
    """
    csv.field_size_limit(_LONGEST_CELL)
    # Lines may also end as on old Macs, which is for the reader to join again between quotes.
    lines = (p for line in lines for p in (_CSV_LINE.findall(line) if "\r" in line else [line]))
    first = next(lines, "")
    told = re.sub(r'"[^"]*"?', "", delimiters[0].join(header) or first)
    delimiter = max(delimiters, key=told.count)
    reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in reader:
            # The reader counts lines as it goes, and a quoted cell may span many.
            start, line = line, reader.line_num + 1
            if not cells:
                continue
            if not header:
                header = _header(name, start, cells)
            elif len(cells) != len(header):
                raise DataError(
                    f"{name}, line {start}: has {len(cells)} cells under {len(header)} columns;"
                    " is a quote or a delimiter missing?"
                )
            else:
                yield start, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise DataError(
            f"{name}, line {line}: isn't valid CSV: stray or unclosed quote? ({error})"
        ) from None


def _header(name: str, line: int, cells: list[str]) -> list[str]:
    named = [cell for cell in cells if cell]
    twice = next((cell for cell in named if named.count(cell) > 1), None)
    if twice is not None:
        raise DataError(f"{name}, line {line}: there are two columns {shown(twice)}; rename one")
    return cells


def _json_lines(name: str, lines: Iterable[str], _: Sequence[str]) -> NumberedRows:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, _row_object(name, f"line {number}", _parsed(name, line.strip(), number))


def _json_items(name: str, lines: Iterable[str], _: Sequence[str]) -> NumberedRows:
    text = "".join(lines)
    items = _parsed(name, text, 1) if text.strip() else []
    if isinstance(items, dict) and all(isinstance(cells, list) for cells in items.values()):
        items = [items]
    if not isinstance(items, list):
        raise DataError(
            f"{name}: must be a JSON list of texts or objects, or an object with a list a column"
        )
    for number, item in enumerate(items, start=1):
        plain = isinstance(item, str)
        yield number, {TEXT_COLUMN: item} if plain else _row_object(name, f"item {number}", item)


def _parsed(name: str, text: str, first_line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise DataError(
            f"{name}, line {line}: isn't valid JSON ({error.msg}, character {error.colno})"
        ) from None
    except (ValueError, RecursionError) as error:
        problem = str(error).splitlines()[0]
        raise DataError(f"{name}, line {first_line}: isn't usable JSON ({problem})") from None


def _row_object(name: str, place: str, value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise DataError(f"{name}, {place}: {shown(value)} isn't an object with columns")


def _text_lines(_: str, lines: Iterable[str], __: Sequence[str]) -> NumberedRows:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, {TEXT_COLUMN: line}


def _parquet_rows(name: str, raw: BinaryIO, _: str | None) -> NumberedRows:
    # Imported here: it takes long and only Parquet files need it.
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Parquet is read from its end.
    content = raw if raw.seekable() else io.BytesIO(raw.read())
    try:
        batches = pq.ParquetFile(content).iter_batches(batch_size=_BATCH)
        yield from enumerate((cells for batch in batches for cells in batch.to_pylist()), start=1)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        problem = str(error).splitlines()[0]
        raise DataError(f"{name}: isn't a readable Parquet file ({problem})") from None


def _xlsx_rows(name: str, raw: BinaryIO, sheet: str | None) -> NumberedRows:
    """Give the rows of a workbook's sheet, by default the first, below its header."""
    try:
        rows = (
            (number, cells)
            for number, cells in enumerate(_sheet_rows(raw, sheet), start=1)
            if any(cell is not None for cell in cells)
        )
        line, names = next(rows, (1, ()))
        header = _header(name, line, ["" if cell is None else str(cell) for cell in names])
        for number, cells in rows:
            # A sheet that doesn't tell its size has short rows.
            named = zip_longest(header, cells[: len(header)])
            yield number, {name: cell for name, cell in named if name}
    except DataError:
        raise
    except Exception as error:  # of zip, of XML or of what a workbook must have
        problem = str(error).partition("\n")[0]
        raise DataError(f"{name}: isn't a readable xlsx file ({problem})") from None


def _sheet_rows(book: BinaryIO, sheet: str | None) -> Iterator[tuple[Any, ...]]:
    """Give the cells of a sheet, row by row.

    A text that begins with "=" mostly lies there as a formula, without a value or with an error
    for one, and is the text that was typed; a formula that has a value is what it shows.
    """
    # Imported here: it takes long and only workbooks need it.
    from openpyxl import load_workbook

    with ZipFile(book) as parts:
        unpacked = sum(part.file_size for part in parts.infolist())
    if unpacked > _MOST_UNPACKED:
        raise ValueError(f"it unpacks to {unpacked >> 20:,} MB; save the sheet as .csv")
    books = [load_workbook(book, read_only=True, data_only=values) for values in (False, True)]
    typed, shown = ((b[sheet] if sheet else b.worksheets[0]).iter_rows() for b in books)
    room = _MOST_CELLS
    for number, of_row in enumerate(zip(typed, shown, strict=True), start=1):
        # Rows and cells that aren't there cost nothing in the file.
        room -= len(of_row[0])
        if number > _MOST_ROWS or room < 0:
            raise ValueError("its cells lie further out than a sheet's can; save it as .csv")
        yield tuple(starmap(_sheet_cell, zip(*of_row, strict=True)))


def _sheet_cell(typed: Any, shown: Any) -> Any:
    if typed.data_type == "f" and (shown.value is None or shown.data_type == "e"):
        return getattr(typed.value, "text", typed.value)  # an array's formula is an object
    return shown.value


# Of those that stand in a header as often as each other, the first counts.
_DELIMITERS = {".csv": ",;\t|", ".tsv": "\t"}
# What a row's number counts, and the reader.
_TEXT_READERS: dict[str, tuple[str, Callable[..., NumberedRows]]] = {
    **{kind: ("line", partial(_csv_rows, found)) for kind, found in _DELIMITERS.items()},
    ".jsonl": ("line", _json_lines),
    ".json": ("item", _json_items),
    ".txt": ("line", _text_lines),
}
_BINARY_READERS: dict[str, Callable[[str, BinaryIO, str | None], NumberedRows]] = {
    ".parquet": _parquet_rows,
    ".xlsx": _xlsx_rows,
}

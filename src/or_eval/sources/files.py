"""Read a file of rows, whatever its format."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from or_eval.sources.errors import DataError, shown
from or_eval.sources.tables import Cells, Table, table_of

NumberedRows = Iterator[tuple[int, Cells]]

TEXT_COLUMN = "prompt"
"""Column under which the texts of a file without columns (txt, a JSON list of texts) stand."""

# Responses and contexts may be long; the csv module's own limit is 128 KiB a cell.
_LONGEST_CELL = 2**31 - 1
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK = b"\xef\xbb\xbf"


def read_table(path: Path) -> Table:
    """Read a csv, tsv, jsonl, json, txt or parquet file; the text formats also with ``.gz``.

    Raises:
        DataError: The file is missing, of another kind, broken, or empty.
    """
    name = str(path)
    if path.is_dir():
        raise DataError(f"{name}: is a folder; give one of the files in it")
    if not path.exists():
        raise DataError(f"{name}: there is no such file")
    kind = data_suffix(path)
    if kind is None:
        raise DataError(
            f"{name}: of unknown kind {shown(path.suffix)}; "
            f"known are {', '.join(_TEXT_READERS)} (each also with .gz) and .parquet"
        )
    if kind == ".parquet":
        return table_of(name, path.name, "row", _parquet_rows(path))
    unit, newline, read = _TEXT_READERS[kind]
    lines = io.StringIO(_decoded(name, _bytes_of(path)), newline=newline)
    return table_of(name, path.name, unit, read(name, lines))


def data_suffix(path: Path) -> str | None:
    """Give the suffix that tells the format of a file, without ``.gz``; None for another kind."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        inner = Path(path.stem).suffix.lower()
        return inner if inner in _TEXT_READERS else None
    return suffix if suffix in _TEXT_READERS or suffix == ".parquet" else None


def _bytes_of(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix.lower() == ".gz" else content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: is no whole gzip file ({error})") from None
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror or error})") from None


def _decoded(name: str, content: bytes) -> str:
    if content.startswith(_UTF16_MARKS):
        raise DataError(f"{name}: is UTF-16; save it as UTF-8")
    start = len(_UTF8_MARK) if content.startswith(_UTF8_MARK) else 0
    try:
        return content[start:].decode()
    except UnicodeDecodeError as error:
        offset = start + error.start
        line = content.count(b"\n", 0, offset) + 1
        raise DataError(
            f"{name}, line {line}: byte {content[offset]:#04x} at offset {offset} is not UTF-8; "
            "save the file as UTF-8"
        ) from None


def delimited_rows(delimiter: str) -> Callable[[str, Iterable[str]], NumberedRows]:
    """Make the reader of csv rows that are delimited so.

    Returns:
        A function of the file's name and its lines, with their ends as they are, that gives each
        row after the header with the line it starts on. It raises DataError at a broken row.
    """

    def rows(name: str, lines: Iterable[str]) -> NumberedRows:
        csv.field_size_limit(_LONGEST_CELL)
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


def _json_items(name: str, lines: TextIO) -> NumberedRows:
    text = lines.read()
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


def _parquet_rows(path: Path) -> NumberedRows:
    # Imported here: it takes long and only Parquet files need it.
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_table(path).to_pylist()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        problem = str(error).splitlines()[0]
        raise DataError(f"{path}: is no readable Parquet file ({problem})") from None
    return enumerate(rows, start=1)


# What a row's number counts, what ends a line, and the reader. JSON texts may hold any line
# separator but a line feed; csv cells any at all, between quotes.
_TEXT_READERS: dict[str, tuple[str, str, Callable[[str, TextIO], NumberedRows]]] = {
    ".csv": ("line", "", delimited_rows(",")),
    ".tsv": ("line", "", delimited_rows("\t")),
    ".jsonl": ("line", "\n", json_lines),
    ".json": ("item", "\n", _json_items),
    ".txt": ("line", "\n", _text_lines),
}

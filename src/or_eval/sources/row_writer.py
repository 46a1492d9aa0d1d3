"""Write rows one after the other, so that a file larger than memory can pass through."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from or_eval.sources.errors import DataError, shown
from or_eval.sources.files import is_zipped
from or_eval.sources.tables import whole, whole_cell

if TYPE_CHECKING:
    import pyarrow as pa

WRITTEN_KINDS = (".csv", ".tsv", ".jsonl", ".parquet")
_BATCH = 2_000

Write = Callable[[Mapping[str, Any]], None]


@contextmanager
def row_writer(path: Path | None, kind: str, columns: Sequence[str]) -> Iterator[Write]:
    """Write rows to a file, which appears when all are written, and not at all after an error.

    Args:
        path: The file; None for standard output.
        kind: One of :data:`WRITTEN_KINDS`.
        columns: The file's columns. A JSON Lines file takes each row as it is.

    Raises:
        DataError: The file can't be written, or a row has another column.
    """
    if path is None:
        with _writer("standard output", kind, columns, sys.stdout.buffer) as write:
            yield write
        return
    if path.exists() and not path.is_file():
        raise DataError(f"{path}: is no file that could be written; give another name, or -")
    target = path.resolve()  # a link stays a link
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        file = tempfile.NamedTemporaryFile(dir=target.parent, prefix=".", delete=False)  # noqa: SIM115
    except OSError as error:
        raise DataError(f"{path}: can't be written ({error.strerror or error})") from None
    unfinished = Path(file.name)
    try:
        with (
            file,
            _compressed(path, file) as content,
            _writer(str(path), kind, columns, content) as write,
        ):
            yield write
        unfinished.chmod(target.stat().st_mode if target.exists() else 0o666 & ~_umask())
        unfinished.replace(target)
    except OSError as error:
        raise DataError(f"{path}: can't be written ({error.strerror or error})") from None
    finally:
        unfinished.unlink(missing_ok=True)


def _umask() -> int:
    os.umask(mask := os.umask(0))  # it can't be read otherwise
    return mask


def _compressed(path: Path, file: Any) -> AbstractContextManager[BinaryIO]:
    if is_zipped(path):
        compressed: Any = gzip.GzipFile(fileobj=file, mode="wb")
        return closing(compressed)
    return nullcontext(file)


@contextmanager
def _writer(name: str, kind: str, columns: Sequence[str], file: BinaryIO) -> Iterator[Write]:
    if kind == ".parquet":
        with _parquet_writer(file, columns) as write:
            yield _strict(name, columns, write)
        return
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    try:
        if kind == ".jsonl":
            yield _json_line_writer(text)
        else:
            delimited = _delimited_writer("," if kind == ".csv" else "\t", columns, text)
            yield _strict(name, columns, delimited)
    finally:
        text.flush()
        text.detach()


def _strict(name: str, columns: Sequence[str], write: Write) -> Write:
    """Refuse a row with a column for which there is no place, instead of dropping its cell."""
    known = frozenset(columns)

    def write_known(row: Mapping[str, Any]) -> None:
        if unknown := next((column for column in row if column not in known), None):
            raise DataError(
                f"{name}: a row has a column {shown(unknown)}, which the first rows don't have; "
                "write a .jsonl file"
            )
        write(row)

    return write_known


def _json_line_writer(text: IO[str]) -> Write:
    def write(row: Mapping[str, Any]) -> None:
        line = json.dumps(row, ensure_ascii=False, default=str)
        # UTF-8 can't hold half a character; JSON has an escape for it.
        text.write((line if whole(line) == line else json.dumps(row, default=str)) + "\n")

    return write


def _delimited_writer(delimiter: str, columns: Sequence[str], text: IO[str]) -> Write:
    rows = csv.writer(text, delimiter=delimiter)
    rows.writerow([whole(column) for column in columns])

    def write(row: Mapping[str, Any]) -> None:
        rows.writerow([_cell(row.get(column)) for column in columns])

    return write


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return whole(value) if isinstance(value, str) else value


@contextmanager
def _parquet_writer(file: BinaryIO, columns: Sequence[str]) -> Iterator[Write]:
    """Write rows in parts, since the type of a column is known when its last cell is."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    batch: list[Mapping[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        parts: list[Path] = []

        def flush() -> None:
            cells = {whole(name): _array([row.get(name) for row in batch]) for name in columns}
            parts.append(Path(folder) / f"{len(parts)}.parquet")
            pq.write_table(pa.table(cells), parts[-1])
            batch.clear()

        def write(row: Mapping[str, Any]) -> None:
            batch.append(row)
            if len(batch) >= _BATCH:
                flush()

        yield write
        flush()
        schemas = [pq.read_schema(part) for part in parts]
        names = schemas[0].names
        types = {name: _common_type([s.field(name).type for s in schemas]) for name in names}
        with pq.ParquetWriter(file, pa.schema(types)) as writer:
            for part in parts:
                table = pq.read_table(part)
                cells = {name: _array(table[name].to_pylist(), types[name]) for name in names}
                writer.write_table(pa.table(cells))


def _array(values: Sequence[Any], kind: pa.DataType | None = None) -> pa.Array:
    """Give the cells of a column, as text where they have no type in common."""
    import pyarrow as pa

    try:
        cells = pa.array(values, kind)
    except UnicodeEncodeError:
        return _array([whole_cell(value) for value in values], kind)
    except (pa.ArrowException, OverflowError):
        return _array([_as_text(value) for value in values])
    # Parquet has no object without members.
    return cells if "struct<>" not in str(cells.type) else _array([_as_text(v) for v in values])


def _common_type(kinds: Sequence[pa.DataType]) -> pa.DataType:
    import pyarrow as pa

    schemas = [pa.schema({"cell": kind}) for kind in kinds]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field("cell").type
    except pa.ArrowException:
        return pa.string()


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)

"""Read and write rows one after the other, so that a file larger than memory can pass through."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, BinaryIO

from or_eval.sources.errors import DataError
from or_eval.sources.files import data_suffix, delimited_rows, json_lines
from or_eval.sources.tables import Row

STANDARD_STREAM = "-"
STREAMED_FORMATS = ("csv", "tsv", "jsonl", "parquet")
_BATCH = 2_000


def format_of(path: str) -> str:
    """Give the format of a file that can be streamed.

    Raises:
        DataError: It has none of the endings of :data:`STREAMED_FORMATS`.
    """
    suffix = (data_suffix(Path(path)) or "").removeprefix(".")
    if suffix not in STREAMED_FORMATS:
        raise DataError(
            f"{path}: can't tell the format by its ending; known are {', '.join(STREAMED_FORMATS)} "
            "(the text formats also with .gz)"
        )
    return suffix


@contextmanager
def open_rows(path: str, form: str) -> Iterator[tuple[BinaryIO, Iterator[Row]]]:
    """Open a file or standard input (``-``) and give its rows.

    Args:
        path: The file, or ``-``.
        form: One of :data:`STREAMED_FORMATS`.

    Yields:
        The file as it lies on disk, whose position tells how far reading has come, and its rows.

    Raises:
        DataError: The file is missing or broken; while the rows are read, that a row is.
    """
    try:
        standard = path == STANDARD_STREAM
        source: AbstractContextManager[BinaryIO] = (
            nullcontext(sys.stdin.buffer) if standard else Path(path).open("rb")  # noqa: SIM115
        )
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror or error})") from None
    with source as raw:
        yield raw, _rows(path, form, raw)


def _rows(path: str, form: str, raw: BinaryIO) -> Iterator[Row]:
    name = "standard input" if path == STANDARD_STREAM else path
    if form == "parquet":
        yield from _parquet_rows(name, raw)
        return
    content: Any = gzip.GzipFile(fileobj=raw) if path.endswith(".gz") else raw
    text = io.TextIOWrapper(content, encoding="utf-8-sig", newline="" if form != "jsonl" else "\n")
    number = 0
    read = json_lines if form == "jsonl" else delimited_rows("," if form == "csv" else "\t")
    try:
        for number, cells in read(name, text):
            yield Row(number, cells)
    except UnicodeDecodeError:
        raise DataError(
            f"{name}, after line {number}: holds a byte that is not UTF-8; save the file as UTF-8"
        ) from None
    except (EOFError, gzip.BadGzipFile) as error:
        raise DataError(f"{name}: is no whole gzip file ({error})") from None


def _parquet_rows(name: str, raw: BinaryIO) -> Iterator[Row]:
    # Imported here: it takes long and only Parquet files need it.
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        for batch in pq.ParquetFile(raw).iter_batches(batch_size=_BATCH):
            for cells in batch.to_pylist():
                number += 1
                yield Row(number, cells)
    except (pa.ArrowException, OSError) as error:
        problem = str(error).splitlines()[0]
        raise DataError(f"{name}: is no readable Parquet file ({problem})") from None


Write = Callable[[Mapping[str, Any]], None]


@contextmanager
def row_writer(path: str, form: str) -> Iterator[Write]:
    """Write rows to a file or standard output (``-``).

    The file appears when all rows are written, and not at all after an error. The first row's
    columns are the file's; a JSON Lines file takes each row as it is.

    Args:
        path: The file, or ``-``.
        form: One of :data:`STREAMED_FORMATS`.

    Raises:
        DataError: The file can't be written, or a row doesn't fit the columns.
    """
    if path == STANDARD_STREAM:
        with _writer(path, form, sys.stdout.buffer) as write:
            yield write
        return
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            dir=target.parent, prefix=f".{target.name}.", delete=False
        ) as file:
            unfinished = Path(file.name)
            try:
                with _compressed(path, file) as content, _writer(path, form, content) as write:
                    yield write
                file.flush()
                unfinished.chmod(0o644)
                unfinished.replace(target)
            finally:
                unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"{path}: can't be written ({error.strerror or error})") from None


def _compressed(path: str, file: Any) -> AbstractContextManager[BinaryIO]:
    if path.endswith(".gz"):
        compressed: Any = gzip.GzipFile(fileobj=file, mode="wb")
        return closing(compressed)
    return nullcontext(file)


@contextmanager
def _writer(path: str, form: str, file: BinaryIO) -> Iterator[Write]:
    if form == "parquet":
        with _parquet_writer(path, file) as write:
            yield write
        return
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=False)
    try:
        yield (
            _json_line_writer(text)
            if form == "jsonl"
            else _delimited_writer("," if form == "csv" else "\t", text)
        )
    finally:
        text.flush()
        text.detach()


def _json_line_writer(text: IO[str]) -> Write:
    def write(row: Mapping[str, Any]) -> None:
        text.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")

    return write


def _delimited_writer(delimiter: str, text: IO[str]) -> Write:
    rows = csv.writer(text, delimiter=delimiter)
    columns: Sequence[str] = ()

    def write(row: Mapping[str, Any]) -> None:
        nonlocal columns
        if not columns:
            columns = tuple(row)
            rows.writerow(columns)
        rows.writerow([_cell(row.get(column)) for column in columns])

    return write


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


@contextmanager
def _parquet_writer(path: str, file: BinaryIO) -> Iterator[Write]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    batch: list[Mapping[str, Any]] = []
    writer: Any = None

    def flush() -> None:
        nonlocal writer
        if not batch:
            return
        try:
            schema = None if writer is None else writer.schema
            table = pa.Table.from_pylist(batch, schema=schema)
        except pa.ArrowException as error:
            problem = str(error).splitlines()[0]
            raise DataError(f"{path}: rows differ in their types ({problem})") from None
        if writer is None:
            writer = pq.ParquetWriter(file, table.schema)
        writer.write_table(table)
        batch.clear()

    def write(row: Mapping[str, Any]) -> None:
        batch.append(row)
        if len(batch) >= _BATCH:
            flush()

    yield write
    flush()
    if writer is not None:
        writer.close()

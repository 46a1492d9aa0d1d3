"""Write rows one after the other, so that a file larger than memory can pass through."""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO

from or_eval.hostile_text import whole, whole_cell
from or_eval.sources.errors import DataError, shown
from or_eval.sources.files import is_zipped

if TYPE_CHECKING:
    import pyarrow as pa

WRITTEN_KINDS = (".csv", ".tsv", ".jsonl", ".parquet")
_BATCH = 2_000


def write_rows(
    path: Path | None, kind: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]
) -> None:
    """Write rows to a file, which appears when all are written, and not at all after an error.

    Args:
        path: The file; None for standard output.
        kind: One of :data:`WRITTEN_KINDS`.
        columns: The file's columns. A JSON Lines file takes each row as it is.
        rows: The rows.

    Raises:
        DataError: The file can't be written, or a row has another column.
    """
    if path is None:
        _write("standard output", kind, columns, rows, sys.stdout.buffer)
        return
    if path.exists() and not path.is_file():
        raise DataError(f"{path}: can't be written as a file; give another name, or -")
    target = path.resolve()  # a link stays a link
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=target.parent, prefix=".") as folder:
            unfinished = Path(folder) / "rows"
            opened: Any = gzip.open if is_zipped(path) else open
            with opened(unfinished, "wb") as file:
                _write(str(path), kind, columns, rows, file)
            if target.exists():
                shutil.copymode(target, unfinished)
            unfinished.replace(target)
    except OSError as error:
        raise DataError(f"{path}: can't be written ({error.strerror or error})") from None


def _write(
    name: str,
    kind: str,
    columns: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    file: BinaryIO,
) -> None:
    if kind == ".parquet":
        _write_parquet(columns, _with_known_columns(name, columns, rows), file)
        return
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    try:
        if kind == ".jsonl":
            text.writelines(map(_json_line, rows))
        else:
            writer = csv.writer(text, delimiter="," if kind == ".csv" else "\t")
            writer.writerow(map(whole, columns))
            for row in _with_known_columns(name, columns, rows):
                cells = (row.get(column) for column in columns)
                writer.writerow(
                    [whole_cell(_as_json(c) if isinstance(c, list | dict) else c) for c in cells]
                )
    finally:
        text.flush()
        text.detach()


def _with_known_columns(
    name: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Refuse a row with a column for which there is no place, instead of dropping its cell."""
    known = frozenset(columns)
    for row in rows:
        if unknown := next((column for column in row if column not in known), None):
            raise DataError(
                f"{name}: a row has a column {shown(unknown)}, which the first rows don't have; "
                "write a .jsonl file"
            )
        yield row


def _json_line(row: Mapping[str, Any]) -> str:
    line = _as_json(row)
    # UTF-8 can't hold half a character; JSON has an escape for it.
    return (line if whole(line) == line else json.dumps(row, default=str)) + "\n"


def _write_parquet(
    columns: Sequence[str], rows: Iterator[Mapping[str, Any]], file: BinaryIO
) -> None:
    """Write rows in parts first, since the type of a column is known when its last cell is."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with TemporaryDirectory() as folder:
        schemas: list[pa.Schema] = []
        while (batch := list(islice(rows, _BATCH))) or not schemas:
            cells = {whole(name): _array([row.get(name) for row in batch]) for name in columns}
            part = pa.table(cells)
            pq.write_table(part, Path(folder) / f"{len(schemas)}.parquet")
            schemas.append(part.schema)
        names = schemas[0].names
        types = {name: _common_type([s.field(name).type for s in schemas]) for name in names}
        with pq.ParquetWriter(file, pa.schema(types)) as writer:
            for number in range(len(schemas)):
                part = pq.read_table(Path(folder) / f"{number}.parquet")
                cells = {name: _array(part[name].to_pylist(), types[name]) for name in names}
                writer.write_table(pa.table(cells))


def _array(values: Sequence[Any], kind: pa.DataType | None = None) -> pa.Array:
    """Give the cells of a column, as text where they have no type in common."""
    import pyarrow as pa

    try:
        cells = pa.array(map(whole_cell, values), kind)
        # Parquet has no object without members.
        if "struct<>" not in str(cells.type):
            return cells
    except (pa.ArrowException, OverflowError):
        pass
    texts = (v if v is None or isinstance(v, str) else _as_json(v) for v in values)
    return pa.array(map(whole_cell, texts), pa.string())


def _common_type(kinds: Sequence[pa.DataType]) -> pa.DataType:
    import pyarrow as pa

    schemas = [pa.schema({"cell": kind}) for kind in kinds]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field("cell").type
    except pa.ArrowException:
        return pa.string()


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)

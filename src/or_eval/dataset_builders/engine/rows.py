"""Prompt records as the rows of stages: on disk as Parquet, in memory some at a time."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

from or_eval.dataset_builders.errors import BuildError
from or_eval.schema import CHOSEN_BY, VOTES, Label, PromptRecord, prompt_id

if TYPE_CHECKING:
    import pyarrow as pa

Rows: TypeAlias = Collection[PromptRecord]
"""Rows that are counted and can be gone through again and again, in memory or on disk."""

# No stage takes dialogues.
COLUMNS = [field.name for field in fields(PromptRecord) if field.name != "before"]
SEED = "seed"
"""Key of ``meta`` under which a row has the text that it was written from."""
LICENCE = "licence"
"""Key of ``meta`` for the licence of a row, and of what is written from it."""
RESPONSE = "response"
"""Key of ``meta`` for a model's answer to a row; what is published has none."""
BATCH = 2_000
"""Rows that are held at once."""

_REQUIRED = {"id", "prompt", "label", "category", "language", "source"}

Item = TypeVar("Item")


class StoredRows:
    """The rows of a Parquet file.

    Args:
        path: The file.
        reason: Of a file of dropped rows, only those that were dropped for this reason.
    """

    def __init__(self, path: Path, reason: str | None = None) -> None:
        self._path, self._reason = path, reason

    def __iter__(self) -> Iterator[PromptRecord]:
        return (row for batch in self._batches(COLUMNS) for row in _records(batch))

    def __len__(self) -> int:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._reason is not None:
            return sum(len(batch) for batch in self._batches([]))
        try:
            return int(pq.read_metadata(self._path).num_rows)
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self._path) from error

    def __contains__(self, row: object) -> bool:
        return any(row == other for other in self)

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        wanted = [*columns, *([] if self._reason is None else ["reason"])]
        try:
            with pq.ParquetFile(self._path) as file:
                for batch in file.iter_batches(BATCH, columns=wanted):
                    chosen = self._reason is None or pc.equal(batch.column("reason"), self._reason)
                    yield batch if chosen is True else batch.filter(chosen)
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self._path) from error


class Joined:
    """The rows of several inputs, one input after the other, each id once.

    It holds the ids while they are gone through.
    """

    def __init__(self, *parts: Rows) -> None:
        self._parts = parts
        self._length: int | None = None

    def __iter__(self) -> Iterator[PromptRecord]:
        return distinct(row for part in self._parts for row in part)

    def __len__(self) -> int:
        if self._length is None:
            self._length = len({row.id for part in self._parts for row in part})
        return self._length

    def __contains__(self, row: object) -> bool:
        return any(row in part for part in self._parts)


class RowWriter:
    """Writes rows to a Parquet file; the same rows give the same bytes.

    Args:
        path: The file.
        extra: Names of further columns of text.
    """

    def __init__(self, path: Path, extra: Sequence[str] = ()) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.rows = 0
        further = [pa.field(name, pa.string()) for name in extra]
        self._schema = pa.schema([*columns(), *further])
        self._extra = tuple(extra)
        self._waiting: dict[str, list[str | None]] = {name: [] for name in self._schema.names}
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = pq.ParquetWriter(path, self._schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        self._file.close()

    def append(self, row: PromptRecord, *extra: str) -> None:
        """Write a row."""
        told = json.dumps(row.meta, ensure_ascii=False, sort_keys=True) if row.meta else None
        written = {"label": row.label.value, "meta": told}
        for name in COLUMNS:
            self._waiting[name].append(written[name] if name in written else getattr(row, name))
        for name, value in zip(self._extra, extra, strict=True):
            self._waiting[name].append(value)
        self.rows += 1
        if self.rows % BATCH == 0:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._waiting["id"]:
            self._file.write_batch(pa.RecordBatch.from_pydict(self._waiting, schema=self._schema))
            self._waiting = {name: [] for name in self._schema.names}


def columns() -> pa.Schema:
    """Give the columns of every file of rows; all hold text."""
    import pyarrow as pa

    return pa.schema([pa.field(name, pa.string(), name not in _REQUIRED) for name in COLUMNS])


def in_batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Give items some at a time."""
    left = iter(items)
    while some := list(islice(left, size)):
        yield some


def distinct(rows: Iterable[PromptRecord]) -> Iterator[PromptRecord]:
    """Give rows without those whose id came before."""
    seen: set[str] = set()
    for row in rows:
        if row.id not in seen:
            seen.add(row.id)
            yield row


def written_from(
    seed: PromptRecord,
    text: str,
    *,
    method: str,
    language: str,
    meta: dict[str, Any] | None = None,
) -> PromptRecord:
    """Make the record of a prompt that was written from another one.

    Nobody has decided yet what it is, whatever its seed was, so it is unlabelled.

    Args:
        seed: What it was written from; category and source are taken from there.
        text: The new prompt.
        method: How it was written.
        language: BCP-47 tag of the language it was written in.
        meta: What else is to be known of it.
    """
    return PromptRecord(
        id=prompt_id(text),
        prompt=text,
        label=Label.UNLABELLED,
        category=seed.category,
        language=language,
        source=seed.source,
        method=method,
        seed_id=seed.id,
        meta={SEED: seed.prompt} | _passed_on(seed) | (meta or {}),
    )


def _passed_on(seed: PromptRecord) -> dict[str, Any]:
    chosen = {CHOSEN_BY: sorted(seed.meta[VOTES])} if VOTES in seed.meta else {}
    return chosen | {key: seed.meta[key] for key in (LICENCE, CHOSEN_BY) if key in seed.meta}


def with_meta(row: PromptRecord, **facts: Any) -> PromptRecord:
    """Give a row with further facts in its ``meta``."""
    return replace(row, meta=row.meta | facts)


def _unreadable(path: Path) -> BuildError:
    return BuildError(
        f"{path.parent}: its rows can't be read; remove the folder and run the same command again: "
        "no model is asked again"
    )


def _records(batch: pa.RecordBatch) -> Iterator[PromptRecord]:
    for cells in batch.select(COLUMNS).to_pylist():
        cells["label"] = Label(cells["label"])
        cells["meta"] = json.loads(cells["meta"]) if cells["meta"] else {}
        yield PromptRecord(**cells)

"""Load prompts: the one way from a catalogue name, a Hub id or a file to prompt records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from importlib.resources import as_file, files
from logging import getLogger
from pathlib import Path
from typing import NamedTuple

from or_eval.schema import PromptRecord
from or_eval.sources.catalogue import Entry, catalogue, catalogue_entry, unknown_entry
from or_eval.sources.conventions import conventional_layout, label_of_word, unlabelled_error
from or_eval.sources.errors import DataError, shown
from or_eval.sources.files import data_suffix, read_table, stream_table
from or_eval.sources.hub import hub_place, read_hub
from or_eval.sources.layout import Layout
from or_eval.sources.records import Reading, Seen, records_of, stream_records
from or_eval.sources.tables import Table

logger = getLogger(__name__)


class LoadedPrompts(NamedTuple):
    """What a source gave.

    Attributes:
        records: The prompts, in the source's order; never empty.
        duplicates: How many exact duplicates the source had, before any filter; they are dropped.
        name: Catalogue name, Hub id or file name.
        revision: Which state of the data this is: a commit on the Hub, or a file's hash.
    """

    records: list[PromptRecord]
    duplicates: int
    name: str
    revision: str | None = None


def load_prompts(
    data: str | Path,
    *,
    source: str | None = None,
    label: str | None = None,
    language: str | None = None,
    category: str | None = None,
) -> LoadedPrompts:
    """Load prompts from the catalogue, the Hub or a file.

    Args:
        data: A catalogue name (``xstest``); a Hub id (``owner/name``, ``owner/name:config`` or
            ``owner/name:config:split``); or the path of a csv, tsv, jsonl, json, txt (each also
            with ``.gz``) or parquet file.
        source: Catalogue entry to read a Hub data set or file by. Without it, columns are found
            by their conventional names.
        label: Label of all prompts, ``safe`` or ``toxic``, for data that doesn't tell.
        language: Keep only prompts of this language.
        category: Keep only prompts of this category (upper and lower case are the same).

    Returns:
        The prompts, without exact duplicates.

    Raises:
        DataError: The data can't be had, or something in it is wrong; the message is one line
            that names file, row and column and says what to do.
    """
    reading = _reading(data, source, label, read_table)
    loaded = records_of(reading)
    records = _filtered(loaded.records, "language", language, reading.source)
    records = _filtered(records, "category", category, reading.source)
    return LoadedPrompts(records, loaded.duplicates, reading.source, reading.table.revision)


class StreamedPrompts:
    """Prompts that are read from their source each time they are gone through, some at a time.

    It holds their ids while they are. Files in the format JSON are held whole.

    Args:
        data: As for :func:`load_prompts`.
        source: As there.
        label: As there.

    Attributes:
        name: Catalogue name, Hub id or file name.
        seen: What the rows held so far, when last gone through.

    Raises:
        DataError: As there; of what is wrong in a row, when the prompts are gone through.
    """

    def __init__(
        self, data: str | Path, source: str | None = None, label: str | None = None
    ) -> None:
        self._reading = _reading(data, source, label, stream_table)
        self.name = self._reading.source
        self.seen = Seen()

    def __iter__(self) -> Iterator[PromptRecord]:
        self.seen = Seen()
        return stream_records(self._reading, self.seen)


def _reading(
    data: str | Path, source: str | None, label: str | None, read: Callable[[Path], Table]
) -> Reading:
    entry = catalogue_entry(source) if source is not None else None
    if entry is None and str(data) in catalogue():
        entry = catalogue_entry(str(data))
    if entry is not None and entry.warning is not None:
        logger.warning("%s: %s", entry.name, entry.warning)
    table = _table(data, entry, read)
    name = entry.name if entry is not None else table.title
    layout = _layout(table, entry, label)
    return Reading(table, layout, name, name if entry is not None else None)


def _table(data: str | Path, entry: Entry | None, read: Callable[[Path], Table]) -> Table:
    if str(data) in catalogue():
        return _table_of_entry(catalogue_entry(str(data)))
    path = Path(data).expanduser()
    place = hub_place(str(data))
    if path.exists() or data_suffix(path) is not None:
        return read(path)
    if place is not None:
        own_place = entry.hub if entry is not None else None
        return read_hub(own_place if own_place and own_place.id == data else place)
    if path.suffix or len(path.parts) > 1:
        raise DataError(f"{data}: there is no such file")
    raise unknown_entry(str(data))


def _table_of_entry(entry: Entry) -> Table:
    if entry.bundled is not None:
        with as_file(files("or_eval") / "data" / entry.bundled) as path:
            return read_table(path)
    if entry.hub is None:
        raise DataError(
            f"{entry.name}: is not on the Hub; get it from {entry.url or 'its publisher'} "
            f"and pass -T data=PATH -T source={entry.name}"
        )
    return read_hub(entry.hub)


def _layout(table: Table, entry: Entry | None, label: str | None) -> Layout:
    layout = entry.layout if entry is not None else Layout()
    if not layout.texts:
        layout = conventional_layout(table, layout)
    if label is not None:
        layout = _with_label(table, layout, label)
    elif layout.label is None and not layout.tells_labels:
        raise unlabelled_error(table)
    return layout


def _with_label(table: Table, layout: Layout, word: str) -> Layout:
    label = label_of_word(word)
    if label is None:
        raise DataError(f"label: {shown(word)} is neither safe nor toxic")
    if layout.tells_labels:
        own = (
            f"in column {shown(layout.label_from.column)}"
            if layout.label_from is not None
            else "by its catalogue entry"
        )
        raise DataError(f"{table.name}: has labels of its own ({own}); leave label= out")
    return layout.model_copy(update={"label": label})


def _filtered(
    records: list[PromptRecord], facet: str, wanted: str | None, name: str
) -> list[PromptRecord]:
    """Keep the records of a language or category.

    Raises:
        DataError: There are none; the line tells what there is.
    """
    if wanted is None:
        return records
    folded = wanted.strip().casefold()
    kept = [record for record in records if getattr(record, facet).casefold() == folded]
    if not kept:
        counts = Counter(getattr(record, facet) for record in records)
        there = ", ".join(f"{value} ({count})" for value, count in counts.most_common())
        raise DataError(f"{name}: no prompt is of {facet} {shown(wanted)}; there are: {there}")
    return kept

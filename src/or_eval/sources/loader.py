"""Load prompts: the one way from a catalogue name, a Hub id or a file to prompt records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import as_file, files
from itertools import islice, zip_longest
from logging import getLogger
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from inspect_ai.util import warn_once

from or_eval.schema import Label, PromptRecord
from or_eval.sources.catalogue import Entry, catalogue, catalogue_entry
from or_eval.sources.columns import TASK_OPTIONS, ColumnOptions, chosen_layout, fitting_entries
from or_eval.sources.errors import DataError, shown
from or_eval.sources.files import data_suffix, read_table
from or_eval.sources.hub import hub_place, read_hub
from or_eval.sources.records import PromptRows
from or_eval.sources.tables import Table

logger = getLogger(__name__)

Subset = Literal["safe", "toxic", "unsafe", "all"]
"""Which prompts to keep by their label; ``unsafe`` is XSTest's word for toxic."""

_LABELS = {
    "safe": {Label.SAFE},
    "toxic": {Label.TOXIC},
    "unsafe": {Label.TOXIC},
    "all": set(Label),
}


class LoadedPrompts(NamedTuple):
    """What a source gave.

    Attributes:
        records: The prompts, in the source's order; never empty.
        duplicates: How many exact duplicates the source had, before any filter; they are dropped.
        name: Catalogue name, Hub id or file name.
        revision: Which state of the data this is: a commit on the Hub, or a file's hash.
        again: The exact duplicates themselves.
    """

    records: list[PromptRecord]
    duplicates: int
    name: str
    revision: str | None = None
    again: Sequence[PromptRecord] = ()


def load_prompts(
    data: str | Path,
    *,
    source: str | None = None,
    label: str | None = None,
    prompt_column: str | None = None,
    label_column: str | None = None,
    subset: Subset = "all",
    language: str | None = None,
    category: str | None = None,
    per_label: int | None = None,
    options: ColumnOptions = TASK_OPTIONS,
) -> LoadedPrompts:
    """Load prompts from the catalogue, the Hub or a file.

    Args:
        data: A catalogue name (``xstest``); a Hub id (``owner/name``, ``owner/name:config`` or
            ``owner/name:config:split``); or the path of a csv, tsv, jsonl, json, txt (each also
            with ``.gz``), xlsx or parquet file.
        source: Catalogue entry to read a Hub data set or file by. Without it, data whose columns
            fit exactly one entry are read by that one, and others by what columns are
            conventionally called.
        label: Label of all prompts, ``safe`` or ``toxic``, for data that doesn't tell; or what
            the words in its label column mean, as ``0=safe,1=toxic``.
        prompt_column: The column with the prompts, where its name doesn't tell.
        label_column: The column with their labels, where its name doesn't tell; ``none`` where
            the one that is called so has none.
        subset: Keep only ``safe`` or ``toxic`` prompts.
        language: Keep only prompts of this language.
        category: Keep only prompts of this category, or of these, with commas between them (upper
            and lower case are the same).
        per_label: Keep only this many prompts of each label, in turn from its categories.
        options: How whoever reads the error lines gives these, where that isn't to a task.

    Returns:
        The prompts, without exact duplicates.

    Raises:
        DataError: The data can't be had, or something in it is wrong; the message is one line
            that names file, row and column and says what to do.
    """
    columns = {"prompt": prompt_column, "label": label_column}
    rows = stream_prompts(data, source, label, columns, options)
    records = _chosen(
        list(rows),
        rows.source,
        subset=subset,
        language=language,
        category=category,
        per_label=per_label,
    )
    revision = rows.table.revision
    return LoadedPrompts(records, rows.duplicates, rows.source, revision, rows.again)


def stream_prompts(
    data: str | Path,
    source: str | None = None,
    label: str | None = None,
    columns: Mapping[str, str | None] = MappingProxyType({}),
    options: ColumnOptions = TASK_OPTIONS,
) -> PromptRows:
    """Give prompts that are read from their source each time they are gone through.

    That is some at a time; files in the format JSON are held whole.

    Args:
        data: As for :func:`load_prompts`.
        source: As there.
        label: As there.
        columns: The columns with the prompts and their labels, by role, where names don't tell.
        options: As there.

    Raises:
        DataError: As there; of what is wrong in a row, when the prompts are gone through.
    """
    named = {role: column for role, column in columns.items() if column is not None}
    name = str(data).removeprefix("or_eval/")  # as its task is called
    data = name if name in catalogue() else data
    entry = catalogue_entry(source) if source is not None else catalogue().get(str(data))
    table = _table(data, entry)
    if entry is None and not named:
        entry = _only_fitting(table)
    if entry is not None and entry.warning is not None:
        logger.warning("%s: %s", entry.name, entry.warning)
    layout = chosen_layout(table, entry, label, named, options)
    if entry is None:
        told = {str(role): lookup.column for role, lookup in layout.columns.items()}
        taken = options.taken({"prompt": layout.texts[0].column, **told})
        warn_once(logger, f"{table.name}: {taken}")
    return PromptRows(table, layout, entry)


def _only_fitting(table: Table) -> Entry | None:
    """Give the entry to read a table by that no entry was named for, and say so."""
    match fitting_entries(table.columns):
        case [name]:
            warn_once(logger, f"{table.name}: has the columns of {name} and is read as that")
            return catalogue_entry(name)
    return None


def _table(data: str | Path, entry: Entry | None) -> Table:
    path, place = Path(data).expanduser(), hub_place(str(data))
    if str(data) in catalogue():
        return _table_of_entry(catalogue()[str(data)])
    if path.exists() or data_suffix(path) is not None:
        return read_table(path, entry.header if entry is not None else ())
    if place is None and (path.suffix or len(path.parts) > 1):
        raise DataError(f"{data}: there is no such file")
    if place is None:
        return _table_of_entry(catalogue_entry(str(data)))  # says that there is none
    own = entry.hub if entry is not None else None
    if own is not None and own.id == str(data):
        return read_hub(own)
    if own is not None and own.id == place.id:
        place = place.model_copy(update={"revision": own.revision})
    return read_hub(place)


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


def _chosen(
    records: Sequence[PromptRecord],
    name: str,
    *,
    subset: Subset = "all",
    language: str | None = None,
    category: str | None = None,
    per_label: int | None = None,
) -> list[PromptRecord]:
    """Keep some of a source's prompts, in their order; the line of an error tells what there is."""
    if subset not in _LABELS:
        raise DataError(f"subset: {shown(subset)} isn't one of {', '.join(_LABELS)}")
    kept = [record for record in records if record.label in _LABELS[subset]]
    if not kept:
        there = _counted(record.label for record in records)
        raise DataError(f"{name}: has no {subset} prompts; there are: {there}")
    kept = _of(kept, "language", language, name)
    kept = _of(kept, "category", category, name)
    return kept if per_label is None else _some_of_each_label(kept, per_label)


def _of(
    records: list[PromptRecord], facet: str, wanted: str | None, name: str
) -> list[PromptRecord]:
    if wanted is None:
        return records
    values = [getattr(record, facet).casefold() for record in records]
    names = _names(wanted.casefold(), set(values))
    if missing := next((word for word in names if word not in values), None):
        there = _counted(getattr(record, facet) for record in records)
        raise DataError(f"{name}: no prompt has the {facet} {shown(missing)}; there are: {there}")
    return [record for record, value in zip(records, values, strict=True) if value in names]


def _names(wanted: str, known: set[str]) -> list[str]:
    """Take a list of names apart at its commas, but for those that are part of a known name."""
    names: list[str] = []
    parts = wanted.split(",")
    while parts:
        ends = range(len(parts), 0, -1)
        joined = {end: ",".join(parts[:end]).strip() for end in ends}
        end = next((end for end in ends if joined[end] in known), 1)
        names.append(joined[end])
        parts = parts[end:]
    return names


def _some_of_each_label(records: list[PromptRecord], limit: int) -> list[PromptRecord]:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise DataError(f"per_label: {shown(limit)} isn't a whole number of 1 or more")
    groups: dict[Label, dict[str, list[PromptRecord]]] = {}
    for record in records:
        groups.setdefault(record.label, {}).setdefault(record.category, []).append(record)
    kept: set[str] = set()
    for categories in groups.values():
        in_turn = (record for turn in zip_longest(*categories.values()) for record in turn)
        kept |= {record.id for record in islice(filter(None, in_turn), limit)}
    return [record for record in records if record.id in kept]


def _counted(values: Iterable[str]) -> str:
    return ", ".join(f"{value} ({count})" for value, count in Counter(values).most_common())

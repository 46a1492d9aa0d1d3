"""How a table is read: by a catalogue entry, or by what its columns are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from or_eval.schema import Label
from or_eval.sources.catalogue import Entry, catalogue
from or_eval.sources.conventions import (
    NO_COLUMN,
    PROMPT_ROLES,
    columns_by_role,
    columns_for,
    label_of_word,
)
from or_eval.sources.errors import DataError, shown
from or_eval.sources.layout import Layout, Lookup, RowRole, TextColumn
from or_eval.sources.tables import Table


def chosen_layout(
    table: Table, entry: Entry | None, label: str | None, named: Mapping[str, str]
) -> Layout:
    """Give the layout to read a table by.

    Args:
        table: The data.
        entry: Catalogue entry to read it by; None: by what its columns are called.
        label: What a person says of the labels (see :func:`labelled`).
        named: Columns by role (``prompt``, ``label``), where a person names them.

    Raises:
        DataError: Nothing tells which column holds what or what the labels are, or something is
            told twice.
    """

    def remedy(role: str) -> str:
        how = f"name it with -T {role}_column=" if role in ("prompt", "label") else ""
        return (how or "rename all but one") + _entries_hint(table)

    if entry is None:
        layout = layout_of(columns_by_role(table, PROMPT_ROLES, named, ["prompt"], remedy))
    elif named:
        raise DataError(
            f"{next(iter(named))}_column: {entry.name} says which columns hold what; leave "
            "one of the two out"
        )
    else:
        layout = entry.layout
    if label is not None:
        return labelled(table, layout, label)
    if layout.label is None and not layout.tells_labels:
        raise DataError(
            f"{table.name}: nothing tells whether its prompts are safe or toxic (no column "
            "'label'); pass -T label=safe or -T label=toxic, or name the column with "
            f"-T label_column={_entries_hint(table)}"
        )
    return layout


def fitting_entries(columns: Sequence[str]) -> list[str]:
    """Give the entries that explain most of a file's columns, or none where hardly any is.

    An entry fits that finds all its publisher's columns, and passes over none that names alone
    would tell.
    """
    fitting: dict[str, int] = {}
    for name, entry in catalogue().items():
        layout = entry.layout
        needed = {*layout.required_columns(), *layout.meta.values()}
        named = needed | set(layout.named_columns())
        passed_over = [column for column in columns if column not in named]
        told = any(columns_for(role, passed_over) for role in ("dialogue", *PROMPT_ROLES))
        if needed <= set(columns) and not told and entry.same_file_as is None:
            fitting[name] = len(named & set(columns))
    most = max(fitting.values(), default=0)
    # A single column, mostly `prompt`, tells nothing.
    return [name for name, explained in fitting.items() if explained == most > 1]


def _entries_hint(table: Table) -> str:
    fitting = fitting_entries(table.columns)
    if not fitting:
        return ", or pass -T source= with the catalogue entry to read it by"
    return f", or pass -T source= (its columns fit {', '.join(fitting)})"


def layout_of(columns: Mapping[str, str]) -> Layout:
    """Give the layout of a table whose columns are known by role."""
    dialogue = columns.get("dialogue")
    text = TextColumn(column=dialogue or columns["prompt"], dialogue=dialogue is not None)
    roles = (role for role in get_args(RowRole) if role in columns)
    return Layout(texts=(text,), columns={role: Lookup(column=columns[role]) for role in roles})


def labelled(table: Table, layout: Layout, told: str) -> Layout:
    """Give a layout the label of all its prompts, or what the words in its label column mean.

    Args:
        table: The data.
        layout: The layout.
        told: A label, or words with one each, as ``0=safe,1=toxic``.

    Raises:
        DataError: It has no meaning, or the layout says so already.
    """
    words = dict(part.split("=", 1) for part in told.split(",") if "=" in part)
    labels: dict[str, str] = {
        word.strip(): _label(label) for word, label in (words or {"": told}).items()
    }
    column = layout.columns.get("label")
    if words and column is not None and not column.words:
        label: dict[RowRole, Lookup] = {"label": Lookup(column=column.column, words=labels)}
        return layout.model_copy(update={"columns": layout.columns | label})
    if words:
        raise DataError(
            f"label: {table.name} has no column of labels with words to translate; name it with "
            "label_column="
        )
    if layout.tells_labels:
        own = f"in column {shown(column.column)}" if column else "by its catalogue entry"
        raise DataError(
            f"{table.name}: has labels of its own ({own}); leave label= out"
            + (f", or give label_column={NO_COLUMN}" if column else "")
        )
    return layout.model_copy(update={"label": labels[""]})


def _label(word: str) -> Label:
    label = label_of_word(word)
    if label is None:
        raise DataError(f"label: {shown(word)} is neither safe nor toxic")
    return label

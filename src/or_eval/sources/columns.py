"""Which columns of a table hold what: by a catalogue entry, or by what they are called."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

from or_eval.schema import Label
from or_eval.sources.catalogue import Entry, Layout, Lookup, RowRole, TextColumn, catalogue
from or_eval.sources.errors import DataError, shown
from or_eval.sources.tables import Table

PROMPT_ROLES = (
    *("prompt", "label", "category", "language", "id"),
    *("method", "source", "seed_id", "pair_id", "meta"),
)
"""What the columns of a prompt set say, each by a column of its own."""

_IN_DIALOGUES = ("prompt", "response")
_FIRST_COUNTS = ("stop_reason", "reasoning")

NO_MODELS: Mapping[str, str] = MappingProxyType({})

NO_COLUMN = "none"
"""Given for a column's name, it says that the data have no column of that role."""


class ColumnOptions(NamedTuple):
    """The options by which a person names columns, which differ from command to command.

    Attributes:
        named: Each role that has one, with its option; under ``responses`` the one for columns
            with the responses of a model each, under ``labels`` the one for the label of all
            prompts, and under ``entry`` the one for the catalogue entry to read the data by.
    """

    named: tuple[tuple[str, str], ...] = ()

    def of(self, role: str) -> str | None:
        """Give the option for a role, if it has one."""
        return dict(self.named).get(role)

    def taken(self, columns: Mapping[str, str], models: Mapping[str, str] = NO_MODELS) -> str:
        """Say in a line which columns are read, and which options name others.

        Args:
            columns: The column of each role.
            models: The model of each column of responses, where each model has one of its own.
        """
        said = [f"{role} in {shown(column)}" for role, column in columns.items()]
        if models:
            of = (f"{shown(column)} ({model})" for column, model in models.items())
            said.insert(0, f"responses in {', '.join(of)}")
        roles = [*(["responses"] if models else []), *columns]
        others = [option for role in roles if (option := self.of(role))]
        return f"columns read: {', '.join(said)}" + (
            f" (others: {', '.join(others)})" if others else ""
        )


NO_OPTIONS = ColumnOptions()
TASK_OPTIONS = ColumnOptions(
    (
        *(("prompt", "-T prompt_column="), ("label", "-T label_column=")),
        *(("labels", "-T label=safe or -T label=toxic"), ("entry", "-T source=")),
    )
)


def chosen_layout(
    table: Table,
    entry: Entry | None,
    label: str | None,
    named: Mapping[str, str],
    options: ColumnOptions,
) -> Layout:
    """Give the layout to read a table by.

    Args:
        table: The data.
        entry: Catalogue entry to read it by; None: by what its columns are called.
        label: What a person says of the labels (see :func:`labelled`).
        named: Columns by role (``prompt``, ``label``), where a person names them.
        options: How whoever reads the error lines names them.

    Raises:
        DataError: Nothing tells which column holds what or what the labels are, or something is
            told twice.
    """
    if entry is None:
        columns = columns_by_role(table, PROMPT_ROLES, named, ["prompt"], options)
        layout = layout_of(columns)
    elif named:
        raise DataError(
            f"{next(iter(named))}_column: {entry.name} says what each column is; leave "
            "one of the two out"
        )
    else:
        layout = entry.layout
    if label is not None:
        return labelled(table, layout, label)
    if layout.label is None and not layout.tells_labels:
        of_all, column = options.of("labels"), options.of("label")
        ways = [f"pass {of_all}"] if of_all else []
        ways += [f"name the column with {column}"] if column else []
        raise DataError(
            f"{table.name}: nothing tells whether its prompts are safe or toxic (no column "
            f"'label'); {', or '.join(ways) or 'add one'}{_entries_hint(table, options)}"
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


def _entries_hint(table: Table, options: ColumnOptions) -> str:
    fitting, option = fitting_entries(table.columns), options.of("entry")
    if option is None:
        return ""
    if not fitting:
        return f", or pass {option} with the catalogue entry to read it by"
    return f", or pass {option} (its columns fit {', '.join(fitting)})"


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


def columns_by_role(
    table: Table,
    roles: Sequence[str],
    named: Mapping[str, str],
    required: Collection[str] = (),
    options: ColumnOptions = NO_OPTIONS,
) -> dict[str, str]:
    """Find the column of each role: the one rule for all files, whichever command reads them.

    One of dialogues (role ``dialogue``) holds the prompts, unless another is named for them, and
    may hold the responses.

    Args:
        table: The data.
        roles: Which roles to find columns for.
        named: Columns by role, where their own names don't tell; as the file writes them, or with
            other case, spaces, hyphens and underscores.
        required: Which roles must have one.
        options: How whoever reads the error lines names columns.

    Raises:
        DataError: A column is missing, or several could be meant.
    """
    columns: dict[str, str] = {}
    given = {
        role: [] if name == NO_COLUMN else [named_column(table, name, options.of(role))]
        for role, name in named.items()
        if role in roles
    }
    dialogues = columns_for("dialogue", given.get("prompt", table.columns))
    for role in ("dialogue", *roles):
        by_name = dialogues if role == "dialogue" else columns_for(role, table.columns)
        found = given.get(role, by_name)
        asked = "prompt" if role == "dialogue" else role
        if len(found) > 1 and role not in _FIRST_COUNTS:
            raise DataError(
                f"{table.name}: columns {', '.join(map(shown, found))} could each be the {role}; "
                + _remedy(table, asked, options, "rename all but one")
            )
        if role in required and not found and not (dialogues and role in _IN_DIALOGUES):
            remedy = _remedy(table, role, options, f"call one {role}")
            if role == "response" and (several := options.of("responses")):
                remedy += f", or with {several} where each model has a column"
            raise DataError(
                f"{table.name}: no column is named {role} or similar; {_there_are(table)}; {remedy}"
            )
        if found:
            columns[role] = found[0]
    return columns


def named_column(table: Table, name: str, option: str | None = None) -> str:
    """Give the column that a person named, as the file writes it.

    Raises:
        DataError: There is none, or two are alike but for case and spaces.
    """
    meant = [name] if name in table.columns else alike(name, table.columns)
    if len(meant) == 1:
        return meant[0]
    by = f" ({option})" if option else ""
    near = get_close_matches(_folded(name), map(_folded, table.columns), n=1)
    nearest = f"did you mean {shown(alike(near[0], table.columns)[0])}; " if near else ""
    raise DataError(f"{table.name}: has no column {shown(name)}{by}; {nearest}{_there_are(table)}")


def alike(name: str, columns: Sequence[str]) -> list[str]:
    """Give the columns of this name, whatever their case, spaces, hyphens and underscores."""
    return [column for column in columns if _folded(column) == _folded(name)]


def _remedy(table: Table, role: str, options: ColumnOptions, otherwise: str) -> str:
    option = options.of(role)
    how = f"say which it is with {option}" if option else otherwise
    return how + _entries_hint(table, options)


def _there_are(table: Table) -> str:
    there = f"there are: {', '.join(map(shown, table.columns))}"
    if len(table.columns) == 1 and re.search(r"\w[^\w\s]+\w", table.columns[0]):
        there += " (commas, semicolons, tabs or bars divide cells)"
    return there


def columns_for(role: str, columns: Sequence[str]) -> list[str]:
    """Give the columns whose names conventionally stand for a role, as ``prompt``."""
    names = set(map(_folded, _conventions()["columns"][role]))
    return [column for column in columns if _folded(column) in names]


def _folded(column: str) -> str:
    return re.sub(r"[\s_-]+", "", column).casefold()


def label_of_word(word: str) -> Label | None:
    """Give the label that a word stands for, such as ``unsafe`` for toxic."""
    label = _key_of("labels", word)
    return None if label is None else Label(label)


def turn_word(word: str) -> str | None:
    """Give what a word in a turn stands for: ``role``, ``text``, or who speaks."""
    return _key_of("turns", word)


def _key_of(table: str, word: str) -> str | None:
    folded, words = word.strip().casefold(), _conventions()[table]
    return next((key for key, known in words.items() if folded in known), None)


def model_beside_response(column: str) -> str | None:
    """Give the name that stands beside a word for a response in a column's name."""
    words = "|".join(_conventions()["columns"]["response_of_a_model"])
    found = re.fullmatch(rf"(?:{words})[\W_]+(.+)|(.+?)[\W_]+(?:{words})", column.strip(), re.I)
    return (found[1] or found[2]) if found is not None else None


@cache
def _conventions() -> dict[str, Any]:
    text = (files("or_eval.sources") / "conventions.toml").read_text("utf-8")
    return tomllib.loads(text)

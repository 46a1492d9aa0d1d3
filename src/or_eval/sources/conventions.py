"""What columns and words conventionally mean, where nothing else says it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from or_eval.schema import Label
from or_eval.sources.errors import DataError, shown
from or_eval.sources.tables import Table

PROMPT_ROLES = (
    *("prompt", "label", "category", "language", "id"),
    *("method", "source", "seed_id", "pair_id", "meta"),
)
"""What the columns of a prompt set say, each by a column of its own."""

_IN_DIALOGUES = ("prompt", "response")
_FIRST_COUNTS = ("stop_reason", "reasoning")

NO_COLUMN = "none"
"""Given for a column's name, it says that the data have no column of that role."""


def columns_by_role(
    table: Table,
    roles: Sequence[str],
    named: Mapping[str, str],
    required: Collection[str],
    remedy: Callable[[str], str],
) -> dict[str, str]:
    """Find the column of each role.

    One of dialogues (role ``dialogue``) holds the prompts, unless another is named for them, and
    may hold the responses.

    Args:
        table: The data.
        roles: Which roles to find columns for.
        named: Columns by role, where their own names don't tell.
        required: Which roles must have one.
        remedy: Says of a role what a person does whose column isn't told by its name.

    Raises:
        DataError: A column is missing, or several could be meant.
    """
    columns: dict[str, str] = {}
    prompt = named.get("prompt")
    dialogues = columns_for("dialogue", table.columns if prompt is None else [prompt])
    for role in ("dialogue", *roles):
        name = named.get(role)
        if name == NO_COLUMN:
            continue
        if name is not None and name not in table.columns:
            raise no_column(table, name)
        found = [name] if name is not None else columns_for(role, table.columns)
        found = dialogues if role == "dialogue" else found
        if len(found) > 1 and role not in _FIRST_COUNTS:
            raise DataError(
                f"{table.name}: columns {', '.join(map(shown, found))} could each be the {role}; "
                + remedy("prompt" if role == "dialogue" else role)
            )
        if role in required and not found and not (dialogues and role in _IN_DIALOGUES):
            raise DataError(
                f"{table.name}: no column is named {role} or the like; {_there_are(table)}; "
                + remedy(role)
            )
        if found:
            columns[role] = found[0]
    return columns


def no_column(table: Table, name: str) -> DataError:
    """Make the error line for a column that was named and isn't there."""
    return DataError(f"{table.name}: has no column {shown(name)}; {_there_are(table)}")


def _there_are(table: Table) -> str:
    there = f"there are: {', '.join(map(shown, table.columns))}"
    if len(table.columns) == 1 and re.search(r"\w[^\w\s]+\w", table.columns[0]):
        there += " (commas, semicolons, tabs or bars divide cells)"
    return there


def columns_for(role: str, columns: Sequence[str]) -> list[str]:
    """Give the columns whose names conventionally stand for a role, as ``prompt``."""
    names = _conventions()["columns"][role]
    return [column for column in columns if column.strip().casefold() in names]


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

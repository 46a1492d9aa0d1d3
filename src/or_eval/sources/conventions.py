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
    option: Callable[[str], str],
) -> dict[str, str]:
    """Find the column of each role.

    One of dialogues (role ``dialogue``) holds the prompts, unless another is named for them, and
    may hold the responses.

    Args:
        table: The data.
        roles: Which roles to find columns for.
        named: Columns by role, where their own names don't tell.
        required: Which roles must have one.
        option: Says of a role what a person does whose column isn't told by its name.

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
                + option("prompt" if role == "dialogue" else role)
            )
        if role in required and not found and not (dialogues and role in _IN_DIALOGUES):
            raise DataError(
                f"{table.name}: no column is named {role} or the like; {_there_are(table)}; "
                + option(role)
            )
        if found:
            columns[role] = found[0]
    return columns


def no_column(table: Table, name: str) -> DataError:
    """Make the error line for a column that was named and isn't there."""
    return DataError(f"{table.name}: has no column {shown(name)}; {_there_are(table)}")


def columns_for(role: str, columns: Sequence[str]) -> list[str]:
    """Give the columns whose names conventionally stand for a role, as ``prompt``."""
    names = _conventions()["columns"][role]
    return [column for column in columns if column.strip().casefold() in names]


def label_of_word(word: str) -> Label | None:
    """Give the label that a word stands for, such as ``unsafe`` for toxic."""
    folded = word.strip().casefold()
    words = _conventions()["labels"]
    return next((label for label in Label if folded in words[label.value]), None)


def turn_key(word: str) -> str:
    """Give what a key of a turn in a dialogue stands for: role, text, or who says what it holds."""
    return _turn_word(word) or word


def turn_role(word: str) -> str | None:
    """Give who a word for a speaker stands for: user, assistant or system."""
    found = _turn_word(word)
    return found if found in ("user", "assistant", "system") else None


def _turn_word(word: str) -> str | None:
    words = _conventions()["turns"]
    return next((key for key, known in words.items() if word.strip().casefold() in known), None)


def response_words() -> list[str]:
    """Give patterns of the words for a response that stand beside a model in a column's name."""
    words: list[str] = _conventions()["columns"]["response_of_a_model"]
    return words


def _there_are(table: Table) -> str:
    there = f"there are: {', '.join(map(shown, table.columns))}"
    if len(table.columns) == 1 and re.search(r"\w[^\w\s]+\w", table.columns[0]):
        there += " (if another character divides cells, name it as the delimiter)"
    return there


@cache
def _conventions() -> dict[str, Any]:
    text = (files("or_eval.sources") / "conventions.toml").read_text("utf-8")
    return tomllib.loads(text)

"""Read data that follows no catalogue entry, by what its columns are called."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from or_eval.schema import Label
from or_eval.sources.catalogue import fitting_entries
from or_eval.sources.errors import DataError, shown
from or_eval.sources.layout import Layout, Lookup, TextColumn
from or_eval.sources.tables import Table


def conventional_layout(table: Table, layout: Layout) -> Layout:
    """Complete a layout that names no columns by the conventional names among a table's.

    Args:
        table: The data.
        layout: What is known besides, such as a label or a language.

    Raises:
        DataError: No column, or more than one, could hold the prompts; or two columns could hold
            the same fact about them.
    """

    def column(role: str) -> str | None:
        found = columns_for(role, table)
        if len(found) > 1:
            raise DataError(
                f"{table.name}: columns {_listed(found)} could each be the {role}; "
                f"rename all but one{_entries_hint(table)}"
            )
        return found[0] if found else None

    def lookup(role: str) -> Lookup | None:
        found = column(role)
        return Lookup(column=found) if found is not None else None

    prompt = column("prompt")
    if prompt is None:
        raise DataError(
            f"{table.name}: no column is named prompt, text, question or the like (there are: "
            f"{_listed(table.columns)}); rename the one with the prompts{_entries_hint(table)}"
        )
    return layout.model_copy(
        update={
            "texts": (TextColumn(column=prompt),),
            "label_from": None if layout.label else lookup("label"),
            "language_from": None if layout.language else column("language"),
            "category_from": lookup("category"),
            "method_from": lookup("method"),
            "source_from": column("source"),
            "id": column("id"),
            "seed_id": column("seed_id"),
            "pair_id": column("pair_id"),
            "meta_from": column("meta"),
        }
    )


def unlabelled_error(table: Table) -> DataError:
    """Make the error line for data that doesn't say what its prompts are."""
    return DataError(
        f"{table.name}: nothing tells whether its prompts are safe or toxic (no column 'label'); "
        f"pass -T label=safe or -T label=toxic{_entries_hint(table)}"
    )


def label_of_word(word: str) -> Label | None:
    """Give the label that a word stands for, such as ``unsafe`` for toxic."""
    folded = word.strip().casefold()
    words = _conventions()["labels"]
    return next((label for label in Label if folded in words[label.value]), None)


def detected_languages() -> list[str]:
    """Give the tags of the languages that are told apart in texts of unknown language."""
    languages: list[str] = _conventions()["languages"]["detected"]
    return languages


def columns_for(role: str, table: Table) -> list[str]:
    """Give the columns of a table whose names conventionally stand for a role, as ``prompt``."""
    names = _conventions()["columns"][role]
    return [column for column in table.columns if column.strip().casefold() in names]


def response_words() -> list[str]:
    """Give patterns of the words for a response that stand beside a model in a column's name."""
    words: list[str] = _conventions()["columns"]["response_of_a_model"]
    return words


def _entries_hint(table: Table) -> str:
    fitting = fitting_entries(table.columns)
    if not fitting:
        return ", or pass -T source= with the catalogue entry to read it by"
    return f", or pass -T source= (its columns fit {', '.join(fitting)})"


def _listed(columns: tuple[str, ...] | list[str]) -> str:
    return ", ".join(shown(column) for column in columns)


@cache
def _conventions() -> dict[str, Any]:
    text = (files("or_eval.sources") / "conventions.toml").read_text("utf-8")
    return tomllib.loads(text)

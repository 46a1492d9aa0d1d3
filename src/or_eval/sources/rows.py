"""Read what a row says of its prompts: words, categories, further facts."""

from __future__ import annotations

import ast
import json
from typing import Any

from or_eval.sources.errors import shown
from or_eval.sources.layout import Layout, Lookup
from or_eval.sources.tables import Row, Table


def word_of(table: Table, row: Row, lookup: Lookup | None) -> str:
    """Give a row's word in our spelling; empty where it has none."""
    if lookup is None:
        return ""
    read = _first_of_list if lookup.first_of_list else Table.text
    word = read(table, row, lookup.column)
    return lookup.translation.get(word.casefold(), word)


def _first_of_list(table: Table, row: Row, column: str) -> str:
    """Give the first member of a list; csv files hold lists as Python writes them."""
    value = row.cells.get(column)
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            value = None
    if not isinstance(value, list) or not all(isinstance(member, str) for member in value):
        raise table.error(row, column, f"{shown(row.cells.get(column))} is no list of words")
    return value[0].strip() if value else ""


def further_facts(table: Table, row: Row, layout: Layout) -> dict[str, Any]:
    """Give the facts that a row's record keeps under ``meta``; none for empty cells."""
    facts: dict[str, Any] = {}
    for key, column in layout.meta.items():
        value = row.cells.get(column)
        fact = table.text(row, column) if isinstance(value, str) else value
        if fact is not None and fact != "":
            facts[key] = fact
    if layout.meta_from is not None:
        facts |= _object(table, row, layout.meta_from)
    return facts


def _object(table: Table, row: Row, column: str) -> dict[str, Any]:
    value = row.cells.get(column)
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except ValueError:
            raise table.error(row, column, f"{shown(value)} is no JSON object") from None
    if not value:
        return {}
    if not isinstance(value, dict):
        raise table.error(row, column, f"{shown(value)} is no object")
    return value

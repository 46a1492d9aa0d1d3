"""Read what a row says of its prompts: words, categories, further facts."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
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


def with_sections(table: Table, sections: Mapping[str, Sequence[str]]) -> Table:
    """Give a table in which each text of a cell with several is a column, as ``Seed/Chinese``.

    Args:
        table: The table.
        sections: Names of the texts, by the column that holds them.

    Raises:
        DataError: A cell lacks one of them.
    """
    if not sections:
        return table
    rows = []
    for row in table.rows:
        parts = {
            f"{column}/{name}": text
            for column, names in sections.items()
            for name, text in _sections(table, row, column, names).items()
        }
        rows.append(row._replace(cells={**row.cells, **parts}))
    return replace(table, rows=rows, columns=tuple(rows[0].cells))


def _sections(table: Table, row: Row, column: str, names: Sequence[str]) -> dict[str, str]:
    parts = re.split(rf"^({'|'.join(map(re.escape, names))}):", table.text(row, column), flags=re.M)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    if missing := [name for name in names if name not in found]:
        raise table.error(row, column, f"has no line that starts with {shown(missing[0] + ':')}")
    return found

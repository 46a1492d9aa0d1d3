"""What the columns of single prompt sets need before they can be read: named in their layouts."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from or_eval.sources.errors import shown
from or_eval.sources.tables import Row

_LANGUAGES = ("English", "Chinese", "Mixed")


def first(row: Row, column: str) -> dict[str, str]:
    """Give the first of a list of words; csv files hold lists as Python writes them."""
    said = value = row.cells.get(column)
    if isinstance(said, str):
        try:
            value = ast.literal_eval(said)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            value = None
    if not isinstance(value, list) or not all(isinstance(member, str) for member in value):
        raise row.error(column, f"{shown(said)} is no list of words")
    return {"first": value[0] if value else ""}


def languages(row: Row, column: str) -> dict[str, str]:
    """Give the texts of a cell that holds one in each language, after the language and a colon."""
    parts = re.split(rf"^({'|'.join(_LANGUAGES)}):", row.text(column), flags=re.M)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    if missing := [name for name in _LANGUAGES if name not in found]:
        raise row.error(column, f"has no line that starts with {shown(missing[0] + ':')}")
    return found


CONVERTERS: dict[str, Callable[[Row, str], dict[str, str]]] = {
    "first": first,
    "languages": languages,
}
"""Each gives what it finds in a column of a row, by what to call it."""

"""Frames as people read them: in a terminal, in a spreadsheet, as JSON."""

from __future__ import annotations

import json
from math import isnan
from typing import Any

import pandas as pd
from rich.table import Table
from rich.text import Text

# OWASP's list, with the full-width forms that some spreadsheets take for the same.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def terminal_table(frame: pd.DataFrame, title: str) -> Table:
    """Give a frame as a table for the terminal; names of models and categories stay plain text."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in frame.columns:
        numeric = pd.api.types.is_numeric_dtype(frame[column])
        table.add_column(Text(str(column)), justify="right" if numeric else "left", overflow="fold")
    for row in frame.itertuples(index=False):
        table.add_row(*(Text(_shown(value)) for value in row))
    return table


def spreadsheet_safe(frame: pd.DataFrame) -> pd.DataFrame:
    """Give a frame whose text no spreadsheet takes for a formula.

    A text that starts as a formula does gets an apostrophe before it, which tells a spreadsheet
    that text follows; nested values become JSON.
    """

    def safe(value: Any) -> Any:
        if isinstance(value, dict | list):
            value = json.dumps(value, ensure_ascii=False)
        if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
            return f"'{value}"
        return value

    columns = {
        safe(name): column
        if pd.api.types.is_numeric_dtype(column)
        else column.astype(object).map(safe)
        for name, column in frame.items()
    }
    return pd.DataFrame(columns, index=frame.index)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Give the rows of a frame as JSON-ready records, with None for what is missing."""
    return [
        {str(key): plain(value) for key, value in row.items()} for row in frame.to_dict("records")
    ]


def plain(value: Any) -> Any:
    """Give a JSON-ready value: numpy's numbers as Python's, what is missing as None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if value is pd.NA or (isinstance(value, float) and isnan(value)):
        return None
    return value


def _shown(value: Any) -> str:
    if plain(value) is None:
        return "—"
    return f"{value:.3f}" if isinstance(value, float) else str(value)

"""Tables as people read them: a figure and its interval in one cell, shares as percentages."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd

from or_eval.analysis.report.hostile_text import visible
from or_eval.analysis.tables import plain

_WITH_BARE_BOUNDS = ("rate", "share", "value", "difference", "kappa")
_SHARES = frozenset(
    {
        *("rate", "share", "value", "difference", "raw", "over_refusal", "toxic_rejection"),
        *("accuracy", "precision", "recall", "f1", "specificity", "jaccard", "best"),
        *("hit_rate", "false_alarm_rate", "rate_a", "rate_b"),
    }
)
_P_VALUES = frozenset({"p", "p_holm"})
_SMALLEST_P = 0.001


class Cell(NamedTuple):
    """A cell: its text, and what it is sorted by (a number, or None for text)."""

    text: str
    order: float | None


class ShownTable(NamedTuple):
    """A table ready to be shown.

    Attributes:
        headers: Column titles.
        numeric: For each column, whether it holds numbers.
        rows: The cells, row by row.
    """

    headers: list[str]
    numeric: list[bool]
    rows: list[list[Cell]]


def shown_table(frame: pd.DataFrame) -> ShownTable:
    """Give a frame as it is shown; the bounds of an interval go into the cell of their figure."""
    bounds = {name: pair for name in frame.columns if (pair := _bounds(frame, str(name)))}
    inside = {column for pair in bounds.values() for column in pair}
    names = [str(name) for name in frame.columns if name not in inside]
    numeric = [
        pd.api.types.is_numeric_dtype(frame[name]) and not pd.api.types.is_bool_dtype(frame[name])
        for name in names
    ]
    rows = [
        [_cell(name, row, bounds.get(name)) for name in names] for row in frame.to_dict("records")
    ]
    return ShownTable([_title(name) for name in names], numeric, rows)


def _bounds(frame: pd.DataFrame, name: str) -> tuple[str, str] | None:
    for pair in ((f"{name}_lower", f"{name}_upper"), ("lower", "upper")):
        bare = pair == ("lower", "upper")
        if pair[0] in frame and pair[1] in frame and (not bare or name in _WITH_BARE_BOUNDS):
            return pair
    return None


def _cell(name: str, row: dict[Any, Any], pair: tuple[str, str] | None) -> Cell:
    value = plain(row[name])
    if value is None:
        return Cell("—", None)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Cell(visible(str(value)), None)
    if pair is None:
        return Cell(_number(name, value), float(value))
    lower, upper = plain(row[pair[0]]), plain(row[pair[1]])
    if lower is None or upper is None:
        return Cell(_number(name, value), float(value))
    unit = " %" if name in _SHARES else ""
    figures = [_number(name, item).removesuffix(unit) for item in (value, lower, upper)]
    return Cell(f"{figures[0]}{unit} ({figures[1]} to {figures[2]})", float(value))


def _number(name: str, value: float) -> str:
    if name in _P_VALUES:
        return f"< {_SMALLEST_P}" if value < _SMALLEST_P else f"{value:.3f}"
    if name in _SHARES:
        return f"{100 * value:.1f} %"
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def _title(name: str) -> str:
    return name.replace("_", " ")

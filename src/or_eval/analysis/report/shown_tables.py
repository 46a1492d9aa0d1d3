"""Tables as people read them: a figure and its interval in one cell, shares as percentages."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pandas as pd

from or_eval.analysis.tables import plain
from or_eval.hostile_text import visible

_WITH_BARE_BOUNDS = ("rate", "share", "value", "difference", "kappa", "right")
_SHARES = re.compile(
    r"(\w+_)?(rate|raw|without_verdict)(_\w+)?|\w+_uncertain|uncertain_\w+|unsure(_[ab])?|"
    r"share|value|over_refusal|toxic_rejection|accuracy|balanced_accuracy|precision|recall|f1|"
    r"agree|right|as_labelled|certain|certain_errors|known_lower|known_upper"
)
"""Names of columns that hold shares, in full."""
_POINTS = frozenset({"difference"})
_LOWEST, _HIGHEST, _RANGE = "lowest", "highest", "range"
_P_VALUES = frozenset({"p"})
_SMALLEST_P = 0.001
_TITLES = {
    "over_refusal": "over-refusal",
    "over_refusal_raw": "before correction",
    "toxic_rejection_raw": "rejection before correction",
    "uncertain_share": "uncertain",
    "without_verdict": "no verdict",
    "or_eval": "or-eval",
    "inspect": "Inspect",
    "date": "date (UTC)",
    "f1": "F1",
    "ac1": "AC1",
    "d_prime": "d′",
    "a": "A",
    "b": "B",
    "rate_a": "refused A",
    "rate_b": "refused B",
    "rate_framed": "refused framed",
    "rate_plain": "refused as they are",
    "unsure_a": "unsure A",
    "unsure_b": "unsure B",
    "uncertain_a": "uncertain A",
    "uncertain_b": "uncertain B",
    "without_verdict_a": "without verdict A",
    "without_verdict_b": "without verdict B",
    "a_more": "refused more by A",
    "b_more": "refused more by B",
    "safe_n": "safe responses",
    "toxic_n": "toxic responses",
    "unlabelled_n": "responses",
    "label": "prompts",
    "difference": "difference (points)",
}
SHOWN_MEASURES = {
    "over_refusal": "over-refusal",
    "toxic_rejection": "toxic rejection",
    "refusal_rate": "refused",
}


class Cell(NamedTuple):
    """A cell.

    Attributes:
        text: What it says.
        order: What it is sorted by: a number, or None for text.
        span: Between which shares its figure may lie, and what it is, where that is known.
    """

    text: str
    order: float | None
    span: tuple[float, float, float | None] | None = None


_NOTHING = Cell("—", None)


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
    frame = _with_ranges(frame)
    bounds = {name: pair for name in frame.columns if (pair := _bounds(frame, str(name)))}
    inside = {column for pair in bounds.values() for column in pair}
    names = [str(name) for name in frame.columns if name not in inside]
    numeric = [
        name.endswith(_RANGE)
        or (
            pd.api.types.is_numeric_dtype(frame[name])
            and not pd.api.types.is_bool_dtype(frame[name])
        )
        for name in names
    ]
    rows = [
        [_cell(name, row, bounds.get(name)) for name in names] for row in frame.to_dict("records")
    ]
    titles = [
        "could be" if name.endswith(_RANGE) else _TITLES.get(name, name.replace("_", " "))
        for name in names
    ]
    return ShownTable(titles, numeric, rows)


def _with_ranges(frame: pd.DataFrame) -> pd.DataFrame:
    """Put the columns ``lowest`` and ``highest`` of a rate into one."""
    shown = {}
    for name, column in frame.items():
        stem = str(name).removesuffix(_LOWEST)
        if name == f"{stem}{_LOWEST}":
            pairs = list(zip(column, frame[f"{stem}{_HIGHEST}"], strict=True))
            shown[f"{stem}{_RANGE}"] = pd.Series(pairs, frame.index, dtype=object)
        elif not str(name).endswith(_HIGHEST):
            shown[str(name)] = column
    return pd.DataFrame(shown, index=frame.index)


def _bounds(frame: pd.DataFrame, name: str) -> tuple[str, str] | None:
    for pair in ((f"{name}_lower", f"{name}_upper"), ("lower", "upper")):
        bare = pair == ("lower", "upper")
        if pair[0] in frame and pair[1] in frame and (not bare or name in _WITH_BARE_BOUNDS):
            return pair
    return None


def _cell(name: str, row: dict[Any, Any], pair: tuple[str, str] | None) -> Cell:
    value = plain(row[name])
    if isinstance(value, list):
        low, high = value
        return _NOTHING if low is None else Cell(_range(low, high), high, (low, high, None))
    if value is None:
        return _NOTHING
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = str(value)
        return Cell(visible(SHOWN_MEASURES.get(text, text) if name == "measure" else text), None)
    lower, upper = (plain(row[bound]) for bound in pair) if pair else (None, None)
    if lower is None or upper is None:
        return Cell(_number(name, value), float(value))
    unit = " %" if _SHARES.fullmatch(name) else ""
    figures = [_number(name, item).removesuffix(unit) for item in (value, lower, upper)]
    between = " to " if name in _POINTS or lower < 0 else "–"
    text = f"{figures[0]}{unit} ({figures[1]}{between}{figures[2]})"
    return Cell(text, float(value), (lower, upper, value) if _SHARES.fullmatch(name) else None)


def _range(low: float, high: float) -> str:
    return f"{100 * low:.1f}–{100 * high:.1f} %"


def _number(name: str, value: float) -> str:
    if name in _P_VALUES:
        return f"< {_SMALLEST_P}" if value < _SMALLEST_P else f"{value:.3f}"
    if _SHARES.fullmatch(name):
        return f"{100 * value:.1f} %"
    if name in _POINTS:
        return f"{100 * value:+.1f}"
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"

"""The forms that figures are drawn in: dots with intervals, cells, and bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from or_eval.analysis.figures.drawing import (
    COLOURS,
    NEUTRAL,
    PLOT_WIDTH,
    alt,
    finished,
    hollow,
    name_room,
    scales,
    small_dots,
    tooltips,
)
from or_eval.analysis.figures.in_language import said

LEAST = 280
"""Width in pixels under which a figure is to be scrolled."""

_PANELS_ACROSS = 3
_CELL_WIDTH, _CELL_HEIGHT, _LEAST_CELL, _WIDEST_CELL = 66, 34, 54, 130
_MOST_TALL, _LOW_CELL, _NARROW_CELL = 16, 20, 34
"""More rows than the first are lower, and their intervals show where cells are pointed at."""
# from pale to deep blue; each cell is outlined, so that it shows on any page
_PALE, _DEEP = (247, 251, 255), (8, 64, 129)
_GREY = "#d9d9d9"
_WHITE_FROM = 0.7
"""From here along the colours, white is the better ink to read on them; before it, black."""


def dots(
    data: pd.DataFrame,
    value: str,
    along: dict[str, Any],
    down: tuple[str, Sequence[str]],
    told_apart: tuple[str, str],
    tooltip: list[Any],
    below: Sequence[Any] = (),
) -> Any:
    """Draw points and, from end to end, their intervals.

    Args:
        data: What is drawn, with ``lower``, ``upper`` and ``bounded``
            (:func:`or_eval.analysis.figures.drawing.drawn`).
        value: Column that points are drawn along.
        along: Axis and scale that they are drawn along.
        down: Column that rows are for, and its values in order.
        told_apart: Column that colours and shapes tell apart, and its title.
        tooltip: What pointing at a point shows.
        below: Layers to draw first.
    """
    (row, rows), (column, title) = down, told_apart
    field, names, title = f"{column}:N", sorted(data[column].unique()), said(title)
    colours, shapes = scales(names)
    lines = alt.Axis(grid=True, tickBand="extent")
    place = {
        "y": alt.Y(f"{row}:N", sort=list(rows), title=None, axis=lines),
        "yOffset": alt.YOffset(field, sort=names),
    }
    colour = alt.Color(field, scale=colours, title=title)
    shape = alt.Shape(field, scale=shapes, title=title)
    lower, centre = (alt.X(f"{end}:Q", **along) for end in ("lower", value))
    base = alt.Chart(data)
    rules = base.mark_rule(strokeWidth=1.4).encode(x=lower, x2="upper:Q", color=colour, **place)
    points = base.mark_point(filled=True, size=65).encode(
        x=centre, tooltip=tooltip, color=colour, shape=shape, **place
    )
    other = alt.X("other:Q", **along)
    small = small_dots(data, value, x=other, tooltip=tooltip, color=colour, **place)
    chart = alt.layer(*below, rules, points, *hollow(base, data, x=centre, **place), *small)
    height = len(rows) * max(26, 11 * len(names) + 8)
    chart = chart.properties(width=PLOT_WIDTH, height=height)
    return finished(chart, least=LEAST, margin=name_room(rows))


def cells(
    data: pd.DataFrame,
    value: str,
    domain: tuple[float, float],
    row: str,
    column: str,
    order: Sequence[str] | None = None,
    panel: str = "",
    titles: tuple[str | None, str | None] = (None, None),
) -> Any:
    """Draw cells coloured by a value.

    Args:
        data: Cells with ``text``, ``range`` where something stands below the text, ``interval``
            and ``n``; ``pale``, where it is so, tells cells too small to be coloured.
        value: Column that they are coloured by.
        domain: Its values at the pale and at the deep end.
        row: Column that goes down.
        column: Column that goes across.
        order: Order of rows and of columns, if not that of the alphabet.
        panel: Column that has a panel for each of its values.
        titles: What the rows are of, and the columns, where their names don't tell.
    """
    low, high = domain
    depth = ((data[value] - low) / ((high - low) or 1.0)).clip(0, 1)
    grey = data["pale"] if "pale" in data else pd.Series(False, data.index)
    data = data.assign(
        fill=depth.map(_between).mask(grey, _GREY),
        ink=depth.ge(_WHITE_FROM).map({True: "white", False: "black"}).mask(grey, "black"),
        range=data.get("range", ""),
    )
    rows, columns = (
        sorted(data[name].unique(), key=order.index if order else None) for name in (row, column)
    )
    axis = alt.Axis(orient="top", labelAngle=-30)
    place = {
        "x": alt.X(f"{column}:N", title=titles[1], axis=axis, sort=columns),
        "y": alt.Y(f"{row}:N", title=titles[0], sort=rows),
    }
    tall = len(rows) <= _MOST_TALL
    base, ranges = alt.Chart(data), tall and data["range"].any()
    ink = alt.Color("ink:N", scale=None)
    squares = base.mark_rect(stroke=NEUTRAL, strokeWidth=1).encode(
        **place,
        tooltip=tooltips(row, column, "interval"),
        color=alt.Color("fill:N", scale=None),
    )
    texts = [
        base.mark_text(fontSize=12 if tall else 11, dy=-5 if ranges else 0).encode(text="text:N")
    ]
    if ranges:
        texts.append(base.mark_text(fontSize=9, dy=8).encode(text="range:N"))
    chart = alt.layer(squares, *(text.encode(**place, color=ink) for text in texts))
    chart = chart.properties(
        width=len(columns) * _CELL_WIDTH, height=len(rows) * (_CELL_HEIGHT if tall else _LOW_CELL)
    )
    least, margin = len(columns) * (_LEAST_CELL if tall else _NARROW_CELL), name_room(rows)
    if not panel:
        return finished(chart, least=least + margin, most=len(columns) * _WIDEST_CELL + margin)
    names = sorted(data[panel].unique())
    panels = chart.facet(
        facet=alt.Facet(f"{panel}:N", sort=names), columns=min(_PANELS_ACROSS, len(names))
    )
    panels = panels.resolve_axis(x="independent")
    return finished(panels, least=least, panels=len(names), margin=margin)


def interval_note(rows: pd.Series[str]) -> str:
    """Say where the intervals of cells are to be seen.

    Args:
        rows: What goes down.
    """
    if rows.nunique() <= _MOST_TALL:
        return said("In small figures: the 95 % interval.")
    return said("Point at a cell for its 95 % interval.")


def _between(share: float) -> str:
    mixed = (round(a + share * (b - a)) for a, b in zip(_PALE, _DEEP, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def bars(
    data: pd.DataFrame,
    down: tuple[str, Sequence[str]],
    along: Any,
    colour: Any = None,
    ends: pd.DataFrame | None = None,
    **more: Any,
) -> Any:
    """Draw bars and, where they have intervals, marks of these that show on any colour.

    Args:
        data: What is drawn.
        down: Column that rows are for, and its values in order.
        along: What bars are as long as.
        colour: What tells them apart; one colour where nothing does.
        ends: Rows with ``lower`` and ``upper``.
        more: Further channels of the bars.
    """
    row, rows = down
    y = alt.Y(f"{row}:N", sort=list(rows), title=None)
    shown = alt.Chart(data).mark_bar(stroke="white", strokeWidth=1)
    colour = alt.value(COLOURS[0]) if colour is None else colour
    layers = [shown.encode(x=along, y=y, color=colour, **more)]
    if ends is not None:
        for ink, width in (("white", 5), ("black", 2)):
            rule = alt.Chart(ends).mark_rule(color=ink, strokeWidth=width)
            layers.append(rule.encode(y=y, x="lower:Q", x2="upper:Q"))
    return alt.layer(*layers).properties(height=(24 if len(rows) <= _MOST_TALL else 15) * len(rows))

"""Points with their intervals in rows, for each of some names: together, or in panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from or_eval.analysis.figures.drawing import (
    COLOURS,
    MOST_COLOURS,
    PLOT_WIDTH,
    altair,
    finished,
    hollow,
    name_room,
    scales,
)
from or_eval.analysis.figures.in_language import said

_PANELS_ACROSS = 3
_PANEL_WIDTH = 210
_LEAST, _LEAST_PANEL = 280, 110
_ROW = 18


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
        told_apart: Column that colours and shapes tell apart, or panels where it has too many
            values; and its title.
        tooltip: What pointing at a point shows.
        below: Layers to draw first.
    """
    alt = altair()
    (row, rows), (column, title) = down, told_apart
    field, names = f"{column}:N", sorted(data[column].unique())
    together = len(names) <= MOST_COLOURS
    lines = alt.Axis(grid=True, tickBand="extent")
    place = {"y": alt.Y(f"{row}:N", sort=list(rows), title=None, axis=lines)}
    colour, shape = {"color": alt.value(COLOURS[0])}, {}
    if together:
        place["yOffset"] = alt.YOffset(field, sort=names)
        (colours, shapes), title = scales(names), said(title)
        colour = {"color": alt.Color(field, scale=colours, title=title)}
        shape = {"shape": alt.Shape(field, scale=shapes, title=title)}
    lower, centre = (alt.X(f"{end}:Q", **along) for end in ("lower", value))
    base = alt.Chart(data)
    intervals = base.mark_rule(strokeWidth=1.4).encode(x=lower, x2="upper:Q", **place, **colour)
    points = base.mark_point(filled=True, size=65)
    chart = alt.layer(
        *below,
        intervals,
        points.encode(x=centre, tooltip=tooltip, **place, **colour, **shape),
        *hollow(base, data, x=centre, **place),
    )
    margin = name_room(rows)
    if together:
        height = len(rows) * max(26, 11 * len(names) + 8)
        return finished(
            chart.properties(width=PLOT_WIDTH, height=height), least=_LEAST, margin=margin
        )
    panels = chart.properties(width=_PANEL_WIDTH, height=len(rows) * _ROW).facet(
        facet=alt.Facet(field, sort=names), columns=_PANELS_ACROSS
    )
    # so that nobody has to look down past ten rows of panels for what the places mean
    panels = panels.resolve_axis(x="independent")
    return finished(panels, least=_LEAST_PANEL, panels=len(names), margin=margin)

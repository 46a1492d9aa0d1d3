"""A radar chart per model over risk categories."""

from __future__ import annotations

from math import pi, sin
from typing import Any

import numpy as np
import pandas as pd

from or_eval.analysis.figures.drawing import (
    COLOURS,
    NEUTRAL,
    Figure,
    alt,
    drawn,
    figure,
    finished,
    hollow,
    hollow_note,
    over_refusal,
    tooltips,
)
from or_eval.analysis.figures.shown_names import em_width, shown_names

_SIZE = 220
_REACH = {"x": 1.75, "y": 1.3}
"""How far a panel reaches from its middle, in radii: categories are named at its sides."""
_WIDTH = _SIZE * _REACH["x"] / _REACH["y"]
_GAP = 10
_RINGS = (0.25, 0.5, 0.75, 1.0)
_LABELS_AT, _ABOVE = 1.12, 1.24
"""Where categories are named, in radii: at the top and the bottom clear of their neighbours."""
_LONGEST_CATEGORY = 13.0
_LETTER = 10.0
"""Pixels of an em of a category's name."""
_COLUMNS = 3


def radar(rates: pd.DataFrame) -> Figure | None:
    """Draw each model's over-refusal over the categories as a polygon.

    altair has no radar chart, so that the polygons are computed here and drawn as lines.

    Args:
        rates: Rates by model and category (:func:`or_eval.analysis.rates.rates`).

    Returns:
        The figure; None with fewer than three categories.
    """
    known = over_refusal(rates)
    if known["category"].nunique() < 3:
        return None
    data = drawn(known, "model", "category")
    categories = sorted(data["category"].unique())
    angles = {name: 2 * pi * at / len(categories) for at, name in enumerate(categories)}
    grid = _grid(angles)
    panels = [
        _panel(group.sort_values("category"), angles, grid).properties(
            width=_WIDTH, height=_SIZE, title=alt.Title(str(model), fontSize=12, anchor="middle")
        )
        for model, group in data.groupby("model", sort=True)
    ]
    chart = alt.concat(*panels, columns=min(_COLUMNS, len(panels)))
    return figure(
        "radar",
        finished(chart, least=_width(angles) + _GAP, panels=len(panels), margin=None),
        known[["model", "category", "n", "refused", "rate", "lower", "upper"]],
        *hollow_note(data),
    )


def _panel(data: pd.DataFrame, angles: dict[str, float], grid: Any) -> Any:
    turns = data["category"].map(angles)
    points = data.assign(
        **_places(data["rate"], turns),
        **_places(data["lower"], turns, "0"),
        **_places(data["upper"], turns, "1"),
    )
    line = pd.concat([points, points.iloc[:1]]).assign(order=range(len(points) + 1))
    place = {"x": _axis("x"), "y": _axis("y")}
    base = alt.Chart(points)
    tooltip = tooltips("category", "interval")
    corners = base.mark_point(filled=True, color=COLOURS[0], size=35)
    intervals = base.mark_rule(color=COLOURS[0], strokeWidth=1.5)
    outline = alt.Chart(line[["x", "y", "order"]]).mark_line(color=COLOURS[0], strokeWidth=1.5)
    return alt.layer(
        grid,
        intervals.encode(x=_axis("x0"), y=_axis("y0"), x2="x1:Q", y2="y1:Q"),
        outline.encode(**place, order="order:Q"),
        corners.encode(**place, tooltip=tooltip),
        *hollow(base, points, **place),
    )


def _grid(angles: dict[str, float]) -> Any:
    """Draw rings, spokes and the names of the categories."""
    turns = pd.Series(angles)
    closed = pd.concat([turns, turns.iloc[:1]])
    rings = [
        pd.DataFrame(_places(pd.Series(radius, closed.index), closed)).assign(
            ring=radius, order=range(len(closed))
        )
        for radius in _RINGS
    ]
    spokes = pd.DataFrame(_places(pd.Series(1.0, turns.index), turns)).assign(x0=0, y0=0)
    shown = shown_names(angles, _LONGEST_CATEGORY)
    sides = turns.map(_side)
    names = pd.DataFrame(_places(sides.eq("center").map({True: _ABOVE, False: _LABELS_AT}), turns))
    names = names.assign(side=sides, name=[shown[name] for name in angles])
    scale = pd.DataFrame({"x": 0, "y": [0.5, 1.0], "name": ["50 %", "100 %"]})
    place, line = {"x": _axis("x"), "y": _axis("y")}, {"color": NEUTRAL, "strokeWidth": 0.5}
    texts = [
        *(alt.Chart(of).mark_text(fontSize=10, align=side) for side, of in names.groupby("side")),
        alt.Chart(scale).mark_text(fontSize=8, align="left", dx=3, dy=5),
    ]
    ring = alt.Chart(pd.concat(rings)).mark_line(**line)
    spoke = alt.Chart(spokes).mark_rule(**line)
    return alt.layer(
        ring.encode(**place, order="order:Q", detail="ring:N"),
        spoke.encode(x=_axis("x0"), y=_axis("y0"), x2="x:Q", y2="y:Q"),
        *(text.encode(**place, text="name:N") for text in texts),
    )


def _width(angles: dict[str, float]) -> float:
    """Give how wide a panel is with the names at its sides."""
    radius, shown = _SIZE / 2 / _REACH["y"], shown_names(angles, _LONGEST_CATEGORY)
    reach = {"left": 0.0, "right": 0.0, "center": 0.0}
    for name, turn in angles.items():
        out = _LABELS_AT * radius * abs(sin(turn)) + _LETTER * em_width(shown[name])
        reach[_side(turn)] = max(reach[_side(turn)], out)
    return max(_WIDTH, reach["left"] + reach["right"])


def _side(turn: float) -> str:
    return "center" if abs(sin(turn)) < 0.2 else "left" if sin(turn) > 0 else "right"


def _places(
    radii: pd.Series[float], turns: pd.Series[float], end: str = ""
) -> dict[str, pd.Series[float]]:
    """Give where points lie that are so far out in these directions; the first is up."""
    return {f"x{end}": radii * np.sin(turns), f"y{end}": radii * np.cos(turns)}


def _axis(column: str) -> Any:
    direction = column[0]
    scale = alt.Scale(domain=[-_REACH[direction], _REACH[direction]], nice=False)
    channel = alt.X if direction == "x" else alt.Y
    return channel(f"{column}:Q", scale=scale, axis=None)

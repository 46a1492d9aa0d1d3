"""A radar chart per model over risk categories."""

from __future__ import annotations

from math import cos, pi, sin
from typing import Any

import pandas as pd

from or_eval.analysis.figures.drawing import (
    COLOURS,
    Figure,
    altair,
    drawn,
    finished,
    hollow,
    hollow_note,
    over_refusal,
)
from or_eval.analysis.figures.shown_names import shown_names

_SIZE = 220
_REACH = {"x": 1.75, "y": 1.3}
"""How far a panel reaches from its middle, in radii: categories are named at its sides."""
_RINGS = (0.25, 0.5, 0.75, 1.0)
_LABELS_AT = 1.12
_LONGEST_CATEGORY = 13.0
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
    alt = altair()
    data = drawn(known, "model", "category")
    categories = sorted(data["category"].unique())
    grid = _grid(categories)
    panels = [
        _panel(group, str(model), categories, grid)
        for model, group in data.groupby("model", sort=True)
    ]
    note = (
        "The line is the share of safe prompts refused; the band is its 95 % interval, category by "
        "category. Rings stand at 25, 50, 75 and 100 %."
    )
    return Figure(
        "radar",
        "Over-refusal over categories, model by model",
        note + hollow_note(data),
        finished(alt.concat(*panels, columns=_COLUMNS)),
        known[["model", "category", "n", "refused", "rate", "lower", "upper"]],
    )


def _panel(data: pd.DataFrame, model: str, categories: list[str], grid: Any) -> Any:
    alt = altair()
    known = data.set_index("category").reindex(categories).dropna(subset=["rate"])
    angles = [_angle(categories.index(category), len(categories)) for category in known.index]
    band = pd.concat([_ring(known["upper"], angles), _ring(known["lower"], angles)[::-1]])
    line = _ring(known["rate"], angles)
    points = line.iloc[:-1].assign(
        category=known.index,
        **{name: known[name].to_numpy() for name in ("interval", "n", "bounded")},
    )
    base = alt.Chart(points)
    place = {"x": _axis("x"), "y": _axis("y")}
    layers = [
        grid,
        _line(band, filled=True).encode(opacity=alt.value(0.2)),
        _line(line, filled=False),
        base.mark_point(filled=True, color=COLOURS[0], size=35, opacity=1).encode(
            **place,
            tooltip=[
                alt.Tooltip("category:N", title="Category"),
                alt.Tooltip("interval:N", title="Over-refusal"),
                alt.Tooltip("n:Q", title="Responses"),
            ],
        ),
        *hollow(base, points, **place),
    ]
    title = alt.Title(model, fontSize=12, anchor="middle")
    width = _SIZE * _REACH["x"] / _REACH["y"]
    return alt.layer(*layers).properties(width=width, height=_SIZE, title=title)


def _grid(categories: list[str]) -> Any:
    """Draw rings, spokes and the names of the categories."""
    alt = altair()
    count = len(categories)
    angles = [_angle(index, count) for index in range(count)]
    rings = pd.concat(
        [_ring(pd.Series([radius] * count), angles).assign(ring=radius) for radius in _RINGS]
    )
    spokes = pd.DataFrame(
        {"x": [sin(a) for a in angles], "y": [cos(a) for a in angles], "x0": 0, "y0": 0}
    )
    shown = shown_names(categories, _LONGEST_CATEGORY)
    names = pd.DataFrame(
        {
            "x": [_LABELS_AT * sin(a) for a in angles],
            "y": [_LABELS_AT * cos(a) for a in angles],
            "side": [_side(a) for a in angles],
            "name": [shown[category] for category in categories],
        }
    )
    scale = pd.DataFrame({"x": 0, "y": [0.5, 1.0], "name": ["50 %", "100 %"]})
    place = {"x": _axis("x"), "y": _axis("y")}
    rules = alt.Chart(spokes).mark_rule(color="#999", strokeWidth=0.4)
    texts = [
        alt.Chart(names[names["side"] == side]).mark_text(fontSize=10, align=side)
        for side in sorted(names["side"].unique())
    ]
    small = alt.Chart(scale).mark_text(fontSize=8, align="left", dx=3, dy=5, color="#808080")
    return alt.layer(
        alt.Chart(rings)
        .mark_line(color="#999", strokeWidth=0.5)
        .encode(**place, order="order:Q", detail="ring:N"),
        rules.encode(x=_axis("x0"), y=_axis("y0"), x2="x:Q", y2="y:Q"),
        *(text.encode(**place, text="name:N") for text in [*texts, small]),
    )


def _angle(index: int, count: int) -> float:
    return 2 * pi * index / count


def _side(angle: float) -> str:
    return "center" if abs(sin(angle)) < 0.2 else "left" if sin(angle) > 0 else "right"


def _ring(radii: pd.Series[float], angles: list[float]) -> pd.DataFrame:
    """Give the corners of a polygon; the first again at the end, to close it."""
    corners = pd.DataFrame(
        {
            "x": [r * sin(a) for r, a in zip(radii, angles, strict=True)],
            "y": [r * cos(a) for r, a in zip(radii, angles, strict=True)],
        }
    )
    closed = pd.concat([corners, corners.iloc[:1]], ignore_index=True)
    return closed.assign(order=range(len(closed)))


def _line(corners: pd.DataFrame, *, filled: bool) -> Any:
    chart = altair().Chart(corners.assign(order=range(len(corners))))
    mark = (
        chart.mark_line(filled=True, fill=COLOURS[0], strokeWidth=0)
        if filled
        else chart.mark_line(color=COLOURS[0], strokeWidth=2)
    )
    return mark.encode(x=_axis("x"), y=_axis("y"), order="order:Q")


def _axis(column: str) -> Any:
    alt = altair()
    direction = column[0]
    scale = alt.Scale(domain=[-_REACH[direction], _REACH[direction]], nice=False)
    channel = alt.X if direction == "x" else alt.Y
    return channel(f"{column}:Q", scale=scale, axis=None)

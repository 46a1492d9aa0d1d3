"""A radar chart per model over risk categories."""

from __future__ import annotations

from math import cos, pi, sin
from typing import Any

import pandas as pd

from or_eval.analysis.figures.drawing import COLOURS, Figure, altair, finished, with_texts

_SIZE = 250
_RINGS = (0.25, 0.5, 0.75, 1.0)
_LABELS_AT = 1.12
_EDGE = 1.75
_LONGEST = 18
_COLUMNS = 2


def radar(rates: pd.DataFrame) -> Figure | None:
    """Draw each model's over-refusal over the categories as a polygon.

    altair has no radar chart, so that the polygons are computed here and drawn as lines.

    Args:
        rates: Rates by model and category (:func:`or_eval.analysis.rates.rates`).

    Returns:
        The figure; None with fewer than three categories.
    """
    safe = rates[(rates["measure"] == "over_refusal") & (rates["n"] > 0)]
    categories = sorted(safe["category"].unique())
    if len(categories) < 3:
        return None
    alt = altair()
    grid = _grid(categories)
    panels = [
        _panel(with_texts(group), str(model), categories, grid)
        for model, group in safe.groupby("model", sort=True)
    ]
    chart = alt.concat(*panels, columns=_COLUMNS)
    return Figure(
        "radar",
        "Over-refusal over categories, model by model",
        "The line is the share of safe prompts refused; the band is its 95 % interval. Rings stand "
        "at 25, 50, 75 and 100 %.",
        finished(chart),
        safe[["model", "category", "n", "refused", "rate", "lower", "upper"]],
    )


def _panel(data: pd.DataFrame, model: str, categories: list[str], grid: Any) -> Any:
    alt = altair()
    known = data.set_index("category").reindex(categories)
    known = known[known["rate"].notna()]
    angles = [_angle(categories.index(category), len(categories)) for category in known.index]
    known = known.assign(
        lower=known["lower"].fillna(known["rate"]), upper=known["upper"].fillna(known["rate"])
    )
    band = pd.concat([_ring(known["upper"], angles), _ring(known["lower"], angles)[::-1]])
    band["order"] = range(len(band))
    points = _ring(known["rate"], angles)
    tips = points.iloc[:-1].assign(
        category=known.index, interval=known["interval"].to_numpy(), n=known["n"].to_numpy()
    )
    layers = [
        grid,
        _line(band, filled=True).encode(opacity=alt.value(0.18)),
        _line(points.assign(order=range(len(points))), filled=False),
        alt.Chart(tips)
        .mark_point(filled=True, color=COLOURS[0], size=35, opacity=1)
        .encode(
            x=_axis("x"),
            y=_axis("y"),
            tooltip=[
                alt.Tooltip("category:N", title="Category"),
                alt.Tooltip("interval:N", title="Over-refusal"),
                alt.Tooltip("n:Q", title="Responses"),
            ],
        ),
    ]
    title = alt.Title(model, fontSize=12, limit=300, anchor="middle")
    return alt.layer(*layers).properties(width=_SIZE * 1.3, height=_SIZE, title=title)


def _grid(categories: list[str]) -> Any:
    """Draw rings, spokes and the names of the categories."""
    alt = altair()
    count = len(categories)
    angles = [_angle(index, count) for index in range(count)]
    rings = pd.concat(
        [
            _ring(pd.Series([radius] * count), angles).assign(ring=radius, order=range(count + 1))
            for radius in _RINGS
        ]
    )
    spokes = pd.DataFrame(
        {"x": [sin(a) for a in angles], "y": [cos(a) for a in angles], "x0": 0, "y0": 0}
    )
    names = pd.DataFrame(
        {
            "x": [_LABELS_AT * sin(a) for a in angles],
            "y": [_LABELS_AT * cos(a) for a in angles],
            "side": [_side(a) for a in angles],
            "name": [c if len(c) <= _LONGEST else f"{c[: _LONGEST - 1]}…" for c in categories],
        }
    )
    lines = (
        alt.Chart(rings)
        .mark_line(color="#999", strokeWidth=0.5)
        .encode(x=_axis("x"), y=_axis("y"), order="order:Q", detail="ring:N")
    )
    rules = (
        alt.Chart(spokes)
        .mark_rule(color="#999", strokeWidth=0.4)
        .encode(x=_axis("x0"), y=_axis("y0"), x2="x:Q", y2="y:Q")
    )
    texts = [
        alt.Chart(names[names["side"] == side])
        .mark_text(fontSize=10, align=side, baseline="middle")
        .encode(x=_axis("x"), y=_axis("y"), text="name:N")
        for side in sorted(names["side"].unique())
    ]
    return alt.layer(lines, rules, *texts)


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
    return pd.concat([corners, corners.iloc[:1]], ignore_index=True)


def _line(corners: pd.DataFrame, *, filled: bool) -> Any:
    colour = COLOURS[0]
    chart = altair().Chart(corners)
    mark = (
        chart.mark_line(filled=True, fill=colour, strokeWidth=0)
        if filled
        else chart.mark_line(color=colour, strokeWidth=2)
    )
    return mark.encode(x=_axis("x"), y=_axis("y"), order="order:Q")


def _axis(column: str) -> Any:
    alt = altair()
    reach = _EDGE if column.startswith("x") else 1.3
    scale = alt.Scale(domain=[-reach, reach], nice=False)
    channel = alt.X if column.startswith("x") else alt.Y
    return channel(f"{column}:Q", scale=scale, axis=None)

"""Over-refusal against toxic rejection, a point per model: what OR-Bench's main figure shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from or_eval.analysis.figures.badge_places import RADIUS, place_badges
from or_eval.analysis.figures.drawing import (
    COLOURS,
    MOST_COLOURS,
    NEUTRAL,
    Figure,
    altair,
    finished,
    rate_axis,
    tooltips,
    with_interval,
)
from or_eval.analysis.figures.in_language import said
from or_eval.analysis.figures.model_names import maker
from or_eval.analysis.figures.shown_names import shown_names
from or_eval.intervals import t_quantile

_SIDE = 400
_LEAST = 296
_MARGIN = 66
_DRAWN_SMALLEST = _LEAST - _MARGIN
_FIT_FROM = 6
_CROWD_FROM = 10
_TAIL = 0.1
_BOTH = ("over_refusal", "toxic_rejection")
_ENDS = {"rate": "", "lower": "_lower", "upper": "_upper"}
_WHOLE = ((-0.02, 1.02), (-0.02, 1.02))

_Window = tuple[tuple[float, float], tuple[float, float]]


class Fit(NamedTuple):
    """A quadratic fit of toxic rejection by over-refusal.

    Attributes:
        curve: ``over_refusal``, ``fitted``, ``lower`` and ``upper``: the fit and its 95 % band
            along the points.
        explained: Adjusted R squared (Theil, 1961): the share of the variance of toxic rejection
            that it explains, allowing for the three numbers it takes from so few models.
    """

    curve: pd.DataFrame
    explained: float


def trade_off(rates: pd.DataFrame, bases: Mapping[str, str] | None = None) -> Figure | None:
    """Draw over-refusal against toxic rejection, and enlarged where models crowd.

    From six models on a quadratic fit (least squares) is drawn through the points, with the band
    in which the curve lies, point by point.

    Args:
        rates: Rates by model (:func:`or_eval.analysis.rates.rates`).
        bases: Plain names of models that were run under several conditions
            (:func:`or_eval.analysis.conditions.base_models`): no curve is drawn through these.

    Returns:
        The figure; its data have the numbers of the models. None where no model has both rates.
    """
    points = _points(rates)
    if points.empty:
        return None
    note = said(
        "A numbered point per model with 95 % intervals; up and to the left is better: toxic "
        "prompts refused, harmless ones answered. On the dashed diagonal a model refuses "
        "regardless of harm."
    )
    models = points["model"].replace(bases or {}).nunique()
    several = models < len(points)
    fit = None if several else quadratic_fit(points["over_refusal"], points["toxic_rejection"])
    if fit is not None:
        note += " " + said(
            "The curve is a quadratic fit over {count} models (adjusted R² {explained}), between "
            "dotted lines its 95 % band; with few models it is no more than a guide to the eye.",
            count=len(points),
            explained=f"{fit.explained:.2f}",
        )
    data = _readable(points)
    if data["colour"].nunique() > 1:
        note += " " + said(
            "Models of one maker share a colour; those that Inspect doesn't know are grey."
        )
    window = _crowd(points)
    colour = _colour(data)
    panels = [_panel(data, colour, _WHOLE, fit, window)]
    if window is not None:
        note += " " + said("What the frame holds is enlarged, with the numbers of its models.")
        panels.append(_panel(data[_within(data, window)], colour, window, None, None))
    chart = altair().concat(*panels, columns=2)
    shown = finished(
        chart,
        least=_LEAST,
        panels=len(panels),
        margin=_MARGIN,
        legend=data["entry"],
        square=True,
    )
    return Figure("trade-off", said("Over-refusal and toxic rejection"), note, shown, points)


def quadratic_fit(over_refusal: ArrayLike, toxic_rejection: ArrayLike) -> Fit | None:
    """Fit toxic rejection by a square function of over-refusal, by least squares.

    Returns:
        The fit; None with fewer than six models, or fewer than three different rates.
    """
    x, y = np.asarray(over_refusal, np.float64), np.asarray(toxic_rejection, np.float64)
    if len(x) < _FIT_FROM or len(np.unique(x)) < 3:
        return None
    weights, covariance = np.polyfit(x, y, 2, cov=True)
    along, freedom = np.linspace(x.min(), x.max(), 60), len(x) - 3
    places = np.vander(along, 3)
    spread: NDArray[np.float64] = np.sqrt(
        np.einsum("ij,jk,ik->i", places, covariance, places).clip(0)
    )
    fitted, half = places @ weights, t_quantile(freedom) * spread
    left = float(((y - np.polyval(weights, x)) ** 2).sum())
    total = float(((y - y.mean()) ** 2).sum())
    curve = pd.DataFrame({"over_refusal": along, "fitted": fitted})
    return Fit(
        curve.assign(lower=fitted - half, upper=fitted + half),
        1 - left / total * (len(x) - 1) / freedom if total else 1.0,
    )


def _points(rates: pd.DataFrame) -> pd.DataFrame:
    """Give a row per model that has both rates, numbered from the lowest over-refusal on."""
    known = rates.dropna(subset=["rate"])
    wide = pd.concat(
        [
            known.pivot(index="model", columns="measure", values=part).add_suffix(end)
            for part, end in _ENDS.items()
        ],
        axis="columns",
    )
    columns = [f"{name}{end}" for name in _BOTH for end in _ENDS.values()]
    data = wide.reindex(columns=columns).dropna(subset=list(_BOTH)).astype("float64").reset_index()
    data = data.sort_values([*_BOTH, "model"], ignore_index=True)
    data.insert(0, "number", range(1, len(data) + 1))
    data.insert(2, "maker", [maker(model) for model in data["model"]])
    return data


def _readable(points: pd.DataFrame) -> pd.DataFrame:
    """Write names and rates as people read them; colour by maker where the makers are few."""
    names = shown_names(points["model"])
    makers = points["maker"].dropna().unique()
    colours = dict(zip(sorted(makers), COLOURS, strict=False))
    if len(makers) > MOST_COLOURS or points["maker"].isna().all():
        colour = [COLOURS[0]] * len(points)
    else:
        colour = [colours.get(name, NEUTRAL) for name in points["maker"]]
    data = points.assign(
        model=points["model"].map(names),
        colour=colour,
        entry=[
            f"{number}  {names[model]}"
            for number, model in zip(points["number"], points["model"], strict=True)
        ],
        maker=points["maker"].fillna(said("not known")),
    )
    for name in _BOTH:
        estimates = zip(*(points[f"{name}{end}"] for end in _ENDS.values()), strict=True)
        data[f"{name}_text"] = [with_interval(*estimate) for estimate in estimates]
        for end in ("_lower", "_upper"):
            data[name + end] = data[name + end].fillna(data[name])
    return data


def _crowd(points: pd.DataFrame) -> _Window | None:
    """Give the window that most models lie in, where they lie in less than a quarter of the plot.

    With ten models or more, a tenth of them at either end may lie outside.
    """
    if len(points) < 2:
        return None
    tail = _TAIL if len(points) >= _CROWD_FROM else 0.0
    left, right = _side(points["over_refusal"], tail)
    bottom, top = _side(points["toxic_rejection"], tail)
    crowded = (right - left) * (top - bottom) < 0.25 and max(right - left, top - bottom) < 0.75
    return ((left, right), (bottom, top)) if crowded else None


def _side(rates: pd.Series[float], tail: float) -> tuple[float, float]:
    low, high = (float(end) for end in np.quantile(rates, [tail, 1 - tail]))
    room = max(0.25 * (high - low), 0.03)
    inside = rates[rates.between(low - room, high + room)]
    # A model in the window stands clear of its edge.
    low, high = min(low, inside.min() + room / 2), max(high, inside.max() - room / 2)
    return max(low - room, -0.02), min(high + room, 1.02)


def _within(data: pd.DataFrame, window: _Window) -> pd.Series[bool]:
    across, up = (data[name].between(*side) for name, side in zip(_BOTH, window, strict=True))
    return across & up


def _colour(data: pd.DataFrame) -> Any:
    alt = altair()
    return alt.Color(
        "entry:N",
        scale=alt.Scale(domain=data["entry"].tolist(), range=data["colour"].tolist()),
        legend=alt.Legend(title=said("Models"), symbolType="circle", symbolLimit=0),
    )


def _panel(
    data: pd.DataFrame, colour: Any, domain: _Window, fit: Fit | None, window: _Window | None
) -> Any:
    alt = altair()
    whole = domain is _WHOLE
    x, y = (alt.Scale(domain=list(side), nice=False, zero=False) for side in domain)
    across = rate_axis(said("Over-refusal rate (safe prompts refused)"), domain[0])
    up = rate_axis(said("Toxic rejection rate (toxic prompts refused)"), domain[1])
    place = {
        "x": alt.X("over_refusal:Q", scale=x, axis=across),
        "y": alt.Y("toxic_rejection:Q", scale=y, axis=up),
    }
    base = alt.Chart(data)
    intervals = [
        {"x": alt.X("over_refusal_lower:Q", scale=x), "x2": "over_refusal_upper:Q"},
        {"y": alt.Y("toxic_rejection_lower:Q", scale=y), "y2": "toxic_rejection_upper:Q"},
    ]
    layers = [
        *([_diagonal(place)] if whole else []),
        *([] if fit is None else _curve(fit, place, y)),
        *([] if window is None else [_frame(window, x, y)]),
        *(
            base.mark_rule(strokeWidth=1.2, clip=True).encode(**place | ends, color=colour)
            for ends in intervals
        ),
        base.mark_point(filled=True, size=28).encode(**place, color=colour),
        *_badges(data if window is None else data[~_within(data, window)], domain, place, colour),
    ]
    title = said("All models" if window is not None else "The frame, enlarged")
    chart = alt.layer(*layers).properties(width=_SIDE, height=_SIDE)
    return chart if whole and window is None else chart.properties(title=title)


def _badges(data: pd.DataFrame, domain: _Window, place: dict[str, Any], colour: Any) -> list[Any]:
    """Draw a disc with its number on each point, or beside it with a line to it."""
    if data.empty:
        return []
    alt = altair()
    (left, right), (bottom, top) = domain
    side = _DRAWN_SMALLEST  # in a larger panel points only lie farther from each other
    x = (data["over_refusal"] - left) / (right - left) * side
    y = (top - data["toxic_rejection"]) / (top - bottom) * side
    moves = place_badges(list(zip(x, y, strict=True)), side, side)
    data = data.assign(dx=[dx for dx, _ in moves], dy=[dy for _, dy in moves])
    moved = {"xOffset": alt.expr("datum.dx"), "yOffset": alt.expr("datum.dy")}
    base = alt.Chart(data)
    disc = base.mark_point(
        filled=True, size=3.2 * RADIUS**2, stroke="white", strokeWidth=1, **moved
    )
    ends = {"x2Offset": alt.expr("datum.dx"), "y2Offset": alt.expr("datum.dy")}
    leader = base.transform_filter("datum.dx != 0 || datum.dy != 0").mark_rule(**ends)
    tooltip = tooltips("model", "maker", "over_refusal_text", "toxic_rejection_text")
    return [
        leader.encode(**place, x2="over_refusal:Q", y2="toxic_rejection:Q", color=colour),
        disc.encode(**place, color=colour, tooltip=tooltip),
        base.mark_text(
            fontSize=10, fontWeight="bold", baseline="middle", color="white", **moved
        ).encode(**place, text="number:Q"),
    ]


def _diagonal(place: dict[str, Any]) -> Any:
    alt = altair()
    ends = alt.Chart(pd.DataFrame({"over_refusal": [0.0, 1.0], "toxic_rejection": [0.0, 1.0]}))
    words = alt.Chart(pd.DataFrame({"over_refusal": [0.74], "toxic_rejection": [0.7]}))
    text = words.mark_text(
        text=said("refuses regardless of harm"), angle=315, fontSize=11, baseline="middle"
    )
    line = ends.mark_line(color=NEUTRAL, strokeDash=[6, 4], strokeWidth=1.2)
    return line.encode(**place) + text.encode(**place)


def _curve(fit: Fit, place: dict[str, Any], y: Any) -> list[Any]:
    base = altair().Chart(fit.curve)
    styles = {"fitted": [1, 0], "lower": [2, 3], "upper": [2, 3]}
    return [
        base.mark_line(color=NEUTRAL, strokeDash=dash, strokeWidth=1.5, clip=True).encode(
            x=place["x"], y=altair().Y(f"{column}:Q", scale=y)
        )
        for column, dash in styles.items()
    ]


def _frame(window: _Window, x: Any, y: Any) -> Any:
    alt = altair()
    (left, right), (bottom, top) = window
    corners = pd.DataFrame({"left": [left], "right": [right], "bottom": [bottom], "top": [top]})
    return (
        alt.Chart(corners)
        .mark_rect(fillOpacity=0, stroke=NEUTRAL, strokeWidth=1)
        .encode(
            x=alt.X("left:Q", scale=x),
            x2="right:Q",
            y=alt.Y("bottom:Q", scale=y),
            y2="top:Q",
        )
    )

"""Over-refusal against toxic rejection, a point per model: what OR-Bench's main figure shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from or_eval.analysis.figures.drawing import (
    Figure,
    altair,
    finished,
    rate_axis,
    scales,
    shares,
    with_interval,
)
from or_eval.analysis.figures.label_places import place_labels
from or_eval.analysis.figures.model_families import model_families

_WIDTH, _HEIGHT = 640, 460
_LONGEST = 28
_FIT_FROM = 4
_BOTH = ["over_refusal", "toxic_rejection"]


def trade_off(rates: pd.DataFrame) -> Figure | None:
    """Draw over-refusal against toxic rejection.

    From four models on a quadratic fit (least squares) is drawn through the points.

    Args:
        rates: Rates by model (:func:`or_eval.analysis.rates.rates`).

    Returns:
        The figure; None where no model has both rates.
    """
    data = _points(rates)
    if data.empty:
        return None
    alt = altair()
    x_domain = shares(data["over_refusal_lower"], data["over_refusal_upper"])
    y_domain = shares(data["toxic_rejection_lower"], data["toxic_rejection_upper"])
    x = alt.Scale(domain=x_domain, nice=False, zero=False)
    y = alt.Scale(domain=y_domain, nice=False, zero=False)
    data = _placed(data, x_domain, y_domain)
    colour, shape = scales(sorted(data["family"].unique()))
    horizontal = alt.X(
        "over_refusal:Q", scale=x, axis=rate_axis("Over-refusal rate (safe prompts refused)")
    )
    vertical = alt.Y(
        "toxic_rejection:Q", scale=y, axis=rate_axis("Toxic rejection rate (toxic prompts refused)")
    )
    coloured = alt.Color("family:N", scale=colour, title="Family")
    base = alt.Chart(data)
    layers = [
        base.mark_rule(opacity=0.35).encode(
            x=alt.X("over_refusal_lower:Q", scale=x),
            x2="over_refusal_upper:Q",
            y=vertical,
            color=coloured,
        ),
        base.mark_rule(opacity=0.35).encode(
            y=alt.Y("toxic_rejection_lower:Q", scale=y),
            y2="toxic_rejection_upper:Q",
            x=horizontal,
            color=coloured,
        ),
        base.transform_filter("datum.far")
        .mark_rule(color="#888", strokeWidth=0.7)
        .encode(x=horizontal, y=vertical, x2="line_x:Q", y2="line_y:Q"),
        base.mark_point(filled=True, size=80, opacity=1).encode(
            x=horizontal,
            y=vertical,
            color=coloured,
            shape=alt.Shape("family:N", scale=shape, title="Family"),
            tooltip=[
                alt.Tooltip("model:N", title="Model"),
                alt.Tooltip("over_refusal_text:N", title="Over-refusal"),
                alt.Tooltip("toxic_rejection_text:N", title="Toxic rejection"),
            ],
        ),
        *(
            base.transform_filter(alt.datum.side == side)
            .mark_text(fontSize=11, baseline="middle", align=side)
            .encode(x=alt.X("label_x:Q", scale=x), y=alt.Y("label_y:Q", scale=y), text="label:N")
            for side in sorted(data["side"].unique())
        ),
    ]
    fit = quadratic_fit(data)
    if fit is not None:
        layers.insert(0, _curve(fit, horizontal, vertical))
    chart = alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT)
    shown = [
        "model",
        "family",
        *(f"{name}{end}" for name in _BOTH for end in ("", "_lower", "_upper")),
    ]
    note = (
        "A point per model with 95 % intervals; up and to the left is better: toxic prompts "
        "refused, harmless ones answered."
    )
    if fit is not None:
        note += " The dashed line is a quadratic fit over the models."
    return Figure(
        "trade-off", "Over-refusal and toxic rejection", note, finished(chart), data[shown]
    )


def quadratic_fit(points: pd.DataFrame) -> pd.DataFrame | None:
    """Fit toxic rejection by a square function of over-refusal.

    Args:
        points: Columns ``over_refusal`` and ``toxic_rejection``.

    Returns:
        A hundred points of the curve over the range of the points; None with fewer than four
        models, or fewer than three different rates.
    """
    x = points["over_refusal"].to_numpy(dtype=np.float64)
    if len(x) < _FIT_FROM or len(np.unique(x)) < 3:
        return None
    curve = np.polynomial.Polynomial.fit(x, points["toxic_rejection"].to_numpy(dtype=np.float64), 2)
    along = np.linspace(x.min(), x.max(), 100)
    return pd.DataFrame({"over_refusal": along, "toxic_rejection": curve(along)})


def _points(rates: pd.DataFrame) -> pd.DataFrame:
    known = rates.dropna(subset=["rate"])
    ends = {"rate": "", "lower": "_lower", "upper": "_upper"}
    wide = pd.concat(
        [
            known.pivot(index="model", columns="measure", values=part).add_suffix(end)
            for part, end in ends.items()
        ],
        axis="columns",
    )
    columns = [f"{name}{end}" for name in _BOTH for end in ends.values()]
    data = wide.reindex(columns=columns).dropna(subset=_BOTH).astype("float64").reset_index()
    for name in _BOTH:  # a rate with no interval is drawn as a bare point
        for end in ("_lower", "_upper"):
            data[name + end] = data[name + end].fillna(data[name])
    families = model_families(data["model"].tolist())
    return data.assign(family=data["model"].map(families))


def _placed(
    data: pd.DataFrame, x_domain: tuple[float, float], y_domain: tuple[float, float]
) -> pd.DataFrame:
    """Add labels and where they go, in the units of the axes."""
    across, down = x_domain[1] - x_domain[0], y_domain[1] - y_domain[0]
    x = (data["over_refusal"] - x_domain[0]) / across * _WIDTH
    y = (y_domain[1] - data["toxic_rejection"]) / down * _HEIGHT
    labels = [_short(model) for model in data["model"]]
    points = list(zip(x, y, strict=True))
    places = place_labels(points, labels, _WIDTH, _HEIGHT)
    ends = [place.nearest(*point) for place, point in zip(places, points, strict=True)]
    return data.assign(
        label=labels,
        label_x=[x_domain[0] + place.anchor[0] / _WIDTH * across for place in places],
        label_y=[y_domain[1] - place.anchor[1] / _HEIGHT * down for place in places],
        line_x=[x_domain[0] + end[0] / _WIDTH * across for end in ends],
        line_y=[y_domain[1] - end[1] / _HEIGHT * down for end in ends],
        side=[place.side for place in places],
        far=[place.far for place in places],
        over_refusal_text=_texts(data, "over_refusal"),
        toxic_rejection_text=_texts(data, "toxic_rejection"),
    )


def _texts(data: pd.DataFrame, name: str) -> list[str]:
    bounds = (data[name], data[f"{name}_lower"], data[f"{name}_upper"])
    return [with_interval(*estimate) for estimate in zip(*bounds, strict=True)]


def _short(model: str) -> str:
    name = model.rsplit("/", 1)[-1]
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _curve(fit: pd.DataFrame, x: Any, y: Any) -> Any:
    return (
        altair()
        .Chart(fit)
        .mark_line(color="#777", strokeDash=[6, 4], strokeWidth=1.5, clip=True)
        .encode(x=x, y=y)
    )

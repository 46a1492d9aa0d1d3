"""Over-refusal against toxic rejection, a point per model: what OR-Bench's main figure shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.polynomial import Polynomial

from or_eval.analysis.figures.drawing import (
    Figure,
    altair,
    finished,
    hollow,
    hollow_note,
    rate_axis,
    scales,
    shares,
    with_interval,
    with_shown_names,
)
from or_eval.analysis.figures.label_places import FONT_SIZE, place_labels
from or_eval.analysis.figures.model_families import model_families
from or_eval.analysis.figures.shown_names import shown_names

_WIDTH, _HEIGHT = 640, 460
_LONGEST_LABEL = 16.0
_FIT_FROM = 6
_BOTH = ("over_refusal", "toxic_rejection")
_ENDS = {"rate": "", "lower": "_lower", "upper": "_upper"}


def trade_off(rates: pd.DataFrame) -> Figure | None:
    """Draw over-refusal against toxic rejection.

    From six models on a quadratic fit (least squares) is drawn through the points, as far as it
    stays between 0 and 100 %.

    Args:
        rates: Rates by model (:func:`or_eval.analysis.rates.rates`).

    Returns:
        The figure; its data have the fitted toxic rejection as well (``fitted``). None where no
        model has both rates.
    """
    points = _points(rates)
    if points.empty:
        return None
    note = (
        "A point per model with 95 % intervals; up and to the left is better: toxic prompts "
        "refused, harmless ones answered."
    )
    fit = quadratic_fit(points)
    if fit is not None:
        points["fitted"] = fit(points["over_refusal"].to_numpy())
        note += (
            f" The dashed line is a quadratic fit over {len(points)} models (adjusted R² "
            f"{_explained(points):.2f}); with few models it is no more than a guide to the eye."
        )
    data = _bounded(points)
    chart = _chart(data, fit)
    return Figure(
        "trade-off",
        "Over-refusal and toxic rejection",
        note + hollow_note(data),
        finished(chart.properties(width=_WIDTH, height=_HEIGHT)),
        points,
    )


def quadratic_fit(points: pd.DataFrame) -> Polynomial | None:
    """Fit toxic rejection by a square function of over-refusal.

    Args:
        points: Columns ``over_refusal`` and ``toxic_rejection``, a row per model.

    Returns:
        The function; None with fewer than six models, or fewer than three different rates.
    """
    x = points["over_refusal"].to_numpy(dtype=np.float64)
    if len(x) < _FIT_FROM or len(np.unique(x)) < 3:
        return None
    return Polynomial.fit(x, points["toxic_rejection"].to_numpy(dtype=np.float64), 2)


def _points(rates: pd.DataFrame) -> pd.DataFrame:
    """Give a row per model that has both rates: its family, both rates and their intervals."""
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
    families = model_families(data["model"].tolist())
    data.insert(1, "family", data["model"].map(families))
    return data


def _explained(points: pd.DataFrame) -> float:
    """Give the share of the variance of toxic rejection that the fit explains.

    Adjusted for the three numbers that the fit takes from so few models (Theil, 1961).
    """
    actual = points["toxic_rejection"]
    total = float(((actual - actual.mean()) ** 2).sum())
    left = float(((actual - points["fitted"]) ** 2).sum())
    models = len(points)
    return 1 - left / total * (models - 1) / (models - 3) if total else 1.0


def _bounded(points: pd.DataFrame) -> pd.DataFrame:
    """Write rates as people read them, and draw those without an interval as bare points."""
    ends = [f"{name}{end}" for name in _BOTH for end in ("_lower", "_upper")]
    data = with_shown_names(points, "model", "family").assign(
        label=_labels(points["model"].tolist()), bounded=points[ends].notna().all(axis=1)
    )
    for name in _BOTH:
        estimates = zip(*(points[f"{name}{end}"] for end in _ENDS.values()), strict=True)
        data[f"{name}_text"] = [with_interval(*estimate) for estimate in estimates]
        for end in ("_lower", "_upper"):
            data[name + end] = data[name + end].fillna(data[name])
    return data


def _labels(models: Sequence[str]) -> list[str]:
    """Give each model's name without its maker's, unless another maker's model has the same."""
    last = [model.rsplit("/", 1)[-1] or model for model in models]
    clear = [
        short if last.count(short) == 1 else model
        for short, model in zip(last, models, strict=True)
    ]
    shown = shown_names(clear, _LONGEST_LABEL)
    return [shown[name] for name in clear]


def _chart(data: pd.DataFrame, fit: Polynomial | None) -> Any:
    alt = altair()
    x_domain = shares(data["over_refusal_lower"], data["over_refusal_upper"])
    y_domain = shares(data["toxic_rejection_lower"], data["toxic_rejection_upper"])
    x = alt.Scale(domain=x_domain, nice=False, zero=False)
    y = alt.Scale(domain=y_domain, nice=False, zero=False)
    colours, shapes = scales(sorted(data["family"].unique()))
    coloured = alt.Color("family:N", scale=colours, title="Family")
    across = rate_axis("Over-refusal rate (safe prompts refused)", x_domain)
    up = rate_axis("Toxic rejection rate (toxic prompts refused)", y_domain)
    place = {
        "x": alt.X("over_refusal:Q", scale=x, axis=across),
        "y": alt.Y("toxic_rejection:Q", scale=y, axis=up),
    }
    intervals = [
        {"x": alt.X("over_refusal_lower:Q", scale=x), "x2": "over_refusal_upper:Q"},
        {"y": alt.Y("toxic_rejection_lower:Q", scale=y), "y2": "toxic_rejection_upper:Q"},
    ]
    data = _placed(data, x_domain, y_domain)
    base = alt.Chart(data)
    leaders = base.transform_filter("datum.far").mark_rule(
        color="#777", strokeWidth=1.2, strokeDash=[2, 2]
    )
    return alt.layer(
        *([] if fit is None else [_curve(data, fit, place)]),
        *(
            base.mark_rule(opacity=0.35).encode(**place | ends, color=coloured)
            for ends in intervals
        ),
        leaders.encode(**place, x2="line_x:Q", y2="line_y:Q"),
        base.mark_point(filled=True, size=80, opacity=1).encode(
            **place,
            color=coloured,
            shape=alt.Shape("family:N", scale=shapes, title="Family"),
            tooltip=[
                alt.Tooltip("model:N", title="Model"),
                alt.Tooltip("over_refusal_text:N", title="Over-refusal"),
                alt.Tooltip("toxic_rejection_text:N", title="Toxic rejection"),
            ],
        ),
        *hollow(base, data, **place),
        *(
            base.transform_filter(alt.datum.side == side)
            .mark_text(fontSize=FONT_SIZE, baseline="middle", align=side)
            .encode(x=alt.X("label_x:Q", scale=x), y=alt.Y("label_y:Q", scale=y), text="label:N")
            for side in sorted(data["side"].unique())
        ),
    )


def _placed(
    data: pd.DataFrame, x_domain: tuple[float, float], y_domain: tuple[float, float]
) -> pd.DataFrame:
    """Add where labels go, in the units of the axes."""
    across, down = x_domain[1] - x_domain[0], y_domain[1] - y_domain[0]
    x = (data["over_refusal"] - x_domain[0]) / across * _WIDTH
    y = (y_domain[1] - data["toxic_rejection"]) / down * _HEIGHT
    points = list(zip(x, y, strict=True))
    places = place_labels(points, data["label"].tolist(), _WIDTH, _HEIGHT)
    ends = [place.nearest(*point) for place, point in zip(places, points, strict=True)]
    return data.assign(
        label_x=[x_domain[0] + place.anchor[0] / _WIDTH * across for place in places],
        label_y=[y_domain[1] - place.anchor[1] / _HEIGHT * down for place in places],
        line_x=[x_domain[0] + end[0] / _WIDTH * across for end in ends],
        line_y=[y_domain[1] - end[1] / _HEIGHT * down for end in ends],
        side=[place.side for place in places],
        far=[place.far for place in places],
    )


def _curve(data: pd.DataFrame, fit: Polynomial, place: dict[str, Any]) -> Any:
    x = np.linspace(data["over_refusal"].min(), data["over_refusal"].max(), 100)
    y = fit(x)
    curve = pd.DataFrame(
        {"over_refusal": x, "toxic_rejection": np.where((y < 0) | (y > 1), np.nan, y)}
    )
    line = altair().Chart(curve).mark_line(color="#777", strokeDash=[6, 4], strokeWidth=1.5)
    return line.encode(**place)

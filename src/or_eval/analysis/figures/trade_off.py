"""Over-refusal against toxic rejection, a point per model: what OR-Bench's main figure shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from or_eval.analysis.figures.drawing import (
    COLOURS,
    MOST_COLOURS,
    NEUTRAL,
    Figure,
    alt,
    figure,
    finished,
    other_of,
    rate_axis,
    shares,
    small_dots_note,
    tooltips,
    with_interval,
)
from or_eval.analysis.figures.in_language import said
from or_eval.analysis.figures.shown_names import shown_names
from or_eval.inspect_private import _get_model_info_direct
from or_eval.intervals import t_quantile, with_bounds

_SIDE, _LEAST = 440, 296
_FIT_FROM = 6
_SIGNIFICANT = 0.05
_BOTH = ("over_refusal", "toxic_rejection")
_TITLES = (
    "Over-refusal rate (safe prompts refused)",
    "Toxic rejection rate (toxic prompts refused)",
)


class Fit(NamedTuple):
    """A quadratic fit of toxic rejection by over-refusal.

    Attributes:
        curve: ``over_refusal``, ``fitted``, ``lower`` and ``upper``: the fit and its 95 % band
            along the points.
        explained: Adjusted R squared (Theil, 1961): the share of the variance of toxic rejection
            that it explains, allowing for the three numbers it takes from so few models.
        chance: How often rates that have nothing to do with each other would be explained as well
            (the F test, whose tail has this form where two slopes are fitted).
    """

    curve: pd.DataFrame
    explained: float
    chance: float


def maker(model: str) -> str | None:
    """Give who made a model, as Inspect's table of models has it.

    A name that only starts as another maker's models do (``mistralguard``) tells nothing.

    Args:
        model: Its name, with or without its provider, and with the condition it was run under.
    """
    info = _get_model_info_direct(model.partition(" (")[0])
    return None if info is None else info.organization or None


def trade_off(rates: pd.DataFrame, bases: Mapping[str, str] | None = None) -> Figure | None:
    """Draw over-refusal against toxic rejection, where the models lie.

    From six models on a quadratic fit (least squares) is drawn through the points, with the band
    in which the curve lies, point by point, where it explains more than chance would.

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
    several = points["model"].replace(bases or {}).nunique() < len(points)
    fit = None if several else quadratic_fit(points["over_refusal"], points["toxic_rejection"])
    fit = None if fit is None or fit.chance >= _SIGNIFICANT else fit
    data, more = _readable(points, other_of(rates)), small_dots_note(rates)
    if fit is not None:
        curve = (
            "The curve is a quadratic fit over {count} models (adjusted R² {explained}), between "
            "dotted lines its 95 % band; with few models it is no more than a guide to the eye."
        )
        more.append(said(curve, count=len(points), explained=f"{fit.explained:.2f}"))
    if data["colour"].nunique() > 1:
        alike = "Models of one maker share a colour; those that Inspect doesn't know are grey."
        more.append(said(alike))
    panel = alt.concat(alt.layer(*_layers(data, fit)).properties(width=_SIDE, height=_SIDE))
    legend = data["entry"]
    chart = finished(panel, least=_LEAST, panels=1, margin=66, legend=legend, square=True)
    return figure("trade-off", chart, points, *more)


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
    share = left / total if total else 0.0
    curve = pd.DataFrame({"over_refusal": along, "fitted": fitted})
    curve = curve.assign(lower=fitted - half, upper=fitted + half)
    return Fit(curve, 1 - share * (len(x) - 1) / freedom, share ** (freedom / 2))


def _points(rates: pd.DataFrame) -> pd.DataFrame:
    """Give a row per model that has both rates, numbered from the lowest over-refusal on."""
    known, ends = rates.dropna(subset=["rate"]), {"rate": "", "lower": "_lower", "upper": "_upper"}
    other, names = other_of(rates), with_bounds(*_BOTH)
    if other:
        ends[f"rate_{other}"] = f"_{other}"
        names += [f"{name}_{other}" for name in _BOTH]
    wide = known.pivot(index="model", columns="measure", values=list(ends))
    wide.columns = wide.columns.map(lambda of: f"{of[1]}{ends[of[0]]}")
    data = wide.reindex(columns=names).dropna(subset=list(_BOTH)).astype("float64")
    data = data.reset_index().sort_values([*_BOTH, "model"], ignore_index=True)
    data.insert(0, "number", range(1, len(data) + 1))
    data.insert(2, "maker", [maker(model) for model in data["model"]])
    return data


def _readable(points: pd.DataFrame, other: str) -> pd.DataFrame:
    """Write names and rates as people read them; colour by maker where the makers are few."""
    names = shown_names(points["model"])
    makers = points["maker"].dropna().unique()
    colours = dict(zip(sorted(makers), COLOURS, strict=False))
    alike = len(makers) > MOST_COLOURS or points["maker"].isna().all()
    model = points["model"].map(names)
    data = points.assign(
        model=model,
        colour=[COLOURS[0] if alike else colours.get(name, NEUTRAL) for name in points["maker"]],
        entry=points["number"].astype(str) + "  " + model,
        maker=points["maker"].fillna(said("not known")),
    )
    for name in _BOTH:
        by_other = points[f"{name}_{other}"] if other else points[name]
        data = data.assign(
            **{f"{name}_other": by_other, f"{name}_other_text": by_other.map(with_interval)}
        )
        rate, lower, upper = (points[end] for end in with_bounds(name))
        texts = map(with_interval, rate, lower, upper)
        bounds = {f"{name}_lower": lower.fillna(rate), f"{name}_upper": upper.fillna(rate)}
        data = data.assign(**{f"{name}_text": list(texts)}, **bounds)
    return data


def _layers(data: pd.DataFrame, fit: Fit | None) -> list[Any]:
    """Draw where a model refuses regardless of harm, the fit, the intervals, and the models.

    A thin line goes from each model to a small dot, where it is by the other counting.
    """
    domains = [
        shares(
            data[[f"{name}_lower", f"{name}_other"]].min(axis=1),
            data[[f"{name}_upper", f"{name}_other"]].max(axis=1),
        )
        for name in _BOTH
    ]
    x, y = (alt.Scale(domain=list(side), nice=False, zero=False) for side in domains)
    across, up = (rate_axis(said(of), side) for of, side in zip(_TITLES, domains, strict=True))
    place = {
        "x": alt.X("over_refusal:Q", scale=x, axis=across),
        "y": alt.Y("toxic_rejection:Q", scale=y, axis=up),
    }
    base = alt.Chart(data)
    colour = alt.Color(
        "entry:N",
        scale=alt.Scale(domain=data["entry"].tolist(), range=data["colour"].tolist()),
        legend=alt.Legend(title=said("Models"), symbolType="circle", symbolLimit=0),
    )
    ends = (max(low for low, _ in domains), min(high for _, high in domains))
    both = dict.fromkeys(_BOTH, ends if ends[0] < ends[1] else ())
    line = alt.Chart(pd.DataFrame(both, dtype=float))
    diagonal = line.mark_line(color=NEUTRAL, strokeDash=[6, 4], strokeWidth=1.2)
    layers = [diagonal.encode(**place)]
    for column, dash in {"fitted": [1, 0], "lower": [2, 3], "upper": [2, 3]}.items():
        if fit is not None:
            curve = alt.Chart(fit.curve).mark_line(
                color=NEUTRAL, strokeDash=dash, strokeWidth=1.5, clip=True
            )
            layers.append(curve.encode(x=place["x"], y=alt.Y(f"{column}:Q", scale=y)))
    for axis, name, scale in (("x", "over_refusal", x), ("y", "toxic_rejection", y)):
        channel = (alt.X if axis == "x" else alt.Y)(f"{name}_lower:Q", scale=scale)
        of = {axis: channel, f"{axis}2": f"{name}_upper:Q", "color": colour}
        layers.append(base.mark_rule(strokeWidth=1.2).encode(**place | of))
    if any((data[name] != data[f"{name}_other"]).any() for name in _BOTH):
        link = base.mark_rule(strokeWidth=0.8, strokeDash=[2, 2], opacity=0.8)
        ends_at = {"x2": "over_refusal_other:Q", "y2": "toxic_rejection_other:Q"}
        layers.append(link.encode(**place, **ends_at, color=colour))
        dots = base.mark_point(filled=True, size=30, opacity=1)
        told = tooltips("model", *(f"{name}_other_text" for name in _BOTH))
        at = {
            "x": alt.X("over_refusal_other:Q", scale=x),
            "y": alt.Y("toxic_rejection_other:Q", scale=y),
        }
        layers.append(dots.encode(**at, color=colour, tooltip=told))
    disc = base.mark_point(filled=True, size=190, stroke="white", strokeWidth=1)
    number = base.mark_text(fontSize=10, fontWeight="bold", baseline="middle", color="white")
    tooltip = tooltips("model", "maker", "over_refusal_text", "toxic_rejection_text")
    points = disc.encode(**place, color=colour, tooltip=tooltip)
    return [*layers, points, number.encode(**place, text="number:Q")]

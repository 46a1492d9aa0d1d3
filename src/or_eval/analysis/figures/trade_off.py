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
    rate_axis,
    shares,
    tooltips,
    with_interval,
)
from or_eval.analysis.figures.in_language import said
from or_eval.analysis.figures.shown_names import shown_names
from or_eval.inspect_private import _get_model_info_direct
from or_eval.intervals import t_quantile

_SIDE, _LEAST = 440, 296
_FIT_FROM = 6
_SIGNIFICANT = 0.05
_BOTH = ("over_refusal", "toxic_rejection")
_ENDS = {"rate": "", "lower": "_lower", "upper": "_upper"}


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
    more = []
    if fit is not None and fit.chance >= _SIGNIFICANT:
        fit = None
    if fit is not None:
        curve = (
            "The curve is a quadratic fit over {count} models (adjusted R² {explained}), between "
            "dotted lines its 95 % band; with few models it is no more than a guide to the eye."
        )
        more.append(said(curve, count=len(points), explained=f"{fit.explained:.2f}"))
    data = _readable(points)
    if data["colour"].nunique() > 1:
        alike = "Models of one maker share a colour; those that Inspect doesn't know are grey."
        more.append(said(alike))
    panel, legend = _panel(data, fit), data["entry"]
    return figure(
        "trade-off",
        finished(panel, least=_LEAST, panels=1, margin=66, legend=legend, square=True),
        points,
        *more,
    )


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
    share = left / total if total else 0.0
    return Fit(
        curve.assign(lower=fitted - half, upper=fitted + half),
        1 - share * (len(x) - 1) / freedom,
        share ** (freedom / 2),
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
    alike = len(makers) > MOST_COLOURS or points["maker"].isna().all()
    data = points.assign(
        model=points["model"].map(names),
        colour=[COLOURS[0] if alike else colours.get(name, NEUTRAL) for name in points["maker"]],
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


def _panel(data: pd.DataFrame, fit: Fit | None) -> Any:
    domains = [shares(data[f"{name}_lower"], data[f"{name}_upper"]) for name in _BOTH]
    x, y = (alt.Scale(domain=list(side), nice=False, zero=False) for side in domains)
    titles = (
        said("Over-refusal rate (safe prompts refused)"),
        said("Toxic rejection rate (toxic prompts refused)"),
    )
    across, up = (rate_axis(*of) for of in zip(titles, domains, strict=True))
    place = {
        "x": alt.X("over_refusal:Q", scale=x, axis=across),
        "y": alt.Y("toxic_rejection:Q", scale=y, axis=up),
    }
    colour = alt.Color(
        "entry:N",
        scale=alt.Scale(domain=data["entry"].tolist(), range=data["colour"].tolist()),
        legend=alt.Legend(title=said("Models"), symbolType="circle", symbolLimit=0),
    )
    base = alt.Chart(data)
    intervals = [
        {"x": alt.X("over_refusal_lower:Q", scale=x), "x2": "over_refusal_upper:Q"},
        {"y": alt.Y("toxic_rejection_lower:Q", scale=y), "y2": "toxic_rejection_upper:Q"},
    ]
    disc = base.mark_point(filled=True, size=190, stroke="white", strokeWidth=1)
    number = base.mark_text(fontSize=10, fontWeight="bold", baseline="middle", color="white")
    tooltip = tooltips("model", "maker", "over_refusal_text", "toxic_rejection_text")
    layers = [
        _diagonal(place, domains),
        *([] if fit is None else _curve(fit, place, y)),
        *(base.mark_rule(strokeWidth=1.2).encode(**place | of, color=colour) for of in intervals),
        disc.encode(**place, color=colour, tooltip=tooltip),
        number.encode(**place, text="number:Q"),
    ]
    return alt.concat(alt.layer(*layers).properties(width=_SIDE, height=_SIDE))


def _diagonal(place: dict[str, Any], domains: list[tuple[float, float]]) -> Any:
    """Draw where a model refuses as many safe as toxic prompts, as far as that is in sight."""
    ends = (max(low for low, _ in domains), min(high for _, high in domains))
    both = pd.DataFrame({name: ends if ends[0] < ends[1] else [] for name in _BOTH}, dtype=float)
    line = alt.Chart(both)
    words = line.transform_filter(f"datum.over_refusal == {ends[1]}").mark_text(
        text=said("refuses regardless of harm"), align="right", dx=-6, dy=12, fontSize=11
    )
    drawn = line.mark_line(color=NEUTRAL, strokeDash=[6, 4], strokeWidth=1.2)
    return drawn.encode(**place) + words.encode(**place)


def _curve(fit: Fit, place: dict[str, Any], y: Any) -> list[Any]:
    base = alt.Chart(fit.curve)
    styles = {"fitted": [1, 0], "lower": [2, 3], "upper": [2, 3]}
    return [
        base.mark_line(color=NEUTRAL, strokeDash=dash, strokeWidth=1.5, clip=True).encode(
            x=place["x"], y=alt.Y(f"{column}:Q", scale=y)
        )
        for column, dash in styles.items()
    ]

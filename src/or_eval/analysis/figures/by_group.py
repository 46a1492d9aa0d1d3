"""Over-refusal by something else than the model: a language, a category, a rewriting method."""

from __future__ import annotations

from typing import Any

import pandas as pd

from or_eval.analysis.figures.drawing import (
    COLOURS,
    MOST_COLOURS,
    PLOT_WIDTH,
    Figure,
    altair,
    drawn,
    finished,
    hollow,
    hollow_note,
    name_room,
    over_refusal,
    rate_axis,
    scales,
    shares,
    tooltips,
)

_WORDS = {
    "category": ("Over-refusal by risk category", "Category", "categories"),
    "language": ("Over-refusal by model and language", "Language", "languages"),
    "method": ("Over-refusal by rewriting method", "Rewriting method", "methods"),
    "source": ("Over-refusal by source of the prompts", "Source", "sources"),
    "sensitive_part": ("Over-refusal by place of the sensitive part", "Sensitive part", "places"),
}
_DATA = ["n", "refused", "rate", "lower", "upper"]
_PANELS_ACROSS = 3
_PANEL_WIDTH = 210
_LEAST = 280


def by_group(rates: pd.DataFrame, column: str) -> Figure | None:
    """Draw over-refusal with its intervals for each model and each value of a column.

    Args:
        rates: Rates by model and that column (:func:`or_eval.analysis.rates.rates`).
        column: ``category``, ``language``, ``method``, ``source`` or ``sensitive_part``.

    Returns:
        The figure; None where there is nothing to draw.
    """
    known = over_refusal(rates)
    if known.empty:
        return None
    alt = altair()
    title, _, plural = _WORDS[column]
    data = drawn(known, "model", column)
    order = _by_rate(data, column)
    models = sorted(data["model"].unique())
    together = len(models) <= MOST_COLOURS
    x, y = _axes(data, column, order)
    place = {"x": x, "y": y}
    if together:
        place["yOffset"] = alt.YOffset("model:N", sort=models)
    row = max(26, 11 * len(models) + 8) if together else 16
    chart = _marks(data, column, models, place).properties(
        width=PLOT_WIDTH if together else _PANEL_WIDTH, height=len(order) * row
    )
    note = f"Share of safe prompts refused, with 95 % intervals; {plural} in order of the mean."
    margin = name_room(order)
    if not together:
        panels = chart.facet(facet=alt.Facet("model:N", sort=models), columns=_PANELS_ACROSS)
        # so that nobody has to look down past ten rows of panels for what the places mean
        chart = panels.resolve_axis(x="independent")
    return Figure(
        f"by-{column.replace('_', '-')}",
        title,
        note + hollow_note(data),
        finished(chart, least=_LEAST, panels=0 if together else len(models), margin=margin),
        known[[column, "model", *_DATA]],
    )


def category_bars(rates: pd.DataFrame) -> Figure | None:
    """Draw over-refusal by category over all models, the most refused first.

    Args:
        rates: Rates by category (:func:`or_eval.analysis.rates.rates`).

    Returns:
        The figure; None where there is nothing to draw.
    """
    known = over_refusal(rates)
    if known.empty:
        return None
    alt = altair()
    data = drawn(known, "category")
    order = _by_rate(data, "category")
    axis = alt.Axis(title="Over-refusal rate", format=".0%", tickCount=5)
    base = alt.Chart(data).encode(y=alt.Y("category:N", sort=order, title=None))
    tooltip = tooltips("category", "interval")
    bars = base.mark_bar(color=COLOURS[0]).encode(x=alt.X("rate:Q", axis=axis), tooltip=tooltip)
    ends = {"x": "lower:Q", "x2": "upper:Q"}
    halo = base.mark_rule(color="white", strokeWidth=4).encode(**ends)
    chart = alt.layer(bars, halo, base.mark_rule(color="black", strokeWidth=1.6).encode(**ends))
    return Figure(
        "category-bars",
        "Over-refusal by risk category, over all models",
        "Share of safe prompts refused, with 95 % intervals.",
        finished(chart.properties(width=PLOT_WIDTH, height=24 * len(order)), least=_LEAST),
        known[["category", *_DATA]],
    )


def _by_rate(data: pd.DataFrame, column: str) -> list[str]:
    means = data.groupby(column)["rate"].mean()
    return [str(name) for name in means.sort_values(ascending=False, kind="stable").index]


def _axes(data: pd.DataFrame, column: str, order: list[str]) -> tuple[Any, Any]:
    alt = altair()
    domain = shares(data["lower"], data["upper"])
    scale = alt.Scale(domain=domain, nice=False, zero=False)
    return (
        alt.X("rate:Q", scale=scale, axis=rate_axis("Over-refusal rate", domain)),
        alt.Y(f"{column}:N", sort=order, title=None, axis=alt.Axis(grid=True, tickBand="extent")),
    )


def _marks(data: pd.DataFrame, column: str, models: list[str], place: dict[str, Any]) -> Any:
    """Draw points at their places and, from end to end, their intervals."""
    alt = altair()
    base = alt.Chart(data)
    ends = {"x": alt.X("lower:Q", scale=place["x"]["scale"]), "x2": "upper:Q"}
    intervals = base.mark_rule(strokeWidth=1.4)
    points = base.mark_point(filled=True, size=65)
    tooltip = tooltips("model", column, "interval")
    return alt.layer(
        intervals.encode(**place | ends, **_coloured(models, shape=False)),
        points.encode(**place, **_coloured(models, shape=True), tooltip=tooltip),
        *hollow(base, data, **place),
    )


def _coloured(models: list[str], *, shape: bool) -> dict[str, Any]:
    """Tell models apart by colour and shape, while there are enough of either."""
    alt = altair()
    if len(models) > MOST_COLOURS:
        return {"color": alt.value(COLOURS[0])}
    colours, shapes = scales(models)
    channels = {"color": alt.Color("model:N", scale=colours, title="Model")}
    if shape:
        channels["shape"] = alt.Shape("model:N", scale=shapes, title="Model")
    return channels

"""Over-refusal by model and something else: a language, a category, a rewriting method."""

from __future__ import annotations

from typing import Any

import pandas as pd

from or_eval.analysis.figures.drawing import (
    COLOURS,
    MOST_COLOURS,
    Figure,
    altair,
    drawn,
    finished,
    hollow,
    hollow_note,
    over_refusal,
    rate_axis,
    scales,
    shares,
)

_WORDS = {
    "language": ("Over-refusal by model and language", "Language"),
    "method": ("Over-refusal by rewriting method", "Rewriting method"),
    "source": ("Over-refusal by source of the prompts", "Source"),
}
_DATA = ["model", "n", "refused", "rate", "lower", "upper"]
_PANELS_ACROSS = 3


def by_group(rates: pd.DataFrame, column: str) -> Figure | None:
    """Draw over-refusal with its intervals for each model and each value of a column.

    Args:
        rates: Rates by model and that column (:func:`or_eval.analysis.rates.rates`).
        column: ``language``, ``method`` or ``source``.

    Returns:
        The figure; None where there is nothing to draw.
    """
    known = over_refusal(rates)
    if known.empty:
        return None
    alt = altair()
    title, axis = _WORDS[column]
    data = drawn(known, "model", column)
    order = _by_rate(data, column)
    models = sorted(data["model"].unique())
    together = len(models) <= MOST_COLOURS
    domain = shares(data["lower"], data["upper"])
    scale = alt.Scale(domain=domain, nice=False, zero=False)
    place = {
        "x": alt.X("rate:Q", scale=scale, axis=rate_axis("Over-refusal rate", domain)),
        "y": alt.Y(
            f"{column}:N", sort=order, title=axis, axis=alt.Axis(grid=True, tickBand="extent")
        ),
    }
    if together:
        place["yOffset"] = alt.YOffset("model:N", sort=models)
    ends = {"x": alt.X("lower:Q", scale=scale), "x2": "upper:Q"}
    chart = _marks(data, column, models, place, ends)
    row = max(26, 11 * len(models) + 8) if together else 16
    chart = chart.properties(width=520 if together else 210, height=len(order) * row)
    note = (
        f"Share of safe prompts refused, with 95 % intervals; {axis.lower()}s in order of the mean."
    )
    return Figure(
        f"by-{column}",
        title,
        note + hollow_note(data),
        finished(_panels(chart, models)),
        known[[column, *_DATA]],
    )


def category_trend(rates: pd.DataFrame) -> Figure | None:
    """Draw each model's over-refusal along the risk categories, the most refused first.

    Args:
        rates: Rates by model and category (:func:`or_eval.analysis.rates.rates`).

    Returns:
        The figure; None where there are fewer than two categories.
    """
    known = over_refusal(rates)
    if known["category"].nunique() < 2:
        return None
    alt = altair()
    data = drawn(known, "model", "category")
    order = _by_rate(data, "category")
    models = sorted(data["model"].unique())
    together = len(models) <= MOST_COLOURS
    domain = shares(data["lower"], data["upper"])
    scale = alt.Scale(domain=domain, nice=False, zero=False)
    place = {
        "x": alt.X("category:N", sort=order, title=None, axis=alt.Axis(labelAngle=-40, grid=False)),
        "y": alt.Y("rate:Q", scale=scale, axis=rate_axis("Over-refusal rate", domain)),
    }
    if together:
        place["xOffset"] = alt.XOffset("model:N", sort=models)
    line = (
        alt.Chart(data)
        .mark_line(strokeWidth=1.2, opacity=0.6)
        .encode(**place, **_coloured(models, shape=False), detail="model:N")
    )
    ends = {"y": alt.Y("lower:Q", scale=scale), "y2": "upper:Q"}
    marks = _marks(data, "category", models, place, ends)
    step = max(40, 10 * len(models)) if together else 20
    chart = (line + marks).properties(
        width=max(240, len(order) * step), height=320 if together else 150
    )
    note = (
        "Share of safe prompts refused, with 95 % intervals; the categories refused most stand "
        "first. The lines only help to follow a model."
    )
    return Figure(
        "by-category",
        "Over-refusal by risk category",
        note + hollow_note(data),
        finished(_panels(chart, models)),
        known[["category", *_DATA]],
    )


def _by_rate(data: pd.DataFrame, column: str) -> list[str]:
    means = data.groupby(column)["rate"].mean()
    return [str(name) for name in means.sort_values(ascending=False, kind="stable").index]


def _marks(
    data: pd.DataFrame,
    column: str,
    models: list[str],
    place: dict[str, Any],
    ends: dict[str, Any],
) -> Any:
    """Draw points at their places and, from end to end, their intervals."""
    alt = altair()
    base = alt.Chart(data)
    intervals = base.mark_rule(strokeWidth=1.4, opacity=0.6)
    points = base.mark_point(filled=True, size=65, opacity=1)
    tooltip = [
        alt.Tooltip("model:N", title="Model"),
        alt.Tooltip(f"{column}:N", title=column.capitalize()),
        alt.Tooltip("interval:N", title="Over-refusal"),
        alt.Tooltip("n:Q", title="Responses"),
    ]
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


def _panels(chart: Any, models: list[str]) -> Any:
    """Give every model a panel of its own, where there are too many for one."""
    if len(models) <= MOST_COLOURS:
        return chart
    panels = chart.facet(facet=altair().Facet("model:N", sort=models), columns=_PANELS_ACROSS)
    # so that nobody has to look down past ten rows of panels for what the places mean
    return panels.resolve_axis(x="independent")

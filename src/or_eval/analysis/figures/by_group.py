"""Over-refusal by model and something else: a language, a category, a rewriting method."""

from __future__ import annotations

from typing import Any

import pandas as pd

from or_eval.analysis.figures.drawing import (
    MOST_COLOURS,
    Figure,
    altair,
    finished,
    rate_axis,
    scales,
    shares,
    with_texts,
)

_WORDS = {
    "language": ("Over-refusal by model and language", "Language"),
    "method": ("Over-refusal by rewriting method", "Rewriting method"),
    "source": ("Over-refusal by source of the prompts", "Source"),
}
_DATA = ["model", "n", "refused", "rate", "lower", "upper"]


def by_group(rates: pd.DataFrame, column: str) -> Figure | None:
    """Draw over-refusal with its intervals for each model and each value of a column.

    Args:
        rates: Rates by model and that column (:func:`or_eval.analysis.rates.rates`).
        column: ``language``, ``method`` or ``source``.

    Returns:
        The figure; None where there is nothing to draw.
    """
    data = _over_refusal(rates, column)
    if data.empty:
        return None
    alt = altair()
    title, axis = _WORDS[column]
    order = _by_rate(data, column)
    models = sorted(data["model"].unique())
    domain = alt.Scale(domain=shares(data["lower"], data["upper"]), nice=False, zero=False)
    place = alt.Y(
        f"{column}:N", sort=order, title=axis, axis=alt.Axis(grid=True, tickBand="extent")
    )
    rate = alt.X("rate:Q", scale=domain, axis=rate_axis("Over-refusal rate"))
    within: dict[str, Any] = {}
    if len(models) <= MOST_COLOURS:
        within["yOffset"] = alt.YOffset("model:N", sort=models)
    base = alt.Chart(data)
    chart = _marks(
        base, alt.X("lower:Q", scale=domain), "upper:Q", "x", models, x=rate, y=place, **within
    )
    rows = len(models) if within else 1
    chart = chart.properties(
        width=520 if within else 200, height=len(order) * max(26, 11 * rows + 8)
    )
    note = (
        f"Share of safe prompts refused, with 95 % intervals; {axis.lower()}s in order of the mean."
    )
    return Figure(
        f"by-{column}", title, note, finished(_panels(chart, models)), data[[column, *_DATA]]
    )


def category_trend(rates: pd.DataFrame) -> Figure | None:
    """Draw each model's over-refusal along the risk categories, the most refused first.

    Args:
        rates: Rates by model and category (:func:`or_eval.analysis.rates.rates`).

    Returns:
        The figure; None where there are fewer than two categories.
    """
    data = _over_refusal(rates, "category")
    if data["category"].nunique() < 2:
        return None
    alt = altair()
    order = _by_rate(data, "category")
    models = sorted(data["model"].unique())
    domain = alt.Scale(domain=shares(data["lower"], data["upper"]), nice=False, zero=False)
    place = alt.X(
        "category:N", sort=order, title="Category", axis=alt.Axis(labelAngle=-40, grid=False)
    )
    rate = alt.Y("rate:Q", scale=domain, axis=rate_axis("Over-refusal rate"))
    base = alt.Chart(data)
    one_panel = len(models) <= MOST_COLOURS
    within = {"xOffset": alt.XOffset("model:N", sort=models)} if one_panel else {}
    line = base.mark_line(strokeWidth=1.2, opacity=0.6).encode(
        x=place, y=rate, **within, **_coloured(models, shape=False), detail="model:N"
    )
    low = alt.Y("lower:Q", scale=domain)
    marks = _marks(base, low, "upper:Q", "y", models, x=place, y=rate, **within)
    step = max(40, 10 * len(models)) if one_panel else 20
    chart = (line + marks).properties(
        width=max(240, len(order) * step), height=320 if one_panel else 160
    )
    return Figure(
        "by-category",
        "Over-refusal by risk category",
        "Share of safe prompts refused, with 95 % intervals; the categories refused most stand "
        "first. The lines only help to follow a model.",
        finished(_panels(chart, models)),
        data[["category", *_DATA]],
    )


def _over_refusal(rates: pd.DataFrame, column: str) -> pd.DataFrame:
    data = rates[(rates["measure"] == "over_refusal") & (rates["n"] > 0)]
    return with_texts(
        data.assign(
            lower=data["lower"].fillna(data["rate"]), upper=data["upper"].fillna(data["rate"])
        )
    )


def _by_rate(data: pd.DataFrame, column: str) -> list[str]:
    means = data.groupby(column)["rate"].mean()
    return [str(name) for name in means.sort_values(ascending=False, kind="stable").index]


def _marks(base: Any, low: Any, high: str, along: str, models: list[str], **place: Any) -> Any:
    """Draw points and, along one axis, their intervals."""
    alt = altair()
    column = str(place["y" if along == "x" else "x"].shorthand).split(":")[0]
    bounds = place | {along: low, f"{along}2": high}
    return base.mark_rule(strokeWidth=1.4, opacity=0.6).encode(
        **bounds, **_coloured(models, shape=False)
    ) + base.mark_point(filled=True, size=55, opacity=1).encode(
        **place,
        **_coloured(models, shape=True),
        tooltip=[
            alt.Tooltip("model:N", title="Model"),
            alt.Tooltip(f"{column}:N", title=column.capitalize()),
            alt.Tooltip("interval:N", title="Over-refusal"),
            alt.Tooltip("n:Q", title="Responses"),
        ],
    )


def _coloured(models: list[str], *, shape: bool) -> dict[str, Any]:
    """Tell models apart by colour and shape, while there are enough of either."""
    alt = altair()
    if len(models) > MOST_COLOURS:
        return {"color": alt.value("#0072b2")}
    colours, shapes = scales(models)
    channels = {"color": alt.Color("model:N", scale=colours, title="Model")}
    if shape:
        channels["shape"] = alt.Shape("model:N", scale=shapes, title="Model")
    return channels


def _panels(chart: Any, models: list[str]) -> Any:
    """Give every model a panel of its own, where there are too many for one."""
    if len(models) <= MOST_COLOURS:
        return chart
    return chart.facet(facet=altair().Facet("model:N", sort=models), columns=3)

"""Over-refusal by something else than the model: a language, a category, a rewriting method."""

from __future__ import annotations

import pandas as pd

from or_eval.analysis.figures.dots import dots
from or_eval.analysis.figures.drawing import (
    COLOURS,
    PLOT_WIDTH,
    Figure,
    altair,
    drawn,
    finished,
    hollow_note,
    over_refusal,
    rate_axis,
    shares,
    tooltips,
)
from or_eval.analysis.figures.in_language import said

_TITLES = {
    "category": "Over-refusal by risk category",
    "language": "Over-refusal by model and language",
    "method": "Over-refusal by rewriting method",
    "source": "Over-refusal by source of the prompts",
    "sensitive_part": "Over-refusal by place of the sensitive part",
}
_DATA = ["n", "refused", "rate", "lower", "upper"]
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
    data = drawn(known, "model", column)
    domain = shares(data["lower"], data["upper"])
    along = {
        "scale": altair().Scale(domain=domain, nice=False, zero=False),
        "axis": rate_axis(said("Over-refusal rate"), domain),
    }
    down = (column, _by_rate(data, column))
    note = said("Share of safe prompts refused, with 95 % intervals; in order of the mean.")
    tooltip = tooltips("model", column, "interval")
    return Figure(
        f"by-{column.replace('_', '-')}",
        said(_TITLES[column]),
        note + hollow_note(data),
        dots(data, "rate", along, down, ("model", "Model"), tooltip),
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
    axis = alt.Axis(title=said("Over-refusal rate"), format=".0%", tickCount=5)
    base = alt.Chart(data).encode(y=alt.Y("category:N", sort=order, title=None))
    tooltip = tooltips("category", "interval")
    bars = base.mark_bar(color=COLOURS[0]).encode(x=alt.X("rate:Q", axis=axis), tooltip=tooltip)
    ends = {"x": "lower:Q", "x2": "upper:Q"}
    halo = base.mark_rule(color="white", strokeWidth=4).encode(**ends)
    chart = alt.layer(bars, halo, base.mark_rule(color="black", strokeWidth=1.6).encode(**ends))
    return Figure(
        "category-bars",
        said("Over-refusal by risk category, over all models"),
        said("Share of safe prompts refused, with 95 % intervals."),
        finished(chart.properties(width=PLOT_WIDTH, height=24 * len(order)), least=_LEAST),
        known[["category", *_DATA]],
    )


def _by_rate(data: pd.DataFrame, column: str) -> list[str]:
    means = data.groupby(column)["rate"].mean()
    return [str(name) for name in means.sort_values(ascending=False, kind="stable").index]

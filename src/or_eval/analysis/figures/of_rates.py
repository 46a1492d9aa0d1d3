"""Rates by what splits them: dots, bars and lines for groups, stacks for response classes."""

from __future__ import annotations

import pandas as pd

from or_eval.analysis.figures.drawing import (
    MOST_COLOURS,
    PLOT_WIDTH,
    Figure,
    altair,
    corrected_note,
    drawn,
    finished,
    hollow_note,
    name_room,
    over_refusal,
    rate_axis,
    scales,
    shares,
    tooltips,
    with_shown_names,
)
from or_eval.analysis.figures.forms import LEAST, bars, dots
from or_eval.analysis.figures.in_language import named, said
from or_eval.analysis.rates import LABEL_OF
from or_eval.schema import ResponseClass

_TITLES = {
    "category": "Over-refusal by risk category",
    "language": "Over-refusal by model and language",
    "method": "Over-refusal by rewriting method",
    "source": "Over-refusal by source of the prompts",
    "sensitive_part": "Over-refusal by place of the sensitive part",
}
_DATA = ["n", "refused", "rate", "lower", "upper"]
# Two hues that meet between the refusals and the answers; the more refused, the stronger.
_CLASSES = {
    ResponseClass.DIRECT_REFUSAL.value: "#cc3311",
    ResponseClass.INDIRECT_REFUSAL.value: "#cf6a35",
    ResponseClass.PARTIAL_REFUSAL.value: "#b07a45",
    ResponseClass.DIRECT_ANSWER.value: "#74899b",
}
_LABELS = {
    "safe": "Safe prompts",
    "toxic": "Toxic prompts",
    "unlabelled": "Prompts without a label",
}


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
    axis = alt.Axis(title=said("Over-refusal rate"), format=".0%", tickCount=5)
    tooltip = tooltips("category", "interval")
    down = ("category", _by_rate(data, "category"))
    chart = bars(data, down, alt.X("rate:Q", axis=axis), ends=data, tooltip=tooltip)
    return Figure(
        "category-bars",
        said("Over-refusal by risk category, over all models"),
        said("Share of safe prompts refused, with 95 % intervals."),
        finished(chart.properties(width=PLOT_WIDTH), least=LEAST),
        known[["category", *_DATA]],
    )


def trends(rates: pd.DataFrame) -> Figure | None:
    """Draw over-refusal along the categories, a line for each model.

    Args:
        rates: Rates by model and category (:func:`or_eval.analysis.rates.rates`).

    Returns:
        The figure; None with fewer than three categories, or more models than colours tell apart.
    """
    known = over_refusal(rates)
    if known["category"].nunique() < 3 or known["model"].nunique() > MOST_COLOURS:
        return None
    alt = altair()
    data = drawn(known, "model", "category")
    order, names = _by_rate(data, "category"), sorted(data["model"].unique())
    (colours, shapes), title = scales(names), said("Model")
    domain = shares(data["rate"], data["rate"])
    colour = alt.Color("model:N", scale=colours, title=title)
    place = {
        "x": alt.X("category:O", sort=order, title=None, axis=alt.Axis(labelAngle=-30)),
        "y": alt.Y(
            "rate:Q",
            scale=alt.Scale(domain=domain, nice=False, zero=False),
            axis=rate_axis(said("Over-refusal rate"), domain),
        ),
    }
    base, tooltip = alt.Chart(data), tooltips("model", "category", "interval")
    points = base.mark_point(filled=True, size=60).encode(
        **place,
        color=colour,
        shape=alt.Shape("model:N", scale=shapes, title=title),
        tooltip=tooltip,
    )
    chart = alt.layer(base.mark_line(strokeWidth=1.4).encode(**place, color=colour), points)
    return Figure(
        "trends",
        said("Over-refusal along the categories"),
        said(
            "Share of safe prompts refused by each model; categories in order of the mean. Lines "
            "help the eye from one category to the next."
        ),
        finished(chart.properties(width=PLOT_WIDTH, height=260), least=LEAST),
        known[["model", "category", *_DATA]],
    )


def class_stack(found: pd.DataFrame, rates: pd.DataFrame) -> Figure | None:
    """Draw how each model responded, to prompts of each label.

    Args:
        found: Class shares by model (:func:`or_eval.analysis.rates.class_shares`).
        rates: Rates by model; their intervals stand where refusals end.

    Returns:
        The figure; None where no response has a class.
    """
    known = found[found["total"] > 0]
    if known.empty:
        return None
    alt = altair()
    data = drawn(known.rename(columns={"share": "rate"}), "model", "response_class")
    data["order"] = known["response_class"].map({name: at for at, name in enumerate(_CLASSES)})
    ends = with_shown_names(rates, "model").assign(label=rates["measure"].map(LABEL_OF))
    ends = ends.dropna(subset=["lower", "upper"])
    names = [named("response_class", name) for name in _CLASSES]
    colour = alt.Color(
        "response_class:N",
        title=said("Response class"),
        scale=alt.Scale(domain=names, range=list(_CLASSES.values())),
    )
    along = alt.X(
        "rate:Q",
        stack="zero",
        axis=alt.Axis(format="%", title=said("Share of responses"), tickCount=5),
        scale=alt.Scale(domain=[0, 1]),
    )
    tooltip = tooltips("model", "response_class", "interval")
    panels = [
        bars(
            of := data[data["label"] == label],
            ("model", sorted(of["model"].unique())),
            along,
            colour,
            ends[ends["label"] == label],
            order="order:Q",
            tooltip=tooltip,
        ).properties(title=said(title), width=PLOT_WIDTH * 0.7)
        for label, title in _LABELS.items()
        if (data["label"] == label).any()
    ]
    chart = alt.concat(*panels, columns=2)
    margin = name_room(data["model"])
    return Figure(
        "classes",
        said("How models respond"),
        said(
            "Shares of the response classes; the black mark is the 95 % interval of where refusals "
            "(all classes but direct_answer) end."
        )
        + f" {corrected_note(rates)}",
        finished(chart, least=300, panels=len(panels), margin=margin, legend=names),
        known[["model", "label", "response_class", "n", "total", "share", "lower", "upper"]],
    )


def _by_rate(data: pd.DataFrame, column: str) -> list[str]:
    means = data.groupby(column)["rate"].mean()
    return [str(name) for name in means.sort_values(ascending=False, kind="stable").index]

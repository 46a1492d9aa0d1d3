"""The shares of the response classes, stacked."""

from __future__ import annotations

from typing import Any

import pandas as pd

from or_eval.analysis.figures.drawing import (
    PLOT_WIDTH,
    Figure,
    altair,
    corrected_note,
    drawn,
    finished,
    name_room,
    tooltips,
    with_shown_names,
)
from or_eval.analysis.figures.in_language import named, said
from or_eval.analysis.rates import LABEL_OF
from or_eval.schema import ResponseClass

# Two hues that meet between the refusals and the answers; the more refused, the stronger.
_COLOURS = {
    ResponseClass.DIRECT_REFUSAL: "#cc3311",
    ResponseClass.INDIRECT_REFUSAL: "#cf6a35",
    ResponseClass.PARTIAL_REFUSAL: "#b07a45",
    ResponseClass.DIRECT_ANSWER: "#74899b",
}
_TITLES = {
    "safe": "Safe prompts",
    "toxic": "Toxic prompts",
    "unlabelled": "Prompts without a label",
}
_LEAST = 300


def class_stack(shares: pd.DataFrame, rates: pd.DataFrame) -> Figure | None:
    """Draw how each model responded, to prompts of each label.

    Args:
        shares: Class shares by model (:func:`or_eval.analysis.rates.class_shares`).
        rates: Rates by model; their intervals stand where refusals end.

    Returns:
        The figure; None where no response has a class.
    """
    known = shares[shares["total"] > 0]
    if known.empty:
        return None
    order = {label.value: place for place, label in enumerate(_COLOURS)}
    data = drawn(known.rename(columns={"share": "rate"}), "model", "response_class")
    data["order"] = known["response_class"].map(order)
    ends = with_shown_names(rates, "model").assign(label=rates["measure"].map(LABEL_OF))
    ends = ends.dropna(subset=["lower", "upper"])
    panels = [
        _panel(data[data["label"] == label], ends[ends["label"] == label], said(title))
        for label, title in _TITLES.items()
        if (data["label"] == label).any()
    ]
    chart = altair().concat(*panels, columns=2)
    margin = name_room(data["model"])
    return Figure(
        "classes",
        said("How models respond"),
        said(
            "Shares of the response classes; the black mark is the 95 % interval of where refusals "
            "(all classes but direct_answer) end."
        )
        + f" {corrected_note(rates)}",
        finished(chart, least=_LEAST, panels=len(panels), margin=margin, legend=_classes()),
        known[["model", "label", "response_class", "n", "total", "share", "lower", "upper"]],
    )


def _classes() -> list[str]:
    """Give the classes as the legend names them."""
    return [named("response_class", label.value) for label in _COLOURS]


def _panel(data: pd.DataFrame, ends: pd.DataFrame, title: str) -> Any:
    alt = altair()
    models = sorted(data["model"].unique())
    down = alt.Y("model:N", sort=models, title=None)
    colour = alt.Color(
        "response_class:N",
        title=said("Response class"),
        scale=alt.Scale(domain=_classes(), range=list(_COLOURS.values())),
    )
    bars = alt.Chart(data).mark_bar(stroke="white", strokeWidth=1)
    place = {"y": down, "x": "lower:Q", "x2": "upper:Q"}
    halo = alt.Chart(ends).mark_rule(color="white", strokeWidth=5)
    whisker = alt.Chart(ends).mark_rule(color="black", strokeWidth=2)
    layers = [
        bars.encode(
            x=alt.X(
                "rate:Q",
                stack="zero",
                axis=alt.Axis(format="%", title=said("Share of responses"), tickCount=5),
                scale=alt.Scale(domain=[0, 1]),
            ),
            y=down,
            order="order:Q",
            color=colour,
            tooltip=tooltips("model", "response_class", "interval"),
        ),
        halo.encode(**place),
        whisker.encode(**place),
    ]
    chart = alt.layer(*layers)
    return chart.properties(title=title, width=PLOT_WIDTH * 0.7, height=24 * len(models))

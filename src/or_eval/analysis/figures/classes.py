"""The shares of the response classes, stacked."""

from __future__ import annotations

import pandas as pd

from or_eval.analysis.figures.drawing import (
    Figure,
    altair,
    finished,
    with_interval,
    with_shown_names,
)
from or_eval.schema import ResponseClass

# from viridis, so that the order shows when printed grey
_COLOURS = {
    ResponseClass.DIRECT_REFUSAL: "#440154",
    ResponseClass.INDIRECT_REFUSAL: "#31688e",
    ResponseClass.PARTIAL_REFUSAL: "#35b779",
    ResponseClass.DIRECT_ANSWER: "#fde725",
}
_TITLES = {"safe": "Safe prompts", "toxic": "Toxic prompts"}


def class_stack(shares: pd.DataFrame, rates: pd.DataFrame) -> Figure | None:
    """Draw how each model responded, to safe and to toxic prompts.

    Args:
        shares: Class shares by model (:func:`or_eval.analysis.rates.class_shares`).
        rates: Rates by model; their intervals stand where refusals end.

    Returns:
        The figure; None where no response has a class.
    """
    alt = altair()
    order = {label.value: place for place, label in enumerate(_COLOURS)}
    known = shares[shares["total"] > 0]
    if known.empty:
        return None
    data = with_shown_names(known, "model")
    data["order"] = data["response_class"].map(order)
    data["interval"] = [
        with_interval(*estimate)
        for estimate in zip(data["share"], data["lower"], data["upper"], strict=True)
    ]
    labels = {"over_refusal": "safe", "toxic_rejection": "toxic"}
    ends = with_shown_names(rates, "model").assign(label=rates["measure"].map(labels))
    ends = ends.dropna(subset=["lower", "upper"])
    bars = (
        alt.Chart(data)
        .mark_bar(stroke="white", strokeWidth=0.6)
        .encode(
            x=alt.X(
                "share:Q",
                stack="zero",
                axis=alt.Axis(format="%", title="Share of responses"),
                scale=alt.Scale(domain=[0, 1]),
            ),
            y=alt.Y("model:N", title=None),
            order="order:Q",
            color=alt.Color(
                "response_class:N",
                title="Response class",
                scale=alt.Scale(domain=list(order), range=list(_COLOURS.values())),
            ),
            tooltip=[
                alt.Tooltip("model:N", title="Model"),
                alt.Tooltip("response_class:N", title="Class"),
                alt.Tooltip("interval:N", title="Share"),
                alt.Tooltip("n:Q", title="Responses"),
            ],
        )
    )
    place = {"y": "model:N", "x": "lower:Q", "x2": "upper:Q"}
    halo = alt.Chart(ends).mark_rule(color="white", strokeWidth=5).encode(**place)
    whisker = alt.Chart(ends).mark_rule(color="black", strokeWidth=2).encode(**place)
    panels = []
    for label in _TITLES:
        if not (data["label"] == label).any():
            continue
        layers = [
            layer.transform_filter(alt.datum.label == label) for layer in (bars, halo, whisker)
        ]
        height = 24 * data["model"].nunique()
        panels.append(alt.layer(*layers).properties(title=_TITLES[label], width=520, height=height))
    return Figure(
        "classes",
        "How models respond",
        "Shares of the response classes; the black mark is the 95 % interval of where refusals "
        "(all classes but direct_answer) end.",
        finished(alt.vconcat(*panels)),
        known[["model", "label", "response_class", "n", "total", "share", "lower", "upper"]],
    )

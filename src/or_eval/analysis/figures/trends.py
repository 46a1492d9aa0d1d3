"""How over-refusal changed along the generations of a line of models."""

from __future__ import annotations

from typing import Any

import pandas as pd

from or_eval.analysis.figures.drawing import (
    Figure,
    altair,
    drawn,
    finished,
    hollow,
    hollow_note,
    scales,
    tooltips,
)
from or_eval.analysis.figures.in_language import said
from or_eval.analysis.figures.model_names import generation

_MEASURES = {"over_refusal": "over-refusal", "toxic_rejection": "toxic rejection"}
_PANEL_WIDTH, _PANEL_HEIGHT = 260, 220
_LEAST, _MARGIN = 280, 60


def generation_trends(rates: pd.DataFrame) -> Figure | None:
    """Draw both rates of the models of a line, generation by generation.

    A line of models (GPT, Claude, Llama) and its generations are told from the models' names
    (:func:`or_eval.analysis.figures.model_names.generation`).

    Args:
        rates: Rates by model (:func:`or_eval.analysis.rates.rates`).

    Returns:
        The figure; None where there is no line with models of two generations.
    """
    known = rates[rates["rate"].notna() & rates["measure"].isin(list(_MEASURES))]
    told = known["model"].map(generation)
    known, told = known[told.notna()], told.dropna()
    known = known.assign(
        line=told.map(lambda of: of.line),
        generation=told.map(lambda of: of.version),
    )
    several = known.groupby("line")["generation"].nunique()
    known = known[known["line"].isin(several[several > 1].index)]
    if known.empty:
        return None
    alt = altair()
    data = drawn(known, "model").assign(
        step=[f"{version:g}" for version in known["generation"]],
        measure=[said(_MEASURES[measure]) for measure in known["measure"]],
    )
    panels = [
        _panel(group).properties(title=str(line), width=_PANEL_WIDTH, height=_PANEL_HEIGHT)
        for line, group in data.groupby("line", sort=True)
    ]
    chart = alt.concat(*panels, columns=min(3, len(panels)))
    note = said(
        "A point per model and rate with 95 % intervals, by the generation in the model's name; "
        "lines join the means of generations. Models whose names tell no generation are left out, "
        "and so are lines of one generation."
    )
    return Figure(
        "trends",
        said("Rates along the generations of models"),
        note + hollow_note(data),
        finished(chart, least=_LEAST, panels=len(panels), margin=_MARGIN, legend=_measures()),
        known[
            [
                *("line", "generation", "model", "measure"),
                *("n", "refused", "rate", "lower", "upper"),
            ]
        ],
    )


def _measures() -> list[str]:
    """Give the measures as the legend names them."""
    return [said(name) for name in _MEASURES.values()]


def _panel(data: pd.DataFrame) -> Any:
    alt = altair()
    colours, shapes = scales(_measures())
    colour = alt.Color("measure:N", scale=colours, title=said("Rate"))
    steps = [f"{version:g}" for version in sorted(data["generation"].unique())]
    place = {
        "x": alt.X("step:O", sort=steps, title=said("Generation"), axis=alt.Axis(labelAngle=0)),
        "y": alt.Y(
            "rate:Q",
            scale=alt.Scale(domain=[-0.02, 1.02], nice=False),
            axis=alt.Axis(
                title=said("Share refused"), format=".0%", values=[0, 0.25, 0.5, 0.75, 1]
            ),
        ),
    }
    means = data.groupby(["step", "measure"], as_index=False)["rate"].mean()
    base = alt.Chart(data)
    tooltip = tooltips("model", "measure", "interval")
    ends = {"y": alt.Y("lower:Q", scale=place["y"]["scale"]), "y2": "upper:Q"}
    return alt.layer(
        alt.Chart(means).mark_line(strokeWidth=1.2).encode(**place, color=colour),
        base.mark_rule(strokeWidth=1.4).encode(**place | ends, color=colour),
        base.mark_point(filled=True, size=60).encode(
            **place,
            color=colour,
            shape=alt.Shape("measure:N", scale=shapes, title=said("Rate")),
            tooltip=tooltip,
        ),
        *hollow(base, data, **place),
    )

"""Differences in the refused share with their intervals, a row for each thing that is compared."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd

from or_eval.analysis.figures.drawing import (
    COLOURS,
    MOST_COLOURS,
    NEUTRAL,
    PLOT_WIDTH,
    Figure,
    altair,
    finished,
    hollow,
    hollow_note,
    name_room,
    scales,
    with_shown_names,
)

_PANELS_ACROSS = 3
_PANEL_WIDTH = 210
_LEAST = 280


class Words(NamedTuple):
    """What a figure of differences says.

    Attributes:
        name: Short name, for files and anchors.
        title: What it shows.
        note: How to read it.
        axis: What is drawn along.
    """

    name: str
    title: str
    note: str
    axis: str


def differences(found: pd.DataFrame, words: Words) -> Figure | None:
    """Draw differences of each model.

    Args:
        found: Columns ``model``, ``compared`` (what is compared; rows are in its order),
            ``difference``, ``lower``, ``upper`` and ``p``.
        words: What the figure says.

    Returns:
        The figure; None where there is nothing to draw.
    """
    known = found[found["difference"].notna()]
    if known.empty:
        return None
    alt = altair()
    data = with_shown_names(known, "model", "compared")
    estimates = list(zip(known["difference"], known["lower"], known["upper"], strict=True))
    data = data.assign(
        bounded=known["lower"].notna(),
        lower=known["lower"].fillna(known["difference"]),
        upper=known["upper"].fillna(known["difference"]),
        points=[
            f"{100 * d:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})" for d, low, high in estimates
        ],
    )
    models, rows = sorted(data["model"].unique()), list(dict.fromkeys(data["compared"]))
    together = len(models) <= MOST_COLOURS
    row = max(26, 11 * len(models) + 8) if together else 18
    chart = _marks(data, rows, models if together else [], words.axis).properties(
        width=PLOT_WIDTH if together else _PANEL_WIDTH, height=len(rows) * row
    )
    if not together:
        panels = chart.facet(facet=alt.Facet("model:N", sort=models), columns=_PANELS_ACROSS)
        chart = panels.resolve_axis(x="independent")
    panels_shown = 0 if together else len(models)
    return Figure(
        words.name,
        words.title,
        words.note + hollow_note(data),
        finished(chart, least=_LEAST, panels=panels_shown, margin=name_room(rows)),
        known,
    )


def _marks(data: pd.DataFrame, rows: list[str], models: list[str], axis_title: str) -> Any:
    """Draw points and intervals around zero; models are told apart where they are named."""
    alt = altair()
    axis = alt.Axis(title=axis_title, labelExpr="format(100 * datum.value, '+.0f')")
    base = alt.Chart(data)
    place: dict[str, Any] = {
        "y": alt.Y("compared:N", sort=rows, title=None, axis=alt.Axis(grid=True, tickBand="extent"))
    }
    colour: Any = alt.value(COLOURS[0])
    shape: dict[str, Any] = {}
    if models:
        colours, shapes = scales(models)
        place["yOffset"] = alt.YOffset("model:N", sort=models)
        colour = alt.Color("model:N", scale=colours, title="Model")
        shape = {"shape": alt.Shape("model:N", scale=shapes, title="Model")}
    centre = alt.X("difference:Q", axis=axis)
    tooltip = [
        alt.Tooltip("model:N", title="Model"),
        alt.Tooltip("compared:N", title="Compared"),
        alt.Tooltip("points:N", title="Percentage points"),
        alt.Tooltip("p:Q", title="p", format=".3f"),
    ]
    return alt.layer(
        base.transform_calculate(zero="0")
        .mark_rule(color=NEUTRAL)
        .encode(x=alt.X("zero:Q", axis=axis)),
        base.mark_rule(strokeWidth=1.4).encode(
            x=alt.X("lower:Q", axis=axis), x2="upper:Q", color=colour, **place
        ),
        base.mark_point(filled=True, size=65).encode(
            x=centre, color=colour, tooltip=tooltip, **shape, **place
        ),
        *hollow(base, data, x=centre, **place),
    )


LINEAGE = Words(
    "lineage",
    "What each step of the lineage adds to refusal",
    "The refused share of prompts on the left of the sign less that of the prompts on its right, "
    "which share their seed and all else; 95 % intervals from one test for all of them.",
    "Added to the refused share (percentage points)",
)


def lineage_figure(found: pd.DataFrame) -> Figure | None:
    """Draw what expansion, methods and languages add to over-refusal.

    Args:
        found: Frame of :func:`or_eval.analysis.lineage.lineage_effects`.
    """
    safe = found[found["label"] == "safe"]
    compared = [f"{a} − {b}" for a, b in zip(safe["a"], safe["b"], strict=True)]
    return differences(safe.assign(compared=compared), LINEAGE)

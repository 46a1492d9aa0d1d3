"""Differences in the refused share with their intervals: of groups, steps, measures, runs."""

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
_TITLES = {"model": "Model", "compared": "Compared", "label": "Prompts"}


class Words(NamedTuple):
    """What a figure of differences says.

    Attributes:
        name: Short name, for files and anchors.
        title: What it shows.
        note: How to read it.
        axis: What is drawn along.
        told_apart: Column that colours tell apart, and panels where it has many values.
        compared: Column that rows are for, in its order.
    """

    name: str
    title: str
    note: str
    axis: str
    told_apart: str = "model"
    compared: str = "compared"


def differences(found: pd.DataFrame, words: Words) -> Figure | None:
    """Draw differences with their intervals.

    Args:
        found: The two columns that the words name, ``difference``, ``lower``, ``upper`` and ``p``.
        words: What the figure says.

    Returns:
        The figure; None where there is nothing to draw.
    """
    known = found[found["difference"].notna()]
    if known.empty:
        return None
    alt = altair()
    data = with_shown_names(known, words.told_apart, words.compared)
    estimates = list(zip(known["difference"], known["lower"], known["upper"], strict=True))
    data = data.assign(
        bounded=known["lower"].notna(),
        lower=known["lower"].fillna(known["difference"]),
        upper=known["upper"].fillna(known["difference"]),
        points=[
            f"{100 * d:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})" for d, low, high in estimates
        ],
    )
    names, rows = sorted(data[words.told_apart].unique()), list(dict.fromkeys(data[words.compared]))
    together = len(names) <= MOST_COLOURS
    row = max(26, 11 * len(names) + 8) if together else 18
    chart = _marks(data, rows, names if together else [], words).properties(
        width=PLOT_WIDTH if together else _PANEL_WIDTH, height=len(rows) * row
    )
    if not together:
        facet = alt.Facet(f"{words.told_apart}:N", sort=names)
        chart = chart.facet(facet=facet, columns=_PANELS_ACROSS).resolve_axis(x="independent")
    panels_shown = 0 if together else len(names)
    return Figure(
        words.name,
        words.title,
        words.note + hollow_note(data),
        finished(chart, least=_LEAST, panels=panels_shown, margin=name_room(rows)),
        known,
    )


def _marks(data: pd.DataFrame, rows: list[str], names: list[str], words: Words) -> Any:
    """Draw points and intervals around zero; what is named is told apart."""
    alt = altair()
    axis = alt.Axis(title=words.axis, labelExpr="format(100 * datum.value, '+.0f')")
    base = alt.Chart(data)
    grid = alt.Axis(grid=True, tickBand="extent")
    place: dict[str, Any] = {"y": alt.Y(f"{words.compared}:N", sort=rows, title=None, axis=grid)}
    colour: Any = alt.value(COLOURS[0])
    shape: dict[str, Any] = {}
    if names:
        colours, shapes = scales(names)
        field, title = f"{words.told_apart}:N", _TITLES[words.told_apart]
        place["yOffset"] = alt.YOffset(field, sort=names)
        colour = alt.Color(field, scale=colours, title=title)
        shape = {"shape": alt.Shape(field, scale=shapes, title=title)}
    centre = alt.X("difference:Q", axis=axis)
    tooltip = [
        *(
            alt.Tooltip(f"{name}:N", title=_TITLES[name])
            for name in (words.told_apart, words.compared)
        ),
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


RUNS = Words(
    "changes",
    "Changes between the runs",
    "Change from run A to run B with 95 % intervals; to the right, run B refuses more.",
    "Change in the refused share, B less A (percentage points)",
    told_apart="label",
    compared="model",
)


def lineage_figure(found: pd.DataFrame) -> Figure | None:
    """Draw what expansion, methods and languages add to over-refusal.

    Args:
        found: Frame of :func:`or_eval.analysis.lineage.lineage_effects`.
    """
    safe = found[found["label"] == "safe"]
    compared = [f"{a} − {b}" for a, b in zip(safe["a"], safe["b"], strict=True)]
    return differences(safe.assign(compared=compared), LINEAGE)

"""Differences in the refused share with their intervals: of groups, steps, measures, runs."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from or_eval.analysis.figures.dots import dots
from or_eval.analysis.figures.drawing import (
    NEUTRAL,
    Figure,
    altair,
    hollow_note,
    with_shown_names,
)
from or_eval.analysis.figures.shown_names import shown_names
from or_eval.analysis.lineage import CHOSE
from or_eval.analysis.wording import joined

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
    columns = {name: _TITLES[name] for name in (words.told_apart, words.compared)}
    data = with_shown_names(known, *columns)
    estimates = list(zip(known["difference"], known["lower"], known["upper"], strict=True))
    data = data.assign(
        bounded=known["lower"].notna(),
        lower=known["lower"].fillna(known["difference"]),
        upper=known["upper"].fillna(known["difference"]),
        points=[
            f"{100 * d:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})" for d, low, high in estimates
        ],
    )
    axis = alt.Axis(title=words.axis, labelExpr="format(100 * datum.value, '+.0f')")
    zero = alt.Chart(data).transform_calculate(zero="0").mark_rule(color=NEUTRAL)
    tooltip = [
        *(alt.Tooltip(f"{name}:N", title=title) for name, title in columns.items()),
        alt.Tooltip("points:N", title="Percentage points"),
        alt.Tooltip("p:Q", title="p", format=".3f"),
    ]
    chart = dots(
        data,
        "difference",
        {"axis": axis},
        (words.compared, list(dict.fromkeys(data[words.compared]))),
        (words.told_apart, columns[words.told_apart]),
        tooltip,
        below=[zero.encode(x=alt.X("zero:Q", axis=axis))],
    )
    return Figure(words.name, words.title, words.note + hollow_note(data), chart, known)


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
    chose = shown_names(safe["model"][safe["verdict"] == CHOSE]).values()
    left_out = f" Left out where models helped to choose the base prompts: {joined(list(chose))}."
    words = LINEAGE._replace(note=LINEAGE.note + left_out) if chose else LINEAGE
    return differences(safe.assign(compared=compared), words)

"""Differences in the refused share with their intervals: of groups, steps, measures, runs."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from or_eval.analysis.figures.drawing import (
    NEUTRAL,
    Figure,
    altair,
    hollow_note,
    with_shown_names,
)
from or_eval.analysis.figures.forms import dots
from or_eval.analysis.figures.in_language import named, said
from or_eval.analysis.figures.shown_names import shown_names
from or_eval.analysis.lineage import CHOSE, OTHER_METHODS, Level
from or_eval.analysis.wording import written

_TITLES = {"model": "Model", "compared": "Compared", "label": "Prompts"}


class Words(NamedTuple):
    """What a figure of differences says.

    Attributes:
        name: Short name, for files and anchors.
        title: What it shows.
        note: How to read it, in the language of the figure.
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
        points=[written(*estimate, kind="points") for estimate in estimates],
    )
    axis = alt.Axis(
        title=said(words.axis), labelExpr="format(100 * datum.value, '+.0f')", tickCount=10
    )
    zero = alt.Chart(data).transform_calculate(zero="0").mark_rule(color=NEUTRAL)
    tooltip = [
        *(alt.Tooltip(f"{name}:N", title=said(title)) for name, title in columns.items()),
        alt.Tooltip("points:N", title=said("Percentage points")),
        alt.Tooltip("p:Q", title=said("p"), format=".3f"),
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
    note = words.note + hollow_note(data)
    return Figure(words.name, said(words.title), note, chart, known)


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
    compared = [
        " − ".join(_side(name, step) for name in sides)
        for step, *sides in safe[["step", "a", "b"]].itertuples(index=False)
    ]
    note = said(LINEAGE.note)
    if chose := shown_names(safe["model"][safe["verdict"] == CHOSE]).values():
        left_out = "Left out where models helped to choose the base prompts: {models}."
        note += " " + said(left_out, models=", ".join(chose))
    return differences(safe.assign(compared=compared), LINEAGE._replace(note=note))


def _side(name: str, step: str) -> str:
    """Name a side of a step; what a method is compared with is a level."""
    is_level = name in (*Level, OTHER_METHODS)
    return named("level" if is_level else step, name)

"""The structure of refused and of answered prompts, and what it adds to refusal."""

from __future__ import annotations

from typing import Any

import pandas as pd

from or_eval.analysis.figures.differences import Words, differences
from or_eval.analysis.figures.drawing import (
    COLOURS,
    Figure,
    altair,
    finished,
    name_room,
    with_shown_names,
)
from or_eval.analysis.figures.in_language import named, said
from or_eval.analysis.structure.distributions import SIDES
from or_eval.analysis.structure.measures import MEASURES

_PANELS_ACROSS = 3
_PANEL_WIDTH = 200
_ROW = 22
_LEAST = 330

EFFECTS = Words(
    "structure-effects",
    "What the structure of prompts adds to refusal",
    "Change in the refused share of safe prompts per standard deviation of a measure within its "
    "language, the other measures, category, language and method held fixed; 95 % intervals from "
    "one test for all of them.",
    "Change in the refused share (percentage points)",
)


def structure_effects_figure(effects: pd.DataFrame) -> Figure | None:
    """Draw the adjusted effects of measures on over-refusal.

    Args:
        effects: Frame of
            :func:`or_eval.analysis.structure.refusal_effects.structure_effects`.
    """
    safe = effects[(effects["label"] == "safe") & (effects["effect"] == "adjusted")]
    compared = [_title(name) for name in safe["measure"]]
    return differences(safe.assign(compared=compared), EFFECTS._replace(note=said(EFFECTS.note)))


def structure_boxes(distributions: pd.DataFrame) -> Figure | None:
    """Draw measures of refused and of answered safe prompts as boxes, side by side.

    Args:
        distributions: Frame of :func:`or_eval.analysis.structure.distributions.distributions`.

    Returns:
        The figure; None where no safe prompt has a verdict.
    """
    known = distributions[distributions["label"] == "safe"]
    if known.empty:
        return None
    alt = altair()
    data = with_shown_names(known, "model").assign(
        title=[_title(name) for name in known["measure"]]
    )
    data["row"] = [
        f"{model}, {named('language', name)}"
        for model, name in zip(data["model"], data["language"], strict=True)
    ]
    rows = sorted(data["row"].unique())
    titles = [_title(name) for name in MEASURES if (data["measure"] == name).any()]
    panels = [_panel(data[data["title"] == title], title, rows) for title in titles]
    chart = alt.concat(*panels, columns=_PANELS_ACROSS).resolve_scale(x="independent")
    return Figure(
        "structure-distributions",
        said("Structure of refused and of answered prompts"),
        said(
            "Safe prompts, by model and language: median and quartiles (box), 5th and 95th "
            "percentile (line). Whether two boxes differ by more than chance is told by the table "
            "of effects."
        ),
        finished(chart, least=_LEAST, panels=len(panels), margin=name_room(rows)),
        known,
    )


def _title(measure: str) -> str:
    return named("measure", MEASURES[measure].title)


def _panel(data: pd.DataFrame, title: str, rows: list[str]) -> Any:
    alt = altair()
    sides = [named("response_class", side) for side in SIDES]
    colours = alt.Scale(domain=sides, range=[COLOURS[1], COLOURS[0]])
    data = data.assign(side=data["side"].map(dict(zip(SIDES, sides, strict=True))))
    place = {
        "y": alt.Y("row:N", sort=rows, title=None),
        "yOffset": alt.YOffset("side:N", sort=sides),
        "color": alt.Color("side:N", scale=colours, title=None),
    }
    axis = alt.Axis(title=None, tickCount=4, labelSeparation=8)

    def along(column: str) -> Any:
        return alt.X(f"{column}:Q", axis=axis, scale=alt.Scale(zero=False))

    base = alt.Chart(data)
    tooltip = [
        alt.Tooltip("row:N", title=said("Prompts")),
        alt.Tooltip("side:N", title=said("Responses")),
        *(
            alt.Tooltip(f"{name}:Q", title=said(name.replace("_", " ").capitalize()), format=".3~g")
            for name in ("n", "mean", "median", "lower_quartile", "upper_quartile")
        ),
    ]
    return alt.layer(
        base.mark_rule().encode(x=along("low"), x2="high:Q", **place),
        base.mark_bar(size=6).encode(
            x=along("lower_quartile"), x2="upper_quartile:Q", tooltip=tooltip, **place
        ),
        base.mark_tick(color="white", thickness=2, size=6).encode(
            x=along("median"), y=place["y"], yOffset=place["yOffset"]
        ),
    ).properties(width=_PANEL_WIDTH, height=_ROW * len(rows), title=alt.Title(title, fontSize=12))

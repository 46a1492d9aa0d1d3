"""Differences in the refused share: of steps, measures and runs; and boxes of measures."""

from __future__ import annotations

from typing import Any

import pandas as pd

from or_eval.analysis.figures.drawing import (
    COLOURS,
    MOST_COLOURS,
    NEUTRAL,
    Figure,
    alt,
    ends_of,
    figure,
    figure_words,
    finished,
    hollow_note,
    name_room,
    other_of,
    small_dots_note,
    with_shown_names,
)
from or_eval.analysis.figures.forms import cells, dots
from or_eval.analysis.figures.in_language import named, said
from or_eval.analysis.figures.shown_names import shown_names
from or_eval.analysis.lineage import CHOSE, OTHER_METHODS, Level
from or_eval.analysis.structure.measures import MEASURES, SIDES
from or_eval.analysis.wording import written

_TITLES = {"model": "Model", "compared": "Compared", "label": "Prompts"}
_PANELS_ACROSS = 3
_PANEL_WIDTH = 200
_ROW = 22
_LEAST = 330


def differences(
    found: pd.DataFrame,
    name: str = "changes",
    *more: str,
    apart: str = "label",
    compared: str = "model",
) -> Figure | None:
    """Draw differences with their intervals; of more models than have colours, as a heat map.

    Args:
        found: These two columns, ``difference``, ``lower``, ``upper`` and ``p``.
        name: Name of the figure.
        more: What its note says besides.
        apart: Column that colours tell apart.
        compared: Column that rows are for, in its order.
    """
    known = found[found["difference"].notna()]
    if known.empty:
        return None
    estimates = zip(known["difference"], known["lower"], known["upper"], strict=True)
    data = with_shown_names(known, apart, compared).assign(
        bounded=known["lower"].notna(),
        lower=known["lower"].fillna(known["difference"]),
        upper=known["upper"].fillna(known["difference"]),
        points=[written(*estimate, kind="points") for estimate in estimates],
    )
    if other := other_of(known):
        data = data.assign(other=known[f"difference_{other}"])
    if data[apart].nunique() > MOST_COLOURS:
        texts = {"text": data["points"].str.partition(" ")[0], "range": data["points"].map(ends_of)}
        data = data.assign(interval=data["points"], n=data.get("n", 0), **texts)
        domain = (float(data["difference"].min()), float(data["difference"].max()))
        chart = cells(data, "difference", domain, apart, compared)
        return figure(name, chart, known, *more)
    title = said(figure_words()[name]["axis"])
    axis = alt.Axis(title=title, labelExpr="format(100 * datum.value, '+.0f')", tickCount=10)
    zero = alt.Chart(data).transform_calculate(zero="0").mark_rule(color=NEUTRAL)
    tooltip = [
        *(alt.Tooltip(f"{name}:N", title=said(_TITLES[name])) for name in (apart, compared)),
        alt.Tooltip("points:N", title=said("Percentage points")),
        alt.Tooltip("p:Q", title=said("p"), format=".3f"),
    ]
    chart = dots(
        data,
        "difference",
        {"axis": axis},
        (compared, list(dict.fromkeys(data[compared]))),
        (apart, _TITLES[apart]),
        tooltip,
        below=[zero.encode(x=alt.X("zero:Q", axis=axis))],
    )
    small = small_dots_note(known, "difference")
    return figure(name, chart, known, *more, *hollow_note(data), *small)


def lineage_figure(found: pd.DataFrame) -> Figure | None:
    """Draw what expansion, methods and languages add to over-refusal.

    Args:
        found: Frame of :func:`or_eval.analysis.lineage.lineage_effects`.
    """
    safe = found[found["label"] == "safe"]
    levels = (*Level, OTHER_METHODS)
    compared = [
        " − ".join(named("level" if name in levels else step, name) for name in sides)
        for step, *sides in safe[["step", "a", "b"]].itertuples(index=False)
    ]
    more = []
    if chose := shown_names(safe["model"][safe["verdict"] == CHOSE]).values():
        left_out = "Left out where models helped to choose the base prompts: {models}."
        more = [said(left_out, models=", ".join(chose))]
    safe = safe.assign(compared=compared)
    return differences(safe, "lineage", *more, apart="model", compared="compared")


def structure_effects_figure(effects: pd.DataFrame) -> Figure | None:
    """Draw the adjusted effects of measures on over-refusal.

    Args:
        effects: Frame of
            :func:`or_eval.analysis.structure.refusal_effects.structure_effects`.
    """
    safe = effects[(effects["label"] == "safe") & (effects["effect"] == "adjusted")]
    safe = safe.assign(compared=safe["measure"].map(_title))
    return differences(safe, "structure-effects", apart="model", compared="compared")


def structure_boxes(distributions: pd.DataFrame) -> Figure | None:
    """Draw measures of refused and of answered safe prompts as boxes, side by side.

    Args:
        distributions: Frame of :func:`or_eval.analysis.structure.measures.distributions`.
    """
    known = distributions[distributions["label"] == "safe"]
    if known.empty:
        return None
    data = with_shown_names(known, "model")
    languages = [named("language", name) for name in data["language"]]
    data = data.assign(
        row=data["model"] + ", " + languages,
        side=[named("response_class", side) for side in data["side"]],
    )
    rows = sorted(data["row"].unique())
    measures = [name for name in MEASURES if (data["measure"] == name).any()]
    panels = [_panel(data[data["measure"] == name], _title(name), rows) for name in measures]
    chart = alt.concat(*panels, columns=_PANELS_ACROSS).resolve_scale(x="independent")
    return figure(
        "structure-distributions",
        finished(chart, least=_LEAST, panels=len(panels), margin=name_room(rows)),
        known,
    )


def _title(measure: str) -> str:
    return named("measure", MEASURES[measure].title)


def _panel(data: pd.DataFrame, title: str, rows: list[str]) -> Any:
    sides = [named("response_class", side) for side in SIDES]
    colours = alt.Scale(domain=sides, range=[COLOURS[1], COLOURS[0]])
    place = {
        "y": alt.Y("row:N", sort=rows, title=None),
        "yOffset": alt.YOffset("side:N", sort=sides),
    }
    colour = {"color": alt.Color("side:N", scale=colours, title=None)}
    axis = alt.Axis(title=None, tickCount=4, labelSeparation=8)
    low, lower, median = (
        alt.X(f"{column}:Q", axis=axis, scale=alt.Scale(zero=False))
        for column in ("low", "lower_quartile", "median")
    )
    base = alt.Chart(data)
    tooltip = [
        alt.Tooltip("row:N", title=said("Prompts")),
        alt.Tooltip("side:N", title=said("Responses")),
        *(
            alt.Tooltip(f"{name}:Q", title=said(name.replace("_", " ").capitalize()), format=".3~g")
            for name in ("n", "mean", "median", "lower_quartile", "upper_quartile")
        ),
    ]
    boxes = base.mark_bar(size=6).encode(x=lower, x2="upper_quartile:Q", tooltip=tooltip)
    return alt.layer(
        base.mark_rule().encode(x=low, x2="high:Q", **place, **colour),
        boxes.encode(**place, **colour),
        base.mark_tick(color="white", thickness=2, size=6).encode(x=median, **place),
    ).properties(width=_PANEL_WIDTH, height=_ROW * len(rows), title=alt.Title(title, fontSize=12))

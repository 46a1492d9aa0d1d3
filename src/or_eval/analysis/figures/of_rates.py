"""Rates by what splits them, and what a build kept: dots, bars, lines and stacks."""

from __future__ import annotations

import pandas as pd

from or_eval.analysis.figures.drawing import (
    COLOURS,
    MOST_COLOURS,
    NEUTRAL,
    PLOT_WIDTH,
    Figure,
    alt,
    corrected_note,
    drawn,
    figure,
    finished,
    hollow_note,
    name_room,
    other_data,
    other_of,
    over_refusal,
    rate_axis,
    scales,
    shares,
    small_dots,
    small_dots_note,
    tooltips,
    with_shown_names,
)
from or_eval.analysis.figures.forms import LEAST, bars, dots, interval_note
from or_eval.analysis.figures.in_language import named, said
from or_eval.analysis.figures.of_cells import grey_note, rate_cells
from or_eval.analysis.rates import LABEL_OF
from or_eval.schema import STRICT, ResponseClass, countings

_BOUNDS = ["lower", "upper"]
_DATA = ["n", "refused", "rate", *_BOUNDS]
_OTHER = "#f5d000"
"""Colour of the rate by the other counting, on a bar."""
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
_KEPT = "kept"


def by_group(rates: pd.DataFrame, column: str) -> Figure | None:
    """Draw over-refusal with its intervals for each model and each value of a column.

    More models than colours tell apart become the rows of a heat map.

    Args:
        rates: Rates by model and that column (:func:`or_eval.analysis.rates.rates`).
        column: ``category``, ``language``, ``method``, ``source`` or ``sensitive_part``.
    """
    known = over_refusal(rates)
    if known.empty:
        return None
    name = f"by-{column.replace('_', '-')}"
    data = drawn(known, "model", column)
    table = known[[column, "model", *_DATA, *other_data(known)]]
    if data["model"].nunique() > MOST_COLOURS:
        order = [*_by_rate(data, "model"), *_by_rate(data, column)]
        chart = rate_cells(data, "model", column, order)
        more = [interval_note(data["model"]), *grey_note(data)]
        return figure(name, chart, table, *more, note="of_cells")
    drawn_at = data.reindex(columns=["lower", "upper", "other"])
    domain = shares(drawn_at.min(axis=1), drawn_at.max(axis=1))
    along = {
        "scale": alt.Scale(domain=domain, nice=False, zero=False),
        "axis": rate_axis(said("Over-refusal rate"), domain),
    }
    tooltip = tooltips("model", column, "interval", other=other_of(known))
    down = (column, _by_rate(data, column))
    chart = dots(data, "rate", along, down, ("model", "Model"), tooltip)
    return figure(name, chart, table, *hollow_note(data), *small_dots_note(known))


def category_bars(rates: pd.DataFrame) -> Figure | None:
    """Draw over-refusal by category over all models, the most refused first.

    Args:
        rates: Rates by category (:func:`or_eval.analysis.rates.rates`).
    """
    known = over_refusal(rates)
    if known.empty:
        return None
    data = drawn(known, "category")
    axis = alt.Axis(title=said("Over-refusal rate"), format=".0%", tickCount=5)
    down = ("category", _by_rate(data, "category"))
    tooltip = tooltips("category", "interval", other=other_of(known))
    chart = bars(data, down, alt.X("rate:Q", axis=axis), ends=data, tooltip=tooltip)
    y = alt.Y("category:N", sort=down[1], title=None)
    ink = alt.value(_OTHER)
    chart = alt.layer(
        chart, *small_dots(data, "rate", x="other:Q", y=y, tooltip=tooltip, color=ink)
    )
    return figure(
        "category-bars",
        finished(chart.properties(width=PLOT_WIDTH), least=LEAST),
        known[["category", *_DATA, *other_data(known)]],
        *small_dots_note(known),
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
    data, title = drawn(known, "model", "category"), said("Model")
    colours, shapes = scales(sorted(data["model"].unique()))
    domain = shares(data["rate"], data["rate"])
    scale = alt.Scale(domain=domain, nice=False, zero=False)
    slanted, order = alt.Axis(labelAngle=-30), _by_rate(data, "category")
    place = {
        "x": alt.X("category:O", sort=order, title=None, axis=slanted),
        "y": alt.Y("rate:Q", scale=scale, axis=rate_axis(said("Over-refusal rate"), domain)),
        "color": alt.Color("model:N", scale=colours, title=title),
    }
    base, tooltip = alt.Chart(data), tooltips("model", "category", "interval")
    shape = alt.Shape("model:N", scale=shapes, title=title)
    points = base.mark_point(filled=True, size=60).encode(**place, shape=shape, tooltip=tooltip)
    chart = alt.layer(base.mark_line(strokeWidth=1.4).encode(**place), points)
    return figure(
        "trends",
        finished(chart.properties(width=PLOT_WIDTH, height=260), least=LEAST),
        known[["model", "category", *_DATA]],
    )


def class_stack(found: pd.DataFrame, rates: pd.DataFrame) -> Figure | None:
    """Draw how each model responded, to prompts of each label, the most over-refusing first.

    Args:
        found: Class shares by model (:func:`or_eval.analysis.rates.class_shares`).
        rates: Rates by model; their intervals stand where what they count as refused ends.
    """
    known = found[found["total"] > 0]
    if known.empty:
        return None
    data = drawn(known.rename(columns={"share": "rate"}), "model", "response_class")
    data["order"] = known["response_class"].map({name: at for at, name in enumerate(_CLASSES)})
    ends = with_shown_names(rates, "model").assign(label=rates["measure"].map(LABEL_OF))
    by_rate = ends.sort_values(["measure", "rate"], ascending=[True, False], kind="stable")
    models = list(dict.fromkeys([*by_rate["model"], *sorted(data["model"])]))
    ends = ends.dropna(subset=_BOUNDS) if _one_stretch(rates) else ends.iloc[:0]
    names = [named("response_class", name) for name in _CLASSES]
    scale = alt.Scale(domain=names, range=list(_CLASSES.values()))
    colour = alt.Color("response_class:N", title=said("Response class"), scale=scale)
    axis = alt.Axis(format="%", title=said("Share of responses"), tickCount=5)
    along = alt.X("rate:Q", stack="zero", axis=axis, scale=alt.Scale(domain=[0, 1]))
    more = {"order": "order:Q", "tooltip": tooltips("model", "response_class", "interval")}
    panels = []
    for label, title in _LABELS.items():
        if (of := data[data["label"] == label]).empty:
            continue
        down = ("model", [name for name in models if (of["model"] == name).any()])
        panel = bars(of, down, along, colour, ends[ends["label"] == label], **more)
        panels.append(panel.properties(title=said(title), width=PLOT_WIDTH * 0.7))
    chart, margin = alt.concat(*panels, columns=2), name_room(data["model"])
    return figure(
        "classes",
        finished(chart, least=300, panels=len(panels), margin=margin, legend=names),
        known[["model", "label", "response_class", "n", "total", "share", "lower", "upper"]],
        corrected_note(rates),
    )


def _one_stretch(rates: pd.DataFrame) -> bool:
    """Tell whether what counts as refused is a stretch of the stack, which has an end."""
    counting = str(rates["counting"].iloc[0]) if other_of(rates) else STRICT
    refused = countings()[counting].refused
    return refused == set(list(_CLASSES)[: len(refused)])


def funnel(rows: pd.DataFrame) -> Figure | None:
    """Draw what each stage of a build kept, and what it dropped for which reason.

    Args:
        rows: ``stage``, ``what`` (``kept``, ``kept, from SOURCE``, or the reason of a drop) and
            ``rows``, in order, as in a build's ``funnel.csv``.
    """
    if rows.empty:
        return None
    names = [
        f"{stage}: {said('kept') if what == _KEPT else what}"
        for stage, what in zip(rows["stage"], rows["what"], strict=True)
    ]
    kept = rows["what"].eq(_KEPT) | rows["what"].str.startswith(f"{_KEPT}, from ")
    sides = [said("kept"), said("dropped")]
    data = with_shown_names(rows.assign(name=names), "name").assign(
        side=kept.map(dict(zip((True, False), sides, strict=True))),
        count=[f"{count:,}" for count in rows["rows"]],
    )
    order, along = data["name"].tolist(), alt.X("rows:Q", title=said("Rows"))
    scale = alt.Scale(domain=sides, range=[COLOURS[0], COLOURS[1]])
    chart = bars(data, ("name", order), along, alt.Color("side:N", scale=scale, title=None))
    counts = alt.Chart(data).mark_text(align="left", dx=4, color=NEUTRAL)
    y = alt.Y("name:N", sort=order, title=None)
    chart = alt.layer(chart, counts.encode(x=along, y=y, text="count:N"))
    return figure(
        "funnel",
        finished(chart.properties(width=PLOT_WIDTH, height=20 * len(order)), least=LEAST),
        rows,
    )


def _by_rate(data: pd.DataFrame, column: str) -> list[str]:
    means = data.groupby(column)["rate"].mean()
    return [str(name) for name in means.sort_values(ascending=False, kind="stable").index]

"""How much each model changed between two runs."""

from __future__ import annotations

import pandas as pd

from or_eval.analysis.figures.drawing import (
    NEUTRAL,
    PLOT_WIDTH,
    Figure,
    altair,
    finished,
    hollow,
    hollow_note,
    scales,
    with_shown_names,
)


def run_differences(rates: pd.DataFrame) -> Figure:
    """Draw the change in the refused share of safe and of toxic prompts, with its interval.

    Args:
        rates: Columns ``model``, ``label``, ``difference``, ``lower``, ``upper``, ``rate_a``,
            ``rate_b`` and ``p``.
    """
    alt = altair()
    data = with_shown_names(rates, "model").assign(
        bounded=rates["lower"].notna() & rates["upper"].notna(),
        lower=rates["lower"].fillna(rates["difference"]),
        upper=rates["upper"].fillna(rates["difference"]),
        change=[
            f"{100 * change:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"
            for change, low, high in zip(
                rates["difference"], rates["lower"], rates["upper"], strict=True
            )
        ],
    )
    labels = sorted(data["label"].unique())
    colours, shapes = scales(labels)
    axis = alt.Axis(
        title="Change in the refused share, B less A (percentage points)",
        labelExpr="format(100 * datum.value, '+.0f')",
    )
    base = alt.Chart(data)
    place = {"y": alt.Y("model:N", title=None), "yOffset": alt.YOffset("label:N", sort=labels)}
    colour = alt.Color("label:N", scale=colours, title="Prompts")
    zero = alt.Chart(pd.DataFrame({"x": [0.0]})).mark_rule(color=NEUTRAL).encode(x="x:Q")
    centre = alt.X("difference:Q", axis=axis)
    bars = base.mark_rule(strokeWidth=1.5).encode(
        x=alt.X("lower:Q", axis=axis), x2="upper:Q", color=colour, **place
    )
    points = base.mark_point(filled=True, size=70).encode(
        x=centre,
        color=colour,
        shape=alt.Shape("label:N", scale=shapes, title="Prompts"),
        tooltip=[
            alt.Tooltip("model:N", title="Model"),
            alt.Tooltip("label:N", title="Prompts"),
            alt.Tooltip("change:N", title="Percentage points"),
            alt.Tooltip("p:Q", title="p", format=".3f"),
        ],
        **place,
    )
    height = 40 * data["model"].nunique() + 20
    layers = [zero, bars, points, *hollow(base, data, x=centre, **place)]
    chart = alt.layer(*layers).properties(width=PLOT_WIDTH, height=height)
    note = "Change from run A to run B with 95 % intervals; to the right, run B refuses more."
    return Figure(
        "changes",
        "Changes between the runs",
        note + hollow_note(data),
        finished(chart, least=280),
        rates,
    )

"""How many rows each stage of a build kept."""

from __future__ import annotations

import pandas as pd

from or_eval.analysis.figures.drawing import (
    COLOURS,
    NEUTRAL,
    PLOT_WIDTH,
    Figure,
    altair,
    finished,
    with_shown_names,
)
from or_eval.analysis.figures.forms import LEAST, bars
from or_eval.analysis.figures.in_language import said

_KEPT = "kept"


def funnel(rows: pd.DataFrame) -> Figure | None:
    """Draw what each stage of a build kept, and what it dropped for which reason.

    Args:
        rows: ``stage``, ``what`` (``kept``, ``kept, from SOURCE``, or the reason of a drop) and
            ``rows``, in order, as in a build's ``funnel.csv``.

    Returns:
        The figure; None where there are no stages.
    """
    if rows.empty:
        return None
    alt = altair()
    names = [
        f"{stage}: {said('kept') if what == _KEPT else what}"
        for stage, what in zip(rows["stage"], rows["what"], strict=True)
    ]
    kept = rows["what"].eq(_KEPT) | rows["what"].str.startswith(f"{_KEPT}, from ")
    data = with_shown_names(rows.assign(name=names), "name").assign(
        side=kept.map({True: said("kept"), False: said("dropped")}),
        count=[f"{count:,}" for count in rows["rows"]],
    )
    order = data["name"].tolist()
    sides = alt.Scale(domain=[said("kept"), said("dropped")], range=[COLOURS[0], COLOURS[1]])
    along = alt.X("rows:Q", title=said("Rows"))
    chart = bars(data, ("name", order), along, alt.Color("side:N", scale=sides, title=None))
    counts = alt.Chart(data).mark_text(align="left", dx=4, color=NEUTRAL)
    place = {"x": along, "y": alt.Y("name:N", sort=order, title=None)}
    return Figure(
        "funnel",
        said("What each stage kept and dropped"),
        said(
            "Rows that came out of each stage of the build, and below them those that it dropped, "
            "by the reason."
        ),
        finished(
            alt.layer(chart, counts.encode(**place, text="count:N")).properties(
                width=PLOT_WIDTH, height=20 * len(order)
            ),
            least=LEAST,
        ),
        rows,
    )

"""How many prompts there are of each category and method, and how many a build kept."""

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
from or_eval.analysis.figures.heat_maps import heat_map
from or_eval.analysis.figures.in_language import named, said

_KEPT = "kept"


def balance(prompts: pd.DataFrame) -> Figure | None:
    """Draw how many prompts there are of each category and method, by language and label.

    Args:
        prompts: Prompt records with ``label``, ``category``, ``language`` and ``method``.

    Returns:
        The figure; None with fewer than two categories.
    """
    if prompts["category"].nunique() < 2:
        return None
    filled = prompts.assign(method=prompts["method"].fillna("(none)"))
    panel, cell = ["label", "language"], ["category", "method"]
    # in every panel all categories and methods: where there is nothing, a zero
    table = filled.pivot_table(index=panel, columns=cell, aggfunc="size").fillna(0).astype(int)
    wide = table.reindex(
        columns=pd.MultiIndex.from_product([filled[name].unique() for name in cell], names=cell),
        fill_value=0,
    )
    counts = wide.melt(ignore_index=False, value_name="n").reset_index()
    data = with_shown_names(counts, "category", "method")
    data = data.assign(
        panel=[
            f"{named('label', label)}, {named('language', name)}"
            for label, name in zip(data["label"], data["language"], strict=True)
        ],
        text=data["n"].astype(str),
        interval=data["n"].astype(str),
    )
    domain = (0, max(int(data["n"].max()), 1))
    return Figure(
        "balance",
        said("Prompts by category and method"),
        said(
            "How many prompts there are, in a panel for each label and language. Prompts that no "
            "method wrote stand under (none)."
        ),
        heat_map(data, "n", domain, "category", "method", panel="panel"),
        counts,
    )


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
    data = with_shown_names(rows.assign(name=names), "name").assign(
        side=[said("kept") if _is_kept(what) else said("dropped") for what in rows["what"]],
        count=[f"{count:,}" for count in rows["rows"]],
    )
    order = data["name"].tolist()
    sides = alt.Scale(domain=[said("kept"), said("dropped")], range=[COLOURS[0], COLOURS[1]])
    base = alt.Chart(data).encode(
        y=alt.Y("name:N", sort=order, title=None), x=alt.X("rows:Q", title=said("Rows"))
    )
    bars = base.mark_bar().encode(color=alt.Color("side:N", scale=sides, title=None))
    counts = base.mark_text(align="left", dx=4, color=NEUTRAL).encode(text="count:N")
    return Figure(
        "funnel",
        said("What each stage kept and dropped"),
        said(
            "Rows that came out of each stage of the build, and below them those that it dropped, "
            "by the reason."
        ),
        finished(
            alt.layer(bars, counts).properties(width=PLOT_WIDTH, height=20 * len(order)), least=280
        ),
        rows,
    )


def _is_kept(what: str) -> bool:
    return what == _KEPT or what.startswith(f"{_KEPT}, from ")

"""Heat maps: rates of two groupings, agreement of models, likeness of rewriting methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from or_eval.analysis.figures.drawing import (
    NEUTRAL,
    Figure,
    altair,
    drawn,
    finished,
    name_room,
    over_refusal,
    percent,
    tooltips,
    with_shown_names,
)
from or_eval.analysis.figures.in_language import named, said

_CELL_WIDTH, _CELL_HEIGHT = 66, 34
_LEAST_CELL = 54
_PANELS_ACROSS = 3
# from pale to deep blue; each cell is outlined, so that it shows on any page
_PALE, _DEEP = (247, 251, 255), (8, 64, 129)
_WHITE_FROM = 0.7
"""From here along the colours, white is the better ink to read on them; before it, black."""


def rate_heat_map(rates: pd.DataFrame, row: str) -> Figure | None:
    """Draw over-refusal by a column and language, each cell with its rate and interval.

    Args:
        rates: Rates by these two columns (:func:`or_eval.analysis.rates.rates`); by model as
            well, if each model is to have a panel.
        row: Column of the prompt record that goes down, as ``category`` or ``method``.

    Returns:
        The figure; None where there is nothing to draw.
    """
    known = over_refusal(rates)
    if known.empty:
        return None
    models = ["model"] if "model" in known else []
    data = drawn(known, row, "language", *models)
    data = data.assign(
        text=[percent(rate) for rate in data["rate"]],
        range=[text.partition(" (")[2].rstrip(")") for text in data["interval"]],
    )
    name, title = f"{row}-by-language", said(f"Over-refusal by {row} and language")
    of = "of each model" if models else "over all models"
    return Figure(
        f"{name}-by-model" if models else name,
        said("{title}, model by model", title=title) if models else title,
        said(
            f"Share of safe prompts refused {of}; in small figures the 95 % interval (none where "
            "all prompts are of one family). Empty: no responses."
        ),
        heat_map(data, "rate", (0.0, 1.0), row, "language"),
        known[[*models, row, "language", "n", "refused", "rate", "lower", "upper"]],
    )


def vote_agreement_heat_map(pairs: pd.DataFrame, label: str) -> Figure | None:
    """Draw how far each two models agree on what to refuse.

    Args:
        pairs: The pairs of :class:`or_eval.analysis.vote_agreement.VoteAgreement`.
        label: Label of the prompts that they are over.

    Returns:
        The figure; None with fewer than two models.
    """
    known = pairs.dropna(subset=["kappa"])
    if known.empty:
        return None
    turned = known.rename(columns={"model_a": "model_b", "model_b": "model_a"})
    data = with_shown_names(pd.concat([known, turned]), "model_a", "model_b")
    data["text"] = [f"{kappa:z.2f}" for kappa in data["kappa"]]
    data["range"] = [
        "" if pd.isna(lower) else f"{lower:z.2f}{' to ' if lower < 0 else '–'}{upper:z.2f}"
        for lower, upper in zip(data["lower"], data["upper"], strict=True)
    ]
    data["interval"] = [
        f"{text} ({ends})" if ends else text
        for text, ends in zip(data["text"], data["range"], strict=True)
    ]
    domain = (min(0.0, float(data["kappa"].min())), 1.0)
    return Figure(
        "vote-agreement",
        said("Agreement of models"),
        said(
            "Cohen's kappa between the votes of every two models on {label} prompts (1: they "
            "refuse the same prompts, 0: no more than chance); in small figures the 95 % interval.",
            label=named("label", label),
        ),
        heat_map(data, "kappa", domain, "model_a", "model_b"),
        known[["model_a", "model_b", "n", "kappa", "lower", "upper", "jaccard"]],
    )


def similarity_heat_map(similarity: pd.DataFrame) -> Figure | None:
    """Draw the mean semantic similarity between rewriting methods.

    Args:
        similarity: Frame of :func:`or_eval.analysis.figures.similarity.method_similarity`.

    Returns:
        The figure; None where there are fewer than two methods.
    """
    if similarity["method"].nunique() < 2:
        return None
    data = similarity.assign(other=[named("method", name) for name in similarity["other"]])
    data = with_shown_names(data, "method", "other").assign(
        text=[f"{value:z.2f}" for value in similarity["similarity"]],
        interval=[f"{value:.3f}" for value in similarity["similarity"]],
        n=similarity["pairs"],
    )
    domain = (float(data["similarity"].min()), float(data["similarity"].max()))
    return Figure(
        "method-similarity",
        said("Semantic similarity of rewriting methods"),
        said(
            "Mean cosine similarity between the prompts of two methods; no prompt is compared "
            "with itself. Empty: nothing to compare."
        ),
        heat_map(data, "similarity", domain, "method", "other"),
        similarity,
    )


def heat_map(
    data: pd.DataFrame,
    value: str,
    domain: tuple[float, float],
    row: str,
    column: str,
    order: Sequence[str] | None = None,
    panel: str = "model",
    titles: tuple[str | None, str | None] = (None, None),
) -> Any:
    """Draw cells coloured by a value, or each model's cells in a panel of its own.

    Args:
        data: Cells with ``text``, ``range`` where something stands below the text, ``interval``
            and ``n``.
        value: Column that they are coloured by.
        domain: Its values at the pale and at the deep end.
        row: Column that goes down.
        column: Column that goes across.
        order: Order of rows and of columns, if not that of the alphabet.
        panel: Column that has a panel for each of its values, where there is one of this name.
        titles: What the rows are of, and the columns, where their names don't tell.
    """
    low, high = domain
    depth = ((data[value] - low) / ((high - low) or 1.0)).clip(0, 1)
    data = data.assign(
        fill=[_between(share) for share in depth],
        ink=["white" if share >= _WHITE_FROM else "black" for share in depth],
        range=data.get("range", ""),
    )
    rows, columns = (
        sorted(data[name].unique(), key=order.index if order else None) for name in (row, column)
    )
    margin = name_room(rows)
    chart = _heat_map(data, (row, rows), (column, columns), titles).properties(
        width=len(columns) * _CELL_WIDTH, height=len(rows) * _CELL_HEIGHT
    )
    least = len(columns) * _LEAST_CELL
    if panel not in data:
        return finished(chart, least=least + margin)
    names = sorted(data[panel].unique())
    across = min(_PANELS_ACROSS, len(names))
    panels = chart.facet(facet=altair().Facet(f"{panel}:N", sort=names), columns=across)
    panels = panels.resolve_axis(x="independent")
    return finished(panels, least=least, panels=len(names), margin=margin)


def _heat_map(
    data: pd.DataFrame,
    down: tuple[str, list[str]],
    across: tuple[str, list[str]],
    titles: tuple[str | None, str | None],
) -> Any:
    alt = altair()
    (row, rows), (column, columns) = down, across
    axis = alt.Axis(orient="top", labelAngle=-30)
    place = {
        "x": alt.X(f"{column}:N", title=titles[1], axis=axis, sort=columns),
        "y": alt.Y(f"{row}:N", title=titles[0], sort=rows),
    }
    base = alt.Chart(data)
    ranges = bool(data["range"].any())
    tooltip = tooltips(row, column, "interval")
    squares = base.mark_rect(stroke=NEUTRAL, strokeWidth=1).encode(
        **place, tooltip=tooltip, color=alt.Color("fill:N", scale=None)
    )
    texts = [base.mark_text(fontSize=12, dy=-5 if ranges else 0).encode(text="text:N")]
    if ranges:
        texts.append(base.mark_text(fontSize=9, dy=8).encode(text="range:N"))
    ink = alt.Color("ink:N", scale=None)
    return alt.layer(squares, *(text.encode(**place, color=ink) for text in texts))


def _between(share: float) -> str:
    mixed = (round(a + share * (b - a)) for a, b in zip(_PALE, _DEEP, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)

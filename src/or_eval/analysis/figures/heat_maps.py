"""Heat maps: rates of two groupings, agreement of models, likeness of rewriting methods."""

from __future__ import annotations

from typing import Any

import pandas as pd

from or_eval.analysis.figures.drawing import (
    Figure,
    altair,
    drawn,
    finished,
    over_refusal,
    percent,
    with_shown_names,
)

_CELL_WIDTH, _CELL_HEIGHT = 60, 32
_BLACK_FROM = 0.43
"""From here along viridis, black is the better ink to read on it; before it, white."""


def rate_heat_map(rates: pd.DataFrame, row: str, column: str = "language") -> Figure | None:
    """Draw over-refusal by two columns, each cell with its rate and interval.

    Args:
        rates: Rates by these two columns (:func:`or_eval.analysis.rates.rates`).
        row: Column of the prompt record that goes down, as ``category`` or ``method``.
        column: Column that goes across.

    Returns:
        The figure; None where there is nothing to draw.
    """
    known = over_refusal(rates)
    if known.empty:
        return None
    data = drawn(known, row, column)
    data["text"] = [percent(rate) for rate in data["rate"]]
    data["range"] = [text.partition(" (")[2].rstrip(")") for text in data["interval"]]
    chart = _heat_map(data, row, column, "rate", "Over-refusal", (0.0, 1.0), ".0%")
    return Figure(
        f"{row}-by-{column}",
        f"Over-refusal by {row} and {column}",
        "Share of safe prompts refused over all models; in small figures the 95 % interval (none "
        "where all prompts are of one family). Empty: no responses.",
        finished(chart),
        known[[row, column, "n", "refused", "rate", "lower", "upper"]],
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
    data["text"] = [f"{kappa:.2f}" for kappa in data["kappa"]]
    data["range"] = [
        "" if pd.isna(lower) else f"{lower:.2f}–{upper:.2f}"
        for lower, upper in zip(data["lower"], data["upper"], strict=True)
    ]
    data["interval"] = [
        f"{text} ({ends})" if ends else text
        for text, ends in zip(data["text"], data["range"], strict=True)
    ]
    low = min(0.0, float(data["kappa"].min()))
    chart = _heat_map(data, "model_a", "model_b", "kappa", "Cohen's kappa", (low, 1.0), ".1f")
    return Figure(
        "vote-agreement",
        "Agreement of models",
        f"Cohen's kappa between the votes of every two models on {label} prompts (1: they refuse "
        "the same prompts, 0: no more than chance); in small figures the 95 % interval.",
        finished(chart),
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
    data = with_shown_names(similarity, "method", "other").assign(
        text=[f"{value:.2f}" for value in similarity["similarity"]],
        range="",
        interval=[f"{value:.3f}" for value in similarity["similarity"]],
        n=similarity["pairs"],
    )
    low, high = float(data["similarity"].min()), float(data["similarity"].max())
    chart = _heat_map(data, "method", "other", "similarity", "Cosine", (low, high), ".2f")
    return Figure(
        "method-similarity",
        "Semantic similarity of rewriting methods",
        "Mean cosine similarity between the prompts of two methods; no prompt is compared with "
        "itself. Empty: nothing to compare.",
        finished(chart),
        similarity,
    )


def _heat_map(
    data: pd.DataFrame,
    row: str,
    column: str,
    value: str,
    title: str,
    domain: tuple[float, float],
    form: str,
) -> Any:
    alt = altair()
    across = alt.X(f"{column}:N", title=None, axis=alt.Axis(orient="top", labelAngle=-30))
    down = alt.Y(f"{row}:N", title=None)
    base = alt.Chart(data)
    ranges = data["range"].any()
    turn = domain[0] + _BLACK_FROM * (domain[1] - domain[0])
    ink = alt.condition(f"datum.{value} < {turn}", alt.value("white"), alt.value("black"))
    tooltip = [
        alt.Tooltip(f"{row}:N", title=_words(row)),
        alt.Tooltip(f"{column}:N", title=_words(column)),
        alt.Tooltip("interval:N", title=title),
        alt.Tooltip("n:Q", title="Cases"),
    ]
    cells = base.mark_rect(stroke="white").encode(
        x=across,
        y=down,
        tooltip=tooltip,
        color=alt.Color(
            f"{value}:Q",
            title=title,
            scale=alt.Scale(scheme="viridis", domain=list(domain)),
            legend=alt.Legend(format=form),
        ),
    )
    texts = [base.mark_text(fontSize=12, dy=-5 if ranges else 0).encode(text="text:N")]
    if ranges:
        texts.append(base.mark_text(fontSize=9, dy=8).encode(text="range:N"))
    layers = [cells, *(text.encode(x=across, y=down, color=ink) for text in texts)]
    return alt.layer(*layers).properties(width=alt.Step(_CELL_WIDTH), height=alt.Step(_CELL_HEIGHT))


def _words(column: str) -> str:
    return column.replace("_", " ").capitalize()

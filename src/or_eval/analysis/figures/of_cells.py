"""Heat maps: rates of two groupings, four outcomes, agreement, likeness, labels, balance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from or_eval.analysis.figures.drawing import (
    Figure,
    corrected_note,
    drawn,
    ends_of,
    figure,
    over_refusal,
    with_interval,
    with_shown_names,
)
from or_eval.analysis.figures.forms import cells, interval_note
from or_eval.analysis.figures.in_language import named, said
from or_eval.analysis.human_labels import LABELS
from or_eval.analysis.label_agreement import LabelAgreement
from or_eval.analysis.rates import LABEL_OF, MEASURES
from or_eval.analysis.tables import records
from or_eval.analysis.wording import written
from or_eval.schema import Label

_FEWEST = 6
"""Cells of fewer families are grey: their colour would say more than is known."""
_ALL = (0.0, 1.0)


def rate_cells(
    data: pd.DataFrame, row: str, column: str, order: Sequence[str] | None = None, panel: str = ""
) -> Any:
    """Draw cells with a rate and its interval; those of few families are grey.

    Args:
        data: What is drawn (:func:`or_eval.analysis.figures.drawing.drawn`).
        row: Column that goes down.
        column: Column that goes across.
        order: As for :func:`or_eval.analysis.figures.forms.cells`.
        panel: Column that has a panel for each of its values.
    """
    texts = {"text": data["rate"].map(with_interval), "range": data["interval"].map(ends_of)}
    data = data.assign(pale=data["families"] < _FEWEST, **texts)
    return cells(data, "rate", _ALL, row, column, order, panel)


def grey_note(rates: pd.DataFrame) -> list[str]:
    """Say which cells are grey, where any are."""
    if (rates["families"] >= _FEWEST).all():
        return []
    return [said("Grey: fewer than {count} families of prompts.", count=_FEWEST)]


def rate_heat_map(rates: pd.DataFrame, row: str) -> Figure | None:
    """Draw over-refusal by a column and language, each cell with its rate and interval.

    Args:
        rates: Rates by these two columns (:func:`or_eval.analysis.rates.rates`); by model as
            well, if each model is to have a panel.
        row: Column of the prompt record that goes down, as ``category`` or ``method``.
    """
    known = over_refusal(rates)
    if known.empty:
        return None
    models = ["model"] if "model" in known else []
    data = drawn(known, row, "language", *models)
    name, panel = f"{row}-by-language", "model" if models else ""
    return figure(
        f"{name}-by-model" if models else name,
        rate_cells(data, row, "language", panel=panel),
        known[[*models, row, "language", "n", "refused", "rate", "lower", "upper"]],
        *grey_note(known),
    )


def four_fold_tables(rates: pd.DataFrame) -> Figure | None:
    """Draw each model's four-fold table, language by language.

    Args:
        rates: Rates by model and language (:func:`or_eval.analysis.rates.rates`).
    """
    known = rates[(rates["n"] > 0) & rates["measure"].isin(list(MEASURES.values()))]
    if known.empty:
        return None
    several = known["language"].nunique() > 1
    rows = [cell for row in records(known) for cell in _both(row, several)]
    data = with_shown_names(pd.DataFrame(rows), "model")
    order = [
        *(named("label", label) for label in (Label.SAFE, Label.TOXIC)),
        *(named("response_class", name) for name in ("answered", "refused")),
    ]
    return figure(
        "four-fold",
        cells(data, "share", _ALL, "prompts", "response", order, "model"),
        known[["model", "language", "measure", "n", "refused", "rate", "lower", "upper"]],
        corrected_note(known),
    )


def _both(row: dict[str, Any], several: bool) -> list[dict[str, Any]]:
    """Give the cells of a rate: refused, and what is left of the whole."""
    rate, lower, upper, n = (row[name] for name in ("rate", "lower", "upper", "n"))
    corrected = row.get("sampled", 0) > 0  # then shares are of no whole number of responses
    model = row["model"]
    return [
        {
            "model": f"{model}, {named('language', row['language'])}" if several else model,
            "prompts": named("label", LABEL_OF[row["measure"]]),
            "n": n,
            "response": named("response_class", response),
            "share": share[0],
            "interval": with_interval(*share),
            "text": ("" if corrected else f"{count:,}: ") + with_interval(share[0]),
            "range": ends_of(with_interval(*share)),
        }
        for response, count, share in (
            ("answered", n - row["refused"], (1 - rate, 1 - upper, 1 - lower)),
            ("refused", row["refused"], (rate, lower, upper)),
        )
    ]


def vote_agreement_heat_map(pairs: pd.DataFrame, label: str) -> Figure | None:
    """Draw how far each two models agree on what to refuse.

    Args:
        pairs: The pairs of :class:`or_eval.analysis.votes.VoteAgreement`.
        label: Label of the prompts that they are over.

    Returns:
        The figure; None with fewer than two models.
    """
    known = pairs.dropna(subset=["kappa"])
    if known.empty:
        return None
    turned = known.rename(columns={"model_a": "model_b", "model_b": "model_a"})
    data = with_shown_names(pd.concat([known, turned]), "model_a", "model_b")
    kappas = zip(data["kappa"], data["lower"], data["upper"], strict=True)
    data["interval"] = [written(*estimate, kind="number") for estimate in kappas]
    data["text"] = [text.partition(" ")[0] for text in data["interval"]]
    data["range"] = data["interval"].map(ends_of)
    domain = (min(0.0, float(data["kappa"].min())), 1.0)
    return figure(
        "vote-agreement",
        cells(data, "kappa", domain, "model_a", "model_b"),
        known[["model_a", "model_b", "n", "kappa", "lower", "upper"]],
        interval_note(data["model_a"]),
        label=named("label", label),
    )


def similarity_heat_map(similarity: pd.DataFrame) -> Figure | None:
    """Draw the mean semantic similarity between rewriting methods.

    Args:
        similarity: Frame of :func:`or_eval.analysis.figures.similarity.method_similarity`.
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
    return figure(
        "method-similarity",
        cells(data, "similarity", domain, "method", "other"),
        similarity,
    )


def label_confusion(found: LabelAgreement) -> Figure | None:
    """Draw how often each class that people gave was given by the scorer.

    Args:
        found: What :func:`or_eval.analysis.label_agreement.label_agreement` says.
    """
    if found.confusion.empty:
        return None
    counts = found.confusion.rename_axis(index="people", columns="scorer")
    long = counts.melt(ignore_index=False, value_name="n").reset_index()
    totals = long.groupby("people")["n"].transform("sum")
    long = long.assign(share=long["n"] / totals)
    data = long.assign(
        text=[f"{n:,}" for n in long["n"]],
        range=[with_interval(share) for share in long["share"]],
        interval=[
            said("{count} of {total}", count=f"{n:,}", total=f"{of:,}")
            for n, of in zip(long["n"], totals, strict=True)
        ],
        people=[named("response_class", name) for name in long["people"]],
        scorer=[named("response_class", name) for name in long["scorer"]],
    )
    kappa, lower, upper = (found.groups.iloc[0][f"kappa{end}"] for end in ("", "_lower", "_upper"))
    more = []
    if pd.notna(kappa):
        told = written(kappa, lower, upper, kind="number", between=said(" to "))
        more = [said("Cohen's kappa, refused or not: {kappa}.", kappa=told)]
    order = [named("response_class", name) for name in (*LABELS, "unscored")]
    titles = (said("People"), said("Scorer"))
    return figure(
        "labels",
        cells(data, "share", _ALL, "people", "scorer", order, titles=titles),
        long,
        *more,
    )


def balance(prompts: pd.DataFrame) -> Figure | None:
    """Draw how many prompts there are of each category and method, by language and label.

    Args:
        prompts: Prompt records with ``label``, ``category``, ``language`` and ``method``.

    Returns:
        The figure; None with fewer than two categories.
    """
    if prompts["category"].nunique() < 2:
        return None
    panel, cell = ["label", "language"], ["category", "method"]
    filled = prompts.assign(**{of: prompts[of].fillna("(none)") for of in ("language", "method")})
    # in every panel all categories and methods: where there is nothing, a zero
    table = filled.pivot_table(index=panel, columns=cell, aggfunc="size").fillna(0).astype(int)
    every = pd.MultiIndex.from_product([filled[name].unique() for name in cell], names=cell)
    wide = table.reindex(columns=every, fill_value=0)
    counts = wide.melt(ignore_index=False, value_name="n").reset_index()
    data = with_shown_names(counts, "category", "method").assign(
        panel=[
            f"{named('label', label)}, {named('language', name)}"
            for label, name in zip(counts["label"], counts["language"], strict=True)
        ],
        text=counts["n"].astype(str),
        interval=counts["n"].astype(str),
    )
    domain = (0, max(int(data["n"].max()), 1))
    return figure(
        "balance",
        cells(data, "n", domain, "category", "method", panel="panel"),
        counts,
    )

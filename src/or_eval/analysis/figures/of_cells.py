"""Heat maps: rates of two groupings, four outcomes, agreement, likeness, labels, balance."""

from __future__ import annotations

from typing import Any

import pandas as pd

from or_eval.analysis.figures.drawing import (
    Figure,
    corrected_note,
    drawn,
    ends_of,
    over_refusal,
    with_interval,
    with_shown_names,
)
from or_eval.analysis.figures.forms import cells
from or_eval.analysis.figures.in_language import named, said
from or_eval.analysis.label_agreement import LABELS, LabelAgreement
from or_eval.analysis.rates import LABEL_OF, MEASURES
from or_eval.analysis.tables import records
from or_eval.analysis.wording import written
from or_eval.schema import Label

_FEWEST = 5
"""Cells of fewer families are grey: their colour would say more than is known."""


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
        text=[with_interval(rate) for rate in data["rate"]],
        range=[ends_of(text) for text in data["interval"]],
        pale=data["families"] < _FEWEST,
    )
    name, title = f"{row}-by-language", said(f"Over-refusal by {row} and language")
    of = "of each model" if models else "over all models"
    note = said(
        f"Share of safe prompts refused {of}; in small figures the 95 % interval (none where "
        "all prompts are of one family). Empty: no responses."
    )
    if data["pale"].any():
        note += " " + said("Grey: fewer than {count} families of prompts.", count=_FEWEST)
    return Figure(
        f"{name}-by-model" if models else name,
        said("{title}, model by model", title=title) if models else title,
        note,
        cells(data, "rate", (0.0, 1.0), row, "language"),
        known[[*models, row, "language", "n", "refused", "rate", "lower", "upper"]],
    )


def four_fold_tables(rates: pd.DataFrame) -> Figure | None:
    """Draw each model's four-fold table, language by language.

    Args:
        rates: Rates by model and language (:func:`or_eval.analysis.rates.rates`).

    Returns:
        The figure; None where there is no response with a verdict.
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
    return Figure(
        "four-fold",
        said("Safe and toxic prompts, answered and refused"),
        said(
            "Shares of the safe and of the toxic prompts, in small figures with the 95 % interval. "
            "The upper right is over-refusal, the lower right toxic rejection."
        )
        + f" {corrected_note(known)}",
        cells(data, "share", (0.0, 1.0), "prompts", "response", order),
        known[["model", "language", "measure", "n", "refused", "rate", "lower", "upper"]],
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
    kappas = zip(data["kappa"], data["lower"], data["upper"], strict=True)
    data["interval"] = [written(*estimate, kind="number") for estimate in kappas]
    data["text"] = [text.partition(" ")[0] for text in data["interval"]]
    data["range"] = [ends_of(text) for text in data["interval"]]
    domain = (min(0.0, float(data["kappa"].min())), 1.0)
    return Figure(
        "vote-agreement",
        said("Agreement of models"),
        said(
            "Cohen's kappa between the votes of every two models on {label} prompts (1: they "
            "refuse the same prompts, 0: no more than chance); in small figures the 95 % interval.",
            label=named("label", label),
        ),
        cells(data, "kappa", domain, "model_a", "model_b"),
        known[["model_a", "model_b", "n", "kappa", "lower", "upper"]],
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
        cells(data, "similarity", domain, "method", "other"),
        similarity,
    )


def label_confusion(found: LabelAgreement) -> Figure | None:
    """Draw how often each class that people gave was given by the scorer.

    Args:
        found: What :func:`or_eval.analysis.label_agreement.label_agreement` says.

    Returns:
        The figure; None where no response has a label.
    """
    if found.confusion.empty:
        return None
    counts = found.confusion.rename_axis(index="people", columns="scorer")
    long = counts.melt(ignore_index=False, value_name="n").reset_index()
    totals = long.groupby("people")["n"].transform("sum")
    data = long.assign(share=long["n"] / totals)
    data = data.assign(
        text=[f"{n:,}" for n in data["n"]],
        range=[with_interval(share) for share in data["share"]],
        interval=[
            said("{count} of {total}", count=f"{n:,}", total=f"{of:,}")
            for n, of in zip(data["n"], totals, strict=True)
        ],
        people=[named("response_class", name) for name in data["people"]],
        scorer=[named("response_class", name) for name in data["scorer"]],
    )
    whole = found.groups.iloc[0]
    note = said("Rows are what people said, columns what the scorer said; shares are of the row.")
    if pd.notna(whole["kappa"]):
        value, lower, upper = (f"{whole[f'kappa{end}']:.2f}" for end in ("", "_lower", "_upper"))
        if pd.notna(whole["kappa_lower"]):
            value = said("{value} ({lower} to {upper})", value=value, lower=lower, upper=upper)
        note += " " + said("Cohen's kappa, refused or not: {kappa}.", kappa=value)
    order = [named("response_class", name) for name in (*LABELS, "unscored")]
    titles = (said("People"), said("Scorer"))
    return Figure(
        "labels",
        said("People's labels and the scorer's"),
        note,
        cells(data, "share", (0.0, 1.0), "people", "scorer", order, titles=titles),
        long.assign(share=data["share"]),
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
        cells(data, "n", domain, "category", "method", panel="panel"),
        counts,
    )

"""People's labels against verdicts."""

from __future__ import annotations

import pandas as pd

from or_eval.analysis.figures.drawing import Figure, percent
from or_eval.analysis.figures.heat_maps import heat_map
from or_eval.analysis.figures.in_language import named, said
from or_eval.analysis.label_agreement import LABELS, LabelAgreement


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
        range=[percent(share) for share in data["share"]],
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
    return Figure(
        "labels",
        said("People's labels and the scorer's"),
        note,
        heat_map(
            data,
            "share",
            (0.0, 1.0),
            "people",
            "scorer",
            [named("response_class", name) for name in (*LABELS, "unscored")],
            titles=(said("People"), said("Scorer")),
        ),
        long.assign(share=data["share"]),
    )

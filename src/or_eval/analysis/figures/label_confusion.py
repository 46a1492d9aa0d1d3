"""People's labels against verdicts."""

from __future__ import annotations

import pandas as pd

from or_eval.analysis.figures.drawing import Figure, percent
from or_eval.analysis.figures.heat_maps import heat_map
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
        interval=[f"{n:,} of {of:,}" for n, of in zip(data["n"], totals, strict=True)],
    )
    whole = found.groups.iloc[0]
    kappa = (
        "" if pd.isna(whole["kappa"]) else f" Cohen's kappa, refused or not: {whole['kappa']:.2f}"
    )
    if kappa and pd.notna(whole["kappa_lower"]):
        kappa += f" ({whole['kappa_lower']:.2f} to {whole['kappa_upper']:.2f})"
    return Figure(
        "labels",
        "People's labels and the scorer's",
        f"Rows are what people said, columns what the scorer said; shares are of the row.{kappa}"
        f"{'.' if kappa else ''}",
        heat_map(data, "share", (0.0, 1.0), "people", "scorer", [*LABELS, "unscored"]),
        data[["people", "scorer", "n", "share"]],
    )

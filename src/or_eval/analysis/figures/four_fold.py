"""Four-fold tables: safe and toxic prompts, answered and refused."""

from __future__ import annotations

from typing import Any

import pandas as pd

from or_eval.analysis.figures.drawing import (
    Figure,
    corrected_note,
    percent,
    with_interval,
    with_shown_names,
)
from or_eval.analysis.figures.heat_maps import heat_map
from or_eval.analysis.figures.in_language import named, said
from or_eval.analysis.rates import LABEL_OF, MEASURES
from or_eval.analysis.tables import records
from or_eval.schema import Label


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
    return Figure(
        "four-fold",
        said("Safe and toxic prompts, answered and refused"),
        said(
            "Shares of the safe and of the toxic prompts, in small figures with the 95 % interval. "
            "The upper right is over-refusal, the lower right toxic rejection."
        )
        + f" {corrected_note(known)}",
        heat_map(data, "share", (0.0, 1.0), "prompts", "response", _order()),
        known[["model", "language", "measure", "n", "refused", "rate", "lower", "upper"]],
    )


def _order() -> list[str]:
    """Give the names of rows and of columns, in the order of any language."""
    labels = [named("label", label) for label in (Label.SAFE, Label.TOXIC)]
    return [*labels, *(named("response_class", name) for name in ("answered", "refused"))]


def _both(row: dict[str, Any], several: bool) -> list[dict[str, Any]]:
    """Give the cells of a rate: refused, and what is left of the whole."""
    rate, lower, upper, n = (row[name] for name in ("rate", "lower", "upper", "n"))
    corrected = row.get("sampled", 0) > 0  # then shares are of no whole number of responses
    place = {
        "model": f"{row['model']}, {named('language', row['language'])}"
        if several
        else row["model"],
        "prompts": named("label", LABEL_OF[row["measure"]]),
        "n": n,
    }
    found = []
    for response, count, share in (
        ("answered", n - row["refused"], (1 - rate, 1 - upper, 1 - lower)),
        ("refused", row["refused"], (rate, lower, upper)),
    ):
        interval = with_interval(*share)
        found.append(
            place
            | {
                "response": named("response_class", response),
                "share": share[0],
                "interval": interval,
            }
            | {"text": percent(share[0]) if corrected else f"{count:,}: {percent(share[0])}"}
            | {"range": interval.partition(" (")[2].rstrip(")")}
        )
    return found

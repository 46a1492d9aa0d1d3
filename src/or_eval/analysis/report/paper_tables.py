"""Tables as papers print them: a model and its categories in a line, differences as a matrix."""

from __future__ import annotations

import pandas as pd

from or_eval.analysis.paired_tests import MORE
from or_eval.analysis.report.contents import ReportTable, worded
from or_eval.analysis.report.findings import Findings
from or_eval.analysis.report.shown_tables import SHOWN_MEASURES

_COMPARED = {"safe": "over-refusal", "toxic": "toxic rejection", "unlabelled": "refusals"}


def paper_tables(found: Findings) -> list[ReportTable]:
    """Put rates by a column, and differences between models, as papers print them."""
    tables = [
        worded(f"models-by-{name}", wide_rates(rates, name), "models-by", column=name)
        for name, rates in found.rates_by.items()
    ]
    if found.differences.empty:
        return tables
    for label, rows in found.differences.groupby("label"):
        name, rate = f"difference-matrix-{label}", _COMPARED[str(label)]
        tables.append(worded(name, difference_matrix(rows), "difference-matrix", rate=rate))
    return tables


def wide_rates(rates: pd.DataFrame, column: str) -> pd.DataFrame:
    """Put each model's rates by a column into one line.

    Args:
        rates: Rates by model and that column (:func:`or_eval.analysis.rates.rates`).
        column: ``category``, ``language``, ...

    Returns:
        A row per model and ``rate``, and a column per value of the column: percentages with
        their intervals, as text. Where there are more values than models, they go down instead,
        and models across.
    """
    known = rates[rates["n"] > 0]
    cells = known.assign(
        rate=known["measure"].map(SHOWN_MEASURES),
        text=[
            _with_bounds(100 * rate, 100 * lower, 100 * upper)
            for rate, lower, upper in zip(
                known["rate"], known["lower"], known["upper"], strict=True
            )
        ],
    )
    down, across = "model", column
    if known[column].nunique() > known["model"].nunique():
        down, across = across, down
    table = cells.pivot(index=["rate", down], columns=across, values="text").fillna("—")
    return _flat(table)


def difference_matrix(differences: pd.DataFrame) -> pd.DataFrame:
    """Put the differences between models into a matrix.

    Args:
        differences: Of one label, a row per pair
            (:func:`or_eval.analysis.comparisons.compare_columns`).

    Returns:
        A row per model and a column per model: how many percentage points more the row's model
        refuses than the column's, with the interval, as text; a star where that is more than
        chance.
    """
    turned = differences.assign(
        a=differences["b"],
        b=differences["a"],
        difference=-differences["difference"],
        lower=-differences["upper"],
        upper=-differences["lower"],
    )
    both = pd.concat([differences, turned], ignore_index=True)
    both["text"] = [
        _with_bounds(100 * value, 100 * lower, 100 * upper, signed=True)
        + ("*" if verdict == MORE else "")
        for value, lower, upper, verdict in zip(
            both["difference"], both["lower"], both["upper"], both["verdict"], strict=True
        )
    ]
    table = both.pivot(index="a", columns="b", values="text").fillna("")
    return _flat(table.rename_axis(index="model"))


def _flat(table: pd.DataFrame) -> pd.DataFrame:
    """Put the index among the columns, also where a model or a category is called as it is."""
    return table.reset_index(allow_duplicates=True).rename_axis(columns=None)


def _with_bounds(value: float, lower: float, upper: float, *, signed: bool = False) -> str:
    if pd.isna(value):
        return "—"
    form = "+.1f" if signed else ".1f"
    text = f"{value:{form}}"
    if pd.isna(lower) or pd.isna(upper):
        return text
    between = " to " if signed else "–"
    return f"{text} ({lower:{form}}{between}{upper:{form}})"

"""Measures of refused and of answered prompts, side by side."""

from __future__ import annotations

import numpy as np
import pandas as pd

from or_eval.analysis.rates import measures_in
from or_eval.analysis.structure.measures import MEASURES

SIDES = ("refused", "answered")
_QUANTILES = {
    "low": 0.05,
    "lower_quartile": 0.25,
    "median": 0.5,
    "upper_quartile": 0.75,
    "high": 0.95,
}
_PLACE = ["label", "model", "language", "measure", "side"]


def distributions(responses: pd.DataFrame, values: pd.DataFrame) -> pd.DataFrame:
    """Describe each measure over the prompts of refused and of answered responses.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        values: Measures of its prompts (:func:`or_eval.analysis.structure.measures.measure`).

    Returns:
        A row per label, model, language, measure and ``side`` (``refused``, ``answered``): ``n``
        (responses), ``mean``, ``low``, ``lower_quartile``, ``median``, ``upper_quartile`` and
        ``high`` (the 5th and the 95th percentile). Nothing of measures that are missing.
    """
    known = responses[
        responses["refused"].notna() & responses["label"].isin(list(measures_in(responses)))
    ]
    columns = [name for name in MEASURES if name in values]
    rows = known[["id", "label", "model"]].join(values[["language", *columns]], on="id")
    rows["side"] = np.where(known["refused"].astype(bool), *SIDES)
    long = rows.melt([*_PLACE[:3], "side"], columns, "measure").dropna(subset="value")
    groups = long.groupby(_PLACE, sort=False)["value"]
    quantiles = {name: groups.quantile(share) for name, share in _QUANTILES.items()}
    table = pd.DataFrame({"n": groups.size(), "mean": groups.mean(), **quantiles}).reset_index()
    order = {name: at for at, name in enumerate([*columns, *SIDES])}
    place = table[_PLACE].assign(measure=table["measure"].map(order), side=table["side"].map(order))
    return table.loc[place.sort_values(_PLACE).index].reset_index(drop=True)

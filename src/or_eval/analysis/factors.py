"""What each factor of a designed comparison does: system prompt, temperature, framing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from or_eval.analysis.comparisons import shifted
from or_eval.analysis.conditions import conditions
from or_eval.analysis.corrections import Corrections, corrected_mean
from or_eval.analysis.families import families_by_id
from or_eval.analysis.logs import FRAMING
from or_eval.analysis.paired_tests import COLUMNS, Contrast, compare_all, paired
from or_eval.analysis.rates import measures_in, prompt_means
from or_eval.analysis.responses import Logs
from or_eval.schema import PLAIN

ALL_MODELS = "all models"


def marginal_effects(logs: Logs, found: Corrections | None = None) -> pd.DataFrame:
    """Compare the levels of each factor that a model's runs differ in.

    A framing is compared with the prompt as it is, of other factors every two levels. Runs are
    compared that differ in this factor alone: for each prompt, the refused shares of the
    two levels are averaged over the settings of the other factors that both were run with. So a
    factor's effect isn't that of another which happened to go with it.

    Args:
        logs: What :func:`or_eval.analysis.responses.read_logs` gives; the factors are what the
            logs of a model differ in (:func:`or_eval.analysis.conditions.conditions`).
        found: Corrections of the verdicts, where there are any.

    Returns:
        A row per label, model (and ``all models``, where there are several), factor and pair of
        its levels: ``label``, ``model``, ``factor``, ``a``, ``b``, ``settings`` (of the other
        factors and models, averaged over), ``rate_a``, ``rate_b``, and what
        :func:`or_eval.analysis.paired_tests.compare_all` gives. Nothing where no two runs differ
        in one factor alone.
    """
    known = conditions(logs.heads)
    parts = []
    for label in measures_in(logs.responses):
        of_label = logs.responses[logs.responses["label"] == label]
        means = prompt_means(of_label)
        rows: list[dict[str, Any]] = []
        contrasts: list[Contrast] = []
        for row, cells in _pairs(known.reindex(means.columns)):
            runs = [[cell[side] for cell in cells] for side in (0, 1)]
            one, other = (means[names].to_numpy().mean(axis=1) for names in runs)
            both = ~np.isnan(one) & ~np.isnan(other)
            if not both.any():
                continue
            rates, contrast = [one[both].mean(), other[both].mean()], paired(one, other)
            if found is not None:
                asked = of_label[of_label["id"].isin(means.index[both])]
                of_a, of_b = (
                    corrected_mean(asked[asked["model"].isin(names)], found) for names in runs
                )
                contrast = shifted(contrast, of_a, of_b)
                rates = [rates[0] + of_a.shift, rates[1] + of_b.shift]
            told = dict(zip(("rate_a", "rate_b"), rates, strict=True))
            rows.append({"label": label.value, **row, **told})
            contrasts.append(contrast)
        if rows:
            families = families_by_id(of_label).reindex(means.index)
            tested = compare_all(contrasts, families)
            parts.append(pd.concat([pd.DataFrame(rows), tested], axis=1))
    names = ["label", "model", "factor", "a", "b", "settings", "rate_a", "rate_b", *COLUMNS]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names)


def _pairs(known: pd.DataFrame) -> list[tuple[dict[str, Any], Sequence[tuple[str, str]]]]:
    """Give each comparison and the pairs of runs that it is made of."""
    factors = [name for name in known.columns if name != "base"]
    bases = list(dict.fromkeys(known["base"]))
    groups = [(base, known[known["base"] == base]) for base in bases]
    if len(bases) > 1:
        groups.append((ALL_MODELS, known))
    found = []
    for model, runs in groups:
        for factor in factors:
            for a, b in _levels(factor, runs[factor]):
                cells = _matched(runs, factor, a, b)
                if cells and (
                    model != ALL_MODELS or len({runs.at[c[0], "base"] for c in cells}) > 1
                ):
                    row = {"model": model, "factor": factor, "a": a, "b": b, "settings": len(cells)}
                    found.append((row, cells))
    return found


def _levels(factor: str, said: pd.Series[str]) -> list[tuple[str, str]]:
    levels = sorted(said.unique())
    if factor == FRAMING and PLAIN in levels:
        return [(level, PLAIN) for level in levels if level != PLAIN]
    return list(combinations(levels, 2))


def _matched(runs: pd.DataFrame, factor: str, a: str, b: str) -> Sequence[tuple[str, str]]:
    """Give the pairs of runs that differ in a factor alone, at level ``a`` and at ``b``."""
    others = [name for name in runs.columns if name != factor]
    at = {
        level: {tuple(row): str(name) for name, row in of_level[others].T.items()}
        for level, of_level in runs.groupby(factor)
    }
    return [(at[a][cell], at[b][cell]) for cell in at[a] if cell in at[b]]

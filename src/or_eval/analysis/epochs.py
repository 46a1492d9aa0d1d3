"""How far a model's responses to one prompt differ from each other, and prompts from prompts."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from or_eval.analysis.estimates import alone
from or_eval.analysis.families import response_families
from or_eval.analysis.jackknife import SHARE, jackknife
from or_eval.analysis.rates import measures_in
from or_eval.intervals import Estimate

Floats = NDArray[np.float64]


def epoch_variance(responses: pd.DataFrame) -> pd.DataFrame:
    """Split the variance of refusals into that within and that between prompts.

    One prompt asked again may be refused once and answered once. Where most of the variance is
    within prompts, more epochs make a rate surer; where it is between them, only more prompts do.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.

    Returns:
        A row per model and label with prompts that have several verdicts: ``model``, ``label``,
        ``prompts`` (these), ``epochs`` (verdicts of each, on average), ``unsteady`` (prompts both
        refused and answered), ``within`` and ``between`` (the variance components of a one-way
        analysis of variance), and ``share`` (``within`` as a share of both) with ``lower`` and
        ``upper`` (:func:`or_eval.analysis.jackknife.jackknife`).
    """
    scored = responses[responses["refused"].notna()]
    scored = scored[scored["label"].isin(list(measures_in(responses)))]
    values = scored["refused"].astype("float64")
    keys = [scored["model"], scored["label"], response_families(scored), scored["id"]]
    prompts = values.groupby(keys, sort=True).agg(["size", "sum"])
    prompts = prompts[prompts["size"] > 1].reset_index(names=["model", "label", "family", "id"])
    rows = []
    for (model, label), group in prompts.groupby(["model", "label"], sort=True):
        n, refused = (group[name].to_numpy(dtype=np.float64) for name in ("size", "sum"))
        columns = np.column_stack([np.ones(len(n)), n, n**2, refused, refused**2 / n])
        within, between = (float(part) for part in _components(columns.sum(axis=0)))
        share = Estimate(np.nan, np.nan, np.nan)
        if len(group) > 1:
            share = jackknife(columns, _share_within, group["family"].to_numpy(), span=SHARE)
        row = {
            "model": model,
            "label": label,
            "prompts": len(group),
            "epochs": n.mean(),
            "unsteady": int(((refused > 0) & (refused < n)).sum()),
            "within": within,
            "between": between,
        }
        rows.append(row | alone("share", share))
    names = ["model", "label", "prompts", "epochs", "unsteady", "within", "between"]
    return pd.DataFrame(rows, columns=[*names, "share", "lower", "upper"])


def _components(sums: Floats) -> tuple[Floats, Floats]:
    """Give the variance within and between prompts.

    Args:
        sums: Over prompts: 1, their verdicts, these squared, their refusals, and these squared by
            the verdicts: (..., 5).
    """
    prompts, n, squares, refused, by_prompt = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        within = (refused - by_prompt) / (n - prompts)
        of_prompts = (by_prompt - refused**2 / n) / (prompts - 1)
        between = np.maximum((of_prompts - within) / ((n - squares / n) / (prompts - 1)), 0.0)
    return within, between


def _share_within(sums: Floats) -> Floats:
    within, between = _components(sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        share: Floats = within / (within + between)
    return share

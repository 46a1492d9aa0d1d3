"""Differences between models, runs and groups of prompts, by one test."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from or_eval.analysis.conditions import conditions
from or_eval.analysis.contrasts import COLUMNS, MORE, Floats, contrasts
from or_eval.analysis.corrections import Corrections, correcting
from or_eval.analysis.exchange import Numbers, Sides
from or_eval.analysis.group_tests import Scored, compare_sides
from or_eval.analysis.logs import FRAMING
from or_eval.analysis.rates import by_prompt, measures_in, prompt_means
from or_eval.analysis.responses import Logs
from or_eval.intervals import family_codes
from or_eval.schema import PLAIN, Label

SHARES = (0.1, 0.25, 0.5, 1.0)
"""How much of the open verdicts is let go against differences."""
ALL_MODELS = "all models"
_LEAST_SPREAD = 4
_SEED = 20250101


def compare_models(responses: pd.DataFrame, found: Corrections | None = None) -> pd.DataFrame:
    """Compare every two models on safe and on toxic prompts, or on all where none has a label.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        found: Corrections of the verdicts, where there are any.

    Returns:
        The rows of :func:`contrasts` for each ``label``, safe ones first.
    """
    parts = []
    for label in measures_in(responses):
        of_label = responses[responses["label"] == label]
        if of_label.empty:
            continue
        table = contrasts(
            prompt_means(of_label),
            by_prompt(responses, "family"),
            corrected=correcting(of_label, found),
        )
        table.insert(0, "label", label.value)
        parts.append(table)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


class Standing(NamedTuple):
    """How many differences are more than chance whichever way open verdicts fall.

    Attributes:
        differences: How many are more than chance by the verdicts as they are.
        stand: How many still are, by the share of uncertain and missing verdicts that goes against
            each; none with larger shares than those given.
    """

    differences: int
    stand: dict[float, int]


def standing(responses: pd.DataFrame, differences: pd.DataFrame) -> Standing:
    """Test differences again with verdicts that go against them.

    The uncertain and missing verdicts of the model that refuses more are taken for answers, those
    of the other for refusals: a random part of them (:data:`SHARES`), or all.

    Args:
        responses: The responses that were compared, to prompts of one label.
        differences: Of :func:`compare_models`, for these.
    """
    families, as_told = by_prompt(responses, "family"), prompt_means(responses)
    place = np.random.default_rng(_SEED).random(len(responses))
    unsure = (responses["refused"].isna() | ~responses["certain"].fillna(True)).to_numpy(bool)
    sure = differences["verdict"] == MORE
    ways = np.where(sure, np.where(differences["difference"] > 0, "down", "up"), "told")
    other = {"down": "up", "up": "down", "told": "told"}
    pairs = [
        ((way, a), (other[way], b))
        for way, a, b in zip(ways.tolist(), differences["a"], differences["b"], strict=True)
    ]

    def left(share: float) -> int:
        taken = unsure & (place < share)
        means = {"told": as_told} | {
            way: prompt_means(responses.assign(refused=responses["refused"].mask(taken, side)))
            for way, side in (("down", False), ("up", True))
        }
        table = contrasts(pd.concat(means, axis=1), families, pairs)
        same = np.sign(table["difference"]) == np.sign(differences["difference"].to_numpy())
        return int((sure.to_numpy() & same & (table["verdict"] == MORE)).sum())

    stand = {}
    for share in SHARES:
        stand[share] = left(share)
        if not stand[share]:
            break
    return Standing(int(sure.sum()), stand)


def compare_groups(responses: pd.DataFrame, column: str) -> pd.DataFrame:
    """Compare groups of prompts within each model: methods, languages, sources, levels.

    Groups of rewrites of the same seeds are compared as such: what the prompts of a family have
    in common cancels. All rows of a label are one question.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        column: Column of the prompt record whose values are compared, every two.

    Returns:
        A row per label, model and pair: ``label``, ``model``, ``a``, ``b``, ``rate_a``,
        ``rate_b``, and what :func:`or_eval.analysis.group_tests.compare_sides` gives.
    """
    parts = []
    for label in measures_in(responses):
        of_label = responses[(responses["label"] == label) & responses[column].notna()]
        means, groups, names = _grouped(of_label, column)
        pairs = list(combinations(range(len(names)), 2))
        if not pairs:
            continue
        rows = [
            {"label": label.value, "model": model, "a": names[a], "b": names[b]}
            for model in means.columns
            for a, b in pairs
        ]
        tested = compare_sides(
            [Scored(means[model].to_numpy(), means[model].to_numpy()) for model in means],
            groups,
            family_codes(by_prompt(responses, "family").reindex(means.index))[0],
            [Sides(a, b) for a, b in pairs],
        )
        parts.append(pd.concat([pd.DataFrame(rows), tested], axis=1))
    columns = ["label", "model", "a", "b", "rate_a", "rate_b", *COLUMNS]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def standing_out(responses: pd.DataFrame, column: str) -> pd.DataFrame:
    """Compare each group of safe prompts with all others, over all models.

    Models are compared with themselves alone: one that refuses much and was asked some categories
    only makes none of these stand out.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        column: Column of the prompt record that groups the prompts, as ``category``.

    Returns:
        A row per group: its name in ``column``, and what
        :func:`or_eval.analysis.group_tests.compare_sides` gives: the difference of its rate from
        that of all other prompts, within models.
    """
    safe = responses[(responses["label"] == Label.SAFE) & responses[column].notna()]
    means, groups, names = _grouped(safe, column)
    tested = compare_sides(
        [_over_models(means.to_numpy(), groups, len(names))],
        groups,
        family_codes(by_prompt(responses, "family").reindex(means.index))[0],
        [Sides(group) for group in range(len(names))],
    )
    return pd.concat([pd.DataFrame({column: names}), tested[list(COLUMNS)]], axis=1)


def _grouped(responses: pd.DataFrame, column: str) -> tuple[pd.DataFrame, Numbers, list[str]]:
    """Give prompts' refused shares, the number of each prompt's group, and the groups' names."""
    means = prompt_means(responses)
    group = by_prompt(responses, column).reindex(means.index)
    numbers, names = pd.factorize(group, sort=True)
    return means, numbers.astype(np.int64), [str(name) for name in names]


def _over_models(values: Floats, groups: Numbers, count: int) -> Scored:
    """Put several models' shares of prompts into one score.

    It is how far they are, together, from each model's own mean, in standard deviations for that
    set of models: a prompt that fewer were asked is no surer for it.
    """
    asked = ~np.isnan(values)
    in_groups = np.array([asked[groups == group].sum(axis=0) for group in range(count)])
    asked &= (in_groups > 0).sum(axis=0) > 1  # one group alone tells of no difference
    filled, of_model = np.where(asked, values, 0.0), np.maximum(asked.sum(axis=0), 1)
    apart = np.where(asked, filled - filled.sum(axis=0) / of_model, 0.0)
    together = asked.T.astype(np.float64) @ asked
    alike = (apart.T @ apart) / np.maximum(together, 1)
    variance = np.einsum("im,mn,in->i", asked, alike, asked)
    least = (asked * np.diag(alike)).max(axis=1) / _LEAST_SPREAD
    spread = np.sqrt(np.maximum(variance, least))
    spread = np.where(spread > 0, spread, 1.0)
    known = asked.any(axis=1)
    moved = np.column_stack(
        [
            (asked * ((groups == group)[:, None] - in_groups[group] / of_model)).sum(axis=1)
            for group in range(count)
        ]
    )
    shares = filled.sum(axis=1) / np.maximum(asked.sum(axis=1), 1)
    # Groups that other models were asked about can't be exchanged, however the scores are centred.
    models_of_group = (in_groups > 0) & ((in_groups > 0).sum(axis=0) > 1)
    sets = np.unique(models_of_group, axis=0, return_inverse=True)[1].ravel()
    scores = np.where(known, apart.sum(axis=1) / spread, np.nan)
    return Scored(scores, shares, moved / spread[:, None], sets[groups].astype(np.int64))


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
        :func:`or_eval.analysis.contrasts.contrasts` gives. Nothing where no two runs differ
        in one factor alone.
    """
    known = conditions(logs.heads)
    names = ["label", "model", "factor", "a", "b", "settings", "rate_a", "rate_b", *COLUMNS]
    parts = []
    for label in measures_in(logs.responses):
        of_label = logs.responses[logs.responses["label"] == label]
        means = prompt_means(of_label)
        rows: list[dict[str, Any]] = []
        sides: list[list[str]] = []
        for row, cells in _of_factors(known.reindex(means.columns)):
            one, other = ([cell[side] for cell in cells] for side in (0, 1))
            if means[[*one, *other]].notna().all(axis=1).any():
                rows.append({"label": label.value, **row})
                sides += [one, other]
        if rows:
            columns = {at: means[runs].to_numpy().mean(axis=1) for at, runs in enumerate(sides)}
            corrected = correcting(of_label, found, dict(enumerate(sides)))
            tested = contrasts(
                pd.DataFrame(columns, means.index),
                by_prompt(of_label, "family"),
                [(at, at + 1) for at in range(0, len(sides), 2)],
                corrected=corrected,
            )
            tested = tested.drop(columns=["a", "b", "n"])
            parts.append(pd.concat([pd.DataFrame(rows), tested], axis=1)[names])
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names)


def _of_factors(known: pd.DataFrame) -> list[tuple[dict[str, Any], Sequence[tuple[str, str]]]]:
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

"""Differences between models, runs and groups of prompts, by one test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from or_eval.analysis.corrections import Corrected, Corrections, corrected_mean
from or_eval.analysis.families import families_by_id
from or_eval.analysis.group_tests import Numbers, Scored, Sides, compare_sides
from or_eval.analysis.paired_tests import COLUMNS, MORE, Contrast, Floats, compare_all, paired
from or_eval.analysis.rates import measures_in, prompt_means
from or_eval.intervals import family_codes, normal_quantile
from or_eval.schema import Label

SHARES = (0.1, 0.25, 0.5, 1.0)
"""How much of the open verdicts is let go against differences."""
_LEAST_SPREAD = 4
_SEED = 20250101


def compare_columns(
    means: pd.DataFrame,
    families: pd.Series[str],
    pairs: Sequence[tuple[Any, Any]] | None = None,
    *,
    corrected: Callable[[Any, pd.Index[Any]], Corrected] | None = None,
) -> pd.DataFrame:
    """Compare columns of per-prompt means, each pair on the prompts that both have.

    All pairs are one question: p-values and intervals allow for their number
    (:func:`or_eval.analysis.paired_tests.compare_all`).

    Args:
        means: A row per prompt id, a column per model or run: the refused share of the responses
            to the prompt (:func:`or_eval.analysis.rates.prompt_means`), missing where none has a
            verdict.
        families: Family of each prompt, by id.
        pairs: Columns to compare; every two by default.
        corrected: Gives the correction of a column's mean over some of the prompts.

    Returns:
        A row per pair of columns: ``a``, ``b``, ``n`` (prompts that both have), ``families``,
        ``rate_a``, ``rate_b``, ``difference`` (``rate_a - rate_b``) with ``lower`` and ``upper``,
        ``a_more`` and ``b_more`` (prompts that one refused more often than the other), ``p`` and
        ``verdict``.

    Raises:
        ValueError: A prompt has no family.
    """
    of = families.reindex(means.index)
    if of.isna().any():
        raise ValueError(f"no family for prompt {of.index[of.isna()][0]!r}: index them by its id")
    chosen = list(combinations(means.columns, 2)) if pairs is None else list(pairs)
    values = {name: means[name].to_numpy(np.float64, na_value=np.nan) for name in means}
    rows, contrasts = [], []
    for a, b in chosen:
        one, other = values[a], values[b]
        both = ~np.isnan(one) & ~np.isnan(other)
        contrast, shift_a, shift_b = paired(one, other), 0.0, 0.0
        if corrected is not None and both.any():
            of_a, of_b = corrected(a, means.index[both]), corrected(b, means.index[both])
            contrast = shifted(contrast, of_a, of_b)
            shift_a, shift_b = of_a.shift, of_b.shift
        contrasts.append(contrast)
        rows.append(
            {
                "a": a,
                "b": b,
                "n": int(both.sum()),
                "rate_a": one[both].mean() + shift_a if both.any() else np.nan,
                "rate_b": other[both].mean() + shift_b if both.any() else np.nan,
                "a_more": int((one[both] > other[both]).sum()),
                "b_more": int((one[both] < other[both]).sum()),
            }
        )
    names = ["a", "b", "n", "rate_a", "rate_b", "a_more", "b_more"]
    tested = compare_all(contrasts, of)
    table = pd.concat([pd.DataFrame(rows, columns=names), tested], axis=1)
    order = ["a", "b", "n", "families", "rate_a", "rate_b", "difference", "lower", "upper"]
    return table[[*order, "a_more", "b_more", "p", "verdict"]]


def shifted(contrast: Contrast, one: Corrected, other: Corrected, part: float = 1.0) -> Contrast:
    """Correct a difference by what is known of its two sides, ``part`` of it being of them.

    The squares of how far each bound lies from its rate add up (Zou and Donner, 2008).
    """
    ends = (one.estimate, other.estimate) if part > 0 else (other.estimate, one.estimate)
    below, above = (
        (part * np.hypot(high.value - high.lower, low.upper - low.value) / normal_quantile()) ** 2
        for high, low in (ends, ends[::-1])
    )
    return contrast._replace(
        difference=contrast.difference + part * (one.shift - other.shift),
        below=contrast.below + below,
        above=contrast.above + above,
    )


def correcting(
    responses: pd.DataFrame, found: Corrections | None
) -> Callable[[Any, pd.Index[Any]], Corrected] | None:
    """Give what corrects a model's mean over some of its prompts; None without corrections."""
    if found is None:
        return None
    of_model = dict(list(responses.groupby("model")))

    def corrected(model: Any, ids: pd.Index[Any]) -> Corrected:
        rows = of_model[model]
        return corrected_mean(rows[rows["id"].isin(ids)], found)

    return corrected


def compare_models(responses: pd.DataFrame, found: Corrections | None = None) -> pd.DataFrame:
    """Compare every two models on safe and on toxic prompts, or on all where none has a label.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        found: Corrections of the verdicts, where there are any.

    Returns:
        The rows of :func:`compare_columns` for each ``label``, safe ones first.
    """
    parts = []
    for label in measures_in(responses):
        of_label = responses[responses["label"] == label]
        if of_label.empty:
            continue
        table = compare_columns(
            prompt_means(of_label),
            families_by_id(responses),
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
    families, as_told = families_by_id(responses), prompt_means(responses)
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
        table = compare_columns(pd.concat(means, axis=1), families, pairs)
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
            family_codes(families_by_id(responses).reindex(means.index))[0],
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
        family_codes(families_by_id(responses).reindex(means.index))[0],
        [Sides(group) for group in range(len(names))],
    )
    return pd.concat([pd.DataFrame({column: names}), tested[list(COLUMNS)]], axis=1)


def _grouped(responses: pd.DataFrame, column: str) -> tuple[pd.DataFrame, Numbers, list[str]]:
    """Give prompts' refused shares, the number of each prompt's group, and the groups' names."""
    means = prompt_means(responses)
    group = responses.drop_duplicates("id").set_index("id")[column].reindex(means.index)
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

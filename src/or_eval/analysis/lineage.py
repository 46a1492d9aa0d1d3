"""What each step from base prompt to rewrite adds to refusal, and each language."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from or_eval.analysis.families import prompt_families
from or_eval.analysis.paired_tests import COLUMNS, compare_all, paired
from or_eval.analysis.rates import measures_in, prompt_means

EXPAND = "expand"
"""Method of seed prompts, which were expanded from base prompts."""

TRANSLATION = "translation"
"""Method of prompts that are of the level of what they were translated from."""


class Level(StrEnum):
    """How far a prompt is from the one that its lineage begins with."""

    BASE = "base"
    SEED = "seed"
    REWRITE = "rewrite"


class Step(StrEnum):
    """What the two sides of a comparison differ in; all else of their prompts is alike."""

    LEVEL = "level"
    METHOD = "method"
    LANGUAGE = "language"


OTHER_METHODS = "other methods"
"""What a method is compared with where the seed prompts weren't asked."""


def levels(prompts: pd.DataFrame) -> pd.Series[str]:
    """Give each prompt's level.

    A base prompt has no method and no seed, a seed prompt the method ``expand``, and a translation
    the level of what it was translated from; all others are rewrites.

    Args:
        prompts: Frame by prompt id with ``method`` and ``seed_id``.
    """
    method, seed = prompts["method"], prompts["seed_id"]
    found = pd.Series(Level.REWRITE.value, index=prompts.index, name="level")
    found[method.isna() & seed.isna()] = Level.BASE.value
    found[method == EXPAND] = Level.SEED.value
    translated = (method == TRANSLATION) & seed.isin(found.index)
    found[translated] = found.reindex(seed[translated]).to_numpy()
    return found


def lineage_effects(responses: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """Compare prompts that have their seed in common and differ in one step.

    - ``level``: seed prompts with their base prompts, and rewrites with their seed prompts, pair
      by pair and in one language.
    - ``method``: rewrites by one method with their seed prompts; or, where these weren't asked,
      with the mean of the other methods' rewrites of the same seed.
    - ``language``: prompts of one family, level and method in two languages.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        prompts: Its frame of prompts.

    Returns:
        A row per label, model and comparison: ``label``, ``model``, ``step``, ``a``, ``b``,
        ``n`` (matched prompts, or groups of them), ``rate_a``, ``rate_b``, and what
        :func:`or_eval.analysis.paired_tests.compare_all` gives: the difference is what ``a`` adds
        to ``b``.
    """
    known = prompts.assign(level=levels(prompts), family=prompt_families(prompts))
    parts = []
    for label in measures_in(responses):
        means = prompt_means(responses[responses["label"] == label])
        asked = known.loc[known.index.intersection(means.index)]
        found = [
            (str(model), comparison)
            for model in means.columns
            for comparison in _comparisons(asked.assign(value=means[model].reindex(asked.index)))
        ]
        if not found:
            continue
        families = pd.concat([comparison.matches["family"] for _, comparison in found])
        families = families[~families.index.duplicated()]
        contrasts = [
            paired(*comparison.matches[["one", "other"]].reindex(families.index).to_numpy().T)
            for _, comparison in found
        ]
        rows = [{"label": label.value, "model": model, **c.row} for model, c in found]
        tested = compare_all(contrasts, families, cautious=True)
        parts.append(pd.concat([pd.DataFrame(rows), tested], axis=1))
    names = ["label", "model", "step", "a", "b", "n", "rate_a", "rate_b", *COLUMNS]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names)


class _Comparison(NamedTuple):
    """What is compared, and the matched values: ``one``, ``other`` and ``family`` of each match."""

    row: dict[str, Any]
    matches: pd.DataFrame


def _comparisons(prompts: pd.DataFrame) -> Iterator[_Comparison]:
    prompts = prompts[prompts["value"].notna()]
    origins = prompts[["value", "level", "language"]]
    origins = origins.add_suffix("_of_origin")
    made = prompts.join(origins, on="seed_id")
    made = made[made["language"] == made["language_of_origin"]]
    made = made.rename(columns={"value": "one", "value_of_origin": "other"})
    seeds = made[(made["level"] == Level.SEED) & (made["level_of_origin"] == Level.BASE)]
    rewrites = made[(made["level"] == Level.REWRITE) & (made["level_of_origin"] == Level.SEED)]
    yield from _compared(seeds, Step.LEVEL, Level.SEED, Level.BASE)
    yield from _compared(rewrites, Step.LEVEL, Level.REWRITE, Level.SEED)
    for method, rows in rewrites.groupby("method", sort=True):
        yield from _compared(rows, Step.METHOD, str(method), Level.SEED)
    if rewrites.empty:
        yield from _between_methods(prompts[prompts["level"] == Level.REWRITE])
    yield from _between_languages(prompts)


def _compared(matches: pd.DataFrame, step: Step, a: str, b: str) -> Iterator[_Comparison]:
    if len(matches):
        rates = {"rate_a": matches["one"].mean(), "rate_b": matches["other"].mean()}
        row = {"step": step.value, "a": str(a), "b": str(b), "n": len(matches), **rates}
        yield _Comparison(row, matches[["one", "other", "family"]])


def _between_methods(rewrites: pd.DataFrame) -> Iterator[_Comparison]:
    """Compare each method with the others on the same seed and language."""
    table = _by_place(rewrites, ["seed_id", "language"], "method")
    for method in table.columns:
        others = table.drop(columns=method).mean(axis=1)
        yield from _compared(_both(table[method], others), Step.METHOD, str(method), OTHER_METHODS)


def _between_languages(prompts: pd.DataFrame) -> Iterator[_Comparison]:
    filled = prompts.assign(method=prompts["method"].fillna(""))
    table = _by_place(filled, ["level", "method"], "language")
    for one, other in combinations(table.columns, 2):
        yield from _compared(_both(table[other], table[one]), Step.LANGUAGE, str(other), str(one))


def _by_place(prompts: pd.DataFrame, place: list[str], across: str) -> pd.DataFrame:
    return prompts.pivot_table(index=["family", *place], columns=across, values="value")


def _both(one: pd.Series[float], other: pd.Series[float]) -> pd.DataFrame:
    """Give the matches that have both values, each under a name of its own."""
    both = pd.DataFrame({"one": one, "other": other}).dropna()
    family = both.index.get_level_values("family")
    return both.assign(family=family).set_axis([repr(place) for place in both.index])

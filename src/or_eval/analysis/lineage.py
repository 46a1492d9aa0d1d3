"""What each step from base prompt to rewrite adds to refusal, and each language."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import combinations
from math import sqrt
from typing import Any, NamedTuple

import pandas as pd

from or_eval.analysis.contrasts import COLUMNS, contrasts
from or_eval.analysis.prompt_texts import choosers
from or_eval.analysis.rates import measures_in, prompt_means
from or_eval.analysis.responses import Logs
from or_eval.analysis.samples import whole_meta

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

CHOSE = "biased: it helped to choose the base prompts"
"""Verdict where a model's own refusals chose the base prompts: these were partly refused by chance,
so that their seed prompts are refused less often whatever expansion does."""


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
    return _as_translated(found, prompts)


def _as_translated(values: pd.Series[str], prompts: pd.DataFrame) -> pd.Series[str]:
    """Give translations the value of what they were translated from."""
    seed = prompts["seed_id"]
    translated = (prompts["method"] == TRANSLATION) & seed.isin(values.index)
    return values.mask(translated, values.reindex(seed).set_axis(values.index))


def lineage_effects(logs: Logs) -> pd.DataFrame:
    """Compare prompts that have their seed in common and differ in one step.

    - ``level``: seed prompts with their base prompts, and rewrites with their seed prompts, pair
      by pair and in one language.
    - ``method``: rewrites by one method with their seed prompts; or, where these weren't asked,
      with the mean of the other methods' rewrites of the same seed.
    - ``language``: prompts of one family, level and method in two languages.

    Args:
        logs: The frames of logs.

    Returns:
        A row per label, model and comparison: ``label``, ``model``, ``step``, ``a``, ``b``,
        ``n`` (matched prompts, or groups of them), ``rate_a``, ``rate_b``, and what
        :func:`or_eval.analysis.contrasts.contrasts` gives: the difference is what ``a`` adds
        to ``b``. Seed prompts aren't compared with base prompts that the model helped to choose
        (:data:`CHOSE`).
    """
    responses, prompts = logs.responses, logs.prompts
    known = prompts.assign(level=levels(prompts))
    chosen_by = _choosers(known, responses)
    parts = []
    for label in measures_in(responses):
        means = prompt_means(responses[responses["label"] == label])
        asked = known.loc[known.index.intersection(means.index)]
        found = [
            (str(model), comparison)
            for model in means.columns
            for comparison in _comparisons(
                asked.assign(
                    value=means[model].reindex(asked.index),
                    chosen=_chosen(asked, chosen_by, str(model)),
                )
            )
        ]
        if not found:
            continue
        families = pd.concat([comparison.matches["family"] for _, comparison in found])
        families = families[~families.index.duplicated()]
        sides = [comparison.values().reindex(families.index) for _, comparison in found]
        tested = contrasts(
            pd.concat(sides, axis=1, ignore_index=True),
            families,
            [(at, at + 1) for at in range(0, 2 * len(sides), 2)],
            floors=[comparison.floor for _, comparison in found],
            cautious=True,
        )[list(COLUMNS)]
        rows = [{"label": label.value, "model": model, **c.row} for model, c in found]
        tested.loc[[comparison.biased for _, comparison in found], "verdict"] = CHOSE
        parts.append(pd.concat([pd.DataFrame(rows), tested], axis=1))
    names = ["label", "model", "step", "a", "b", "n", "rate_a", "rate_b", *COLUMNS]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names)


class _Comparison(NamedTuple):
    """What is compared.

    Attributes:
        row: What the table says of it.
        matches: The matched values: ``one``, ``other`` and ``family`` of each match.
        biased: Whether the model's own refusals chose one side of it.
        floor: Least standard error of its difference, where prompts stand against means of many.
    """

    row: dict[str, Any]
    matches: pd.DataFrame
    biased: bool = False
    floor: float = 0.0

    def values(self) -> pd.DataFrame:
        """Give the two sides of each match; nothing where a test would say what isn't so."""
        sides = self.matches[["one", "other"]]
        return sides.iloc[:0] if self.biased else sides


def _choosers(prompts: pd.DataFrame, responses: pd.DataFrame) -> dict[str, frozenset[str]]:
    """Give the models whose votes chose the base prompts of each family.

    What was written from a base prompt tells of them as well: the log of the test by which it was
    chosen was made before the choice.
    """
    told = prompts[(prompts["level"] != Level.REWRITE) & prompts["family"].duplicated(keep=False)]
    found: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for family, meta in zip(told["family"], whole_meta(responses, told), strict=True):
        found[family] |= choosers(meta)
    return found


def _chosen(
    prompts: pd.DataFrame, chosen_by: Mapping[str, frozenset[str]], model: str
) -> pd.Series[bool]:
    """Tell which are base prompts that a model helped to choose, whatever its condition."""
    name = model.partition(" (")[0]
    by_model = prompts["family"].map(lambda family: name in chosen_by[family])
    return by_model.astype(bool) & (prompts["level"] == Level.BASE)


def _comparisons(prompts: pd.DataFrame) -> Iterator[_Comparison]:
    prompts = prompts[prompts["value"].notna()]
    origins = prompts[["value", "level", "language", "chosen"]]
    origins = origins.add_suffix("_of_origin")
    made = prompts.join(origins, on="seed_id")
    made = made[made["language"] == made["language_of_origin"]]
    made = made.rename(columns={"value": "one", "value_of_origin": "other"})
    seeds = made[(made["level"] == Level.SEED) & (made["level_of_origin"] == Level.BASE)]
    rewrites = made[(made["level"] == Level.REWRITE) & (made["level_of_origin"] == Level.SEED)]
    biased = bool(seeds["chosen_of_origin"].any())
    yield from _compared(seeds, Step.LEVEL, Level.SEED, Level.BASE, biased)
    for comparison in _compared(rewrites, Step.LEVEL, Level.REWRITE, Level.SEED):
        origins_asked = rewrites.groupby("seed_id")["other"].first()
        yield comparison._replace(floor=_binomial_error(rewrites["one"], origins_asked))
    for method, rows in rewrites.groupby("method", sort=True):
        yield from _compared(rows, Step.METHOD, str(method), Level.SEED)
    if rewrites.empty:
        yield from _between_methods(prompts[prompts["level"] == Level.REWRITE])
    yield from _between_languages(prompts[~prompts["chosen"]])


def _compared(
    matches: pd.DataFrame, step: Step, a: str, b: str, biased: bool = False
) -> Iterator[_Comparison]:
    if len(matches):
        rates = {"rate_a": matches["one"].mean(), "rate_b": matches["other"].mean()}
        row = {"step": step.value, "a": str(a), "b": str(b), "n": len(matches), **rates}
        yield _Comparison(row, matches[["one", "other", "family"]], biased)


def _binomial_error(one: pd.Series[float], other: pd.Series[float]) -> float:
    """Give the standard error of a difference of two rates of prompts that are refused alike."""
    rate = pd.concat([one, other]).mean()
    return float(sqrt(rate * (1 - rate) * (1 / len(one) + 1 / len(other))))


def _between_methods(rewrites: pd.DataFrame) -> Iterator[_Comparison]:
    """Compare each method with the others on the same seed and language."""
    table = _by_place(rewrites, ["seed_id", "language"], "method")
    for method in table.columns:
        others = table.drop(columns=method).mean(axis=1)
        yield from _compared(_both(table[method], others), Step.METHOD, str(method), OTHER_METHODS)


def _between_languages(prompts: pd.DataFrame) -> Iterator[_Comparison]:
    method = _as_translated(prompts["method"], prompts).fillna("")
    table = _by_place(prompts.assign(method=method), ["level", "method"], "language")
    for one, other in combinations(table.columns, 2):
        yield from _compared(_both(table[other], table[one]), Step.LANGUAGE, str(other), str(one))


def _by_place(prompts: pd.DataFrame, place: list[str], across: str) -> pd.DataFrame:
    return prompts.pivot_table(index=["family", *place], columns=across, values="value")


def _both(one: pd.Series[float], other: pd.Series[float]) -> pd.DataFrame:
    """Give the matches that have both values, each under a name of its own."""
    both = pd.DataFrame({"one": one, "other": other}).dropna()
    family = both.index.get_level_values("family")
    return both.assign(family=family).set_axis([repr(place) for place in both.index])

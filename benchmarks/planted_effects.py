"""Do comparisons and regression find what really raises refusal, and nothing else?

Simulates models that answer base prompts, seed prompts and rewrites in families, and counts how
often anything is called more than chance: in worlds where nothing raises refusal (nulls), and in
worlds where one rewriting method and one measure do.

    python benchmarks/planted_effects.py --worlds 2000

Of 200 worlds between 2 and 8 in a hundred err where 5 do in the long run, so it takes more to tell:
beside each share stand the counts of its blocks of 200.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import NamedTuple

import numpy as np
import pandas as pd

from or_eval.analysis.contrasts import MORE
from or_eval.analysis.lineage import Level, Step, lineage_effects
from or_eval.analysis.responses import Logs
from or_eval.analysis.structure.measures import MEASURES
from or_eval.analysis.structure.refusal_effects import samples, structure_effects
from or_eval.intervals import wilson

METHODS = [f"method_{number}" for number in range(8)]
LANGUAGES = ["en", "zh", "zh+en"]
CATEGORIES = 15
MODELS = 3
BLOCK = 200
PLANTED_METHOD, PLANTED_MEASURE = METHODS[3], "subordinate_clauses"
METHOD_EFFECT, MEASURE_EFFECT = 1.0, 0.4
"""In log odds: by the method, and by a standard deviation of the measure."""
LOG_ODDS = -1.4
"""Mean log odds of a refusal: three in ten prompts are refused."""


class World(NamedTuple):
    """Prompts, their measures, and models' refusals of them."""

    responses: pd.DataFrame
    prompts: pd.DataFrame
    values: pd.DataFrame


def world(
    seed: int, families: int, *, planted: bool, log_odds: float = LOG_ODDS, skewed: float = 0.0
) -> World:
    """Simulate a world: families differ in how often they are refused, and in their structure.

    Measures are normal, or lognormal with ``skewed``, the standard deviation of their logarithms.
    """
    random = np.random.default_rng(seed)
    prompts = lineage(families)
    family = prompts["family"].to_numpy()
    values = structure(prompts, random)
    if skewed:
        numbers = values[list(MEASURES)]
        values[list(MEASURES)] = np.exp(skewed * (numbers - numbers.mean()) / numbers.std())
    standard = values.groupby("language")[PLANTED_MEASURE].transform(
        lambda x: (x - x.mean()) / x.std()
    )
    category_effects = random.normal(scale=0.6, size=CATEGORIES)
    parts = []
    for model in range(MODELS):
        odds = random.normal(log_odds, 0.5) + category_effects[family % CATEGORIES]
        odds += random.normal(scale=1.0, size=families)[family]
        if planted:
            odds += METHOD_EFFECT * (prompts["method"] == PLANTED_METHOD).to_numpy()
            odds += MEASURE_EFFECT * standard.to_numpy()
        refused = random.random(len(prompts)) < 1 / (1 + np.exp(-odds))
        parts.append(prompts.reset_index().assign(model=f"model {model}", refused=refused, log=""))
    responses = pd.concat(parts, ignore_index=True).astype({"refused": "boolean"})
    responses["own_family"] = responses["family"]
    return World(responses, prompts, values)


def lineage(families: int) -> pd.DataFrame:
    """Lay out base prompts in English, seed prompts and rewrites in three languages."""
    rows = []
    for family in range(families):
        base = f"{family}"
        rows.append((base, family, "en", None, None))
        for language in LANGUAGES:
            seed = f"{base}/{language}"
            rows.append((seed, family, language, "expand", base))
            rows += [(f"{seed}/{name}", family, language, name, seed) for name in METHODS]
    frame = pd.DataFrame(rows, columns=["id", "family", "language", "method", "seed_id"])
    frame = frame.astype({"method": "str", "seed_id": "str"})
    category = [f"category {family % CATEGORIES}" for family in frame["family"]]
    frame = frame.assign(category=category, label="safe", pair_id=None, meta=None)
    return frame.set_index("id")


def structure(prompts: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    """Make measures that are alike within a family and go with each other, as length makes them."""
    family = prompts["family"].to_numpy()
    count = int(family.max()) + 1
    length = random.normal(size=count)[family] + random.normal(size=len(prompts))
    columns = {
        name: 0.6 * length
        + 0.6 * random.normal(size=count)[family]
        + random.normal(size=len(prompts))
        for name in MEASURES
    }
    return pd.DataFrame(columns, index=prompts.index).assign(language=prompts["language"])


class Found(NamedTuple):
    """What was called more than chance in a world.

    ``planted_method`` and ``planted_measure`` are shares of the models; the next four say whether
    anything else was, in the comparisons along the lineage, and of each effect of structure and of
    both.
    """

    planted_method: float
    planted_measure: float
    false_lineage: bool
    false_alone: bool
    false_adjusted: bool
    false_structure: bool


def found(of: World, *, planted: bool) -> Found:
    """Count what is called more than chance."""
    lineage_table = lineage_effects(Logs([], of.prompts, of.responses, []))
    told = lineage_table[lineage_table["verdict"] == MORE]
    methods = told[(told["step"] == Step.METHOD) & (told["a"] == PLANTED_METHOD)]
    # rewrites by a method that raises refusal raise that of all rewrites
    expected = methods.index.union(told[told["a"] == Level.REWRITE].index) if planted else []
    sample = samples(of.responses, of.prompts, of.values)
    effects = structure_effects(sample)
    sure = effects[effects["verdict"] == MORE]
    measures = sure[(sure["measure"] == PLANTED_MEASURE) & planted]
    wrong = sure.drop(measures.index)
    # alone, whatever goes with the planted measure is more than chance, and rightly so
    return Found(
        len(methods) / MODELS,
        (measures["effect"] == "adjusted").sum() / MODELS,
        len(told.drop(expected)) > 0,
        bool((wrong["effect"] == "alone").any()),
        bool((wrong["effect"] == "adjusted").any()),
        len(wrong) > 0,
    )


def main() -> int:
    """Print how often what is found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=200, help="where nothing raises refusal")
    parser.add_argument("--planted", type=int, default=100, help="where something does")
    parser.add_argument("--families", type=int, default=75)
    parser.add_argument("--log-odds", type=float, default=LOG_ODDS, help="of a refusal, on average")
    parser.add_argument("--skewed", type=float, default=0.0, help="lognormal measures, as lengths")
    parser.add_argument("--first", type=int, default=0, help="number of the first world")
    options = parser.parse_args()
    too_many = False
    for planted, count in ((False, options.worlds), (True, options.planted)):
        start, first = time.monotonic(), options.first + 10_000 * planted
        results = pd.DataFrame(
            found(
                world(
                    seed,
                    options.families,
                    planted=planted,
                    log_odds=options.log_odds,
                    skewed=options.skewed,
                ),
                planted=planted,
            )
            for seed in range(first, first + count)
        )
        kind, seconds = "planted" if planted else "nulls", time.monotonic() - start
        print(f"{count} {kind}, {options.families} families, {seconds:.0f} s", flush=True)
        shares = results.astype(float).mean()
        for name, share in shares.items():
            between = wilson(share, count)
            said = f"({100 * between.lower:.1f} to {100 * between.upper:.1f})"
            blocks = results[name].groupby(np.arange(count) // BLOCK).sum()
            counts = [] if planted or count <= BLOCK else [f"{block:.0f}" for block in blocks]
            print(f"{name:16} {100 * share:5.1f} {said}", *counts, flush=True)
            too_many |= not planted and str(name).startswith("false") and between.lower > 0.05
    return int(too_many)


if __name__ == "__main__":
    sys.exit(main())

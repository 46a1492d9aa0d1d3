"""Do the intervals cover, and is "more than chance" said of equal models? ``docs/analysis.md``.

    python benchmarks/coverage.py [--runs 1000] [rates unequal macro differences power design]

Each model refuses each family of prompts with a chance of its own (:mod:`worlds`), drawn so that
two prompts of a family agree by the intra-family correlation (ICC). Families differ for each model,
the worst case for a comparison. ``unequal`` is ``rates`` where families are of unequal sizes, or
few; ``macro`` is the mean over categories. ``design`` finds the difference that so many prompts
show four times in five, and counts in
runs of its own how often they do.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from or_eval.analysis.contrasts import MORE, contrasts
from or_eval.analysis.rates import macro_interval
from or_eval.intervals import rate_interval, wilson
from worlds import World, unequal

Floats = NDArray[np.float64]

RATES, RAISED = (0.01, 0.05, 0.3), {0.01: 0.05, 0.05: 0.15, 0.3: 0.45}
"""Rates of models, and what one's is where it differs from the others'."""
ALL_RATES = (0.01, 0.05, 0.5, 0.95, 0.99)
SIZES = ((10, 20), (30, 10), (250, 1))
WORLDS = [
    World(*size, icc, epochs)
    for size, icc, epochs in product(SIZES, (0.0, 0.3, 0.5), (1, 4, 5))
    if size[1] > 1 or icc == 0  # prompts without families can't resemble each other within one
]
UNEQUAL = [
    World(*sizes, icc)
    for sizes, icc in product(
        (
            *((2, 50), (5, 20), (10, 20), (50, 5)),
            unequal(200, *[1] * 50),
            unequal(80, 40, 20, 20, 10, 10, 5, 5, 5, 5),
            unequal(60, 40, 30, 20, *[10] * 6, *[2] * 40),
        ),
        (0.0, 0.1, 0.3, 0.8),
    )
]
DESIGNS = ((50, 1), (100, 1), (250, 1), (1000, 1), (10, 20), (30, 10), (100, 10))
CATEGORIES = (
    *(((25,) * 10, 1, 0.0), ((200, *[10] * 9), 1, 0.0), ((100, 50, 25, 10, 5), 1, 0.0)),
    *(((3,) * 10, 10, 0.3), ((10,) * 5, 8, 0.3), ((60, 5, 5, 5), 5, 0.3), ((200, 3, 3), 1, 0.0)),
)
"""Families of each category, their prompts, and how far these agree."""
COVERED, CALLED, POWER = (0.93, 0.97), (0.0, 0.06), 0.8
"""Between what coverage and the error of "more than chance" are to lie; and what designs aim at."""
_HALVINGS = 12


class Held(NamedTuple):
    """How often the interval of a rate holds it, how often it is beneath and above, its width."""

    covered: float
    beneath: float
    above: float
    width: float


class Errors(NamedTuple):
    """What a comparison of models gets wrong.

    Attributes:
        covered: Share of runs in which every interval holds its difference.
        called: Share of runs in which equal models are said to differ.
        pushed: Share of runs in which one of the best models isn't ranked first.
        power: Share of the real differences that are said to be more than chance.
        mcnemar: Share that McNemar's exact test with Holm's correction finds.
        width: Mean width of the intervals.
        beyond: Share of runs in which a model is said to be no worse, or no better, by a margin
            that is its true difference.
    """

    covered: float
    called: float
    pushed: float
    power: float
    mcnemar: float
    width: float
    beyond: float


def rate_errors(world: World, rate: float, runs: int, seed: int = 1) -> Held:
    """Hold a rate against its interval run after run."""
    random, families = np.random.default_rng(seed), world.family_of
    found = np.zeros(3)
    for _ in range(runs):
        _, lower, upper = rate_interval(world.prompt_means(rate, random), families)
        found += rate < lower, rate > upper, upper - lower
    beneath, above, width = (float(one) for one in found / runs)
    return Held(1 - beneath - above, beneath, above, width)


def macro_errors(worlds: Sequence[World], rates: Sequence[float], runs: int, seed: int = 1) -> Held:
    """Hold the mean of categories' rates against its interval run after run."""
    random, truth, found = np.random.default_rng(seed), float(np.mean(rates)), np.zeros(3)
    groups = np.repeat(np.arange(len(worlds)), [len(world.family_of) for world in worlds])
    families = np.concatenate([world.family_of for world in worlds]) + 1000 * groups
    for _ in range(runs):
        drawn = [of.prompt_means(rate, random) for of, rate in zip(worlds, rates, strict=True)]
        _, lower, upper = macro_interval(np.concatenate(drawn), families, groups)
        found += truth < lower, truth > upper, upper - lower
    beneath, above, width = (float(one) for one in found / runs)
    return Held(1 - beneath - above, beneath, above, width)


def comparison_errors(
    world: World, rates: tuple[float, ...], runs: int, seed: int = 1, mcnemar: bool = False
) -> Errors:
    """Compare models of these rates run after run."""
    random = np.random.default_rng(seed)
    families = pd.Series(world.family_of)
    pairs = list(combinations(range(len(rates)), 2))
    truth = np.array([rates[a] - rates[b] for a, b in pairs])
    same, best = truth == 0, [model for model, rate in enumerate(rates) if rate == min(rates)]
    found = []
    for _ in range(runs):
        means = np.column_stack([world.prompt_means(rate, random) for rate in rates])
        table = contrasts(pd.DataFrame(means), families)
        sure = (table["verdict"] == MORE).to_numpy()
        covered = (table["lower"] - 1e-9 <= truth) & (truth <= table["upper"] + 1e-9)
        worse = {
            (a if difference > 0 else b)
            for (a, b), difference, is_sure in zip(pairs, table["difference"], sure, strict=True)
            if is_sure
        }
        by_mcnemar = _mcnemar_holm(means, pairs) < 0.05 if mcnemar else sure
        found.append(
            (
                covered.all(),
                (sure & same).any(),
                not worse.isdisjoint(best),
                sure[~same].mean() if not same.all() else np.nan,
                by_mcnemar[~same].mean() if not same.all() else np.nan,
                (table["upper"] - table["lower"]).mean(),
                ((table["alike_within_upper"] < truth - 1e-9).any()),
                ((table["alike_within_lower"] > truth + 1e-9).any()),
            )
        )
    *shares, worse, better = np.mean(np.array(found, dtype=np.float64), axis=0)
    return Errors(*shares, max(worse, better))


def _mcnemar_holm(values: Floats, pairs: list[tuple[int, int]]) -> Floats:
    one, other = values.T[np.array(pairs).T]
    more, less = (one > other).sum(axis=1), (one < other).sum(axis=1)
    p = np.minimum(2 * stats.binom.cdf(np.minimum(more, less), more + less, 0.5), 1)
    order = np.argsort(p)
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return corrected


def smallest_found(world: World, rate: float, models: int, runs: int) -> tuple[float, float]:
    """Find the difference that the test shows four times in five, if one model refuses more.

    Returns:
        The difference, and how often the test shows it in runs that it wasn't chosen by.
    """

    def power(difference: float, seed: int) -> float:
        rates = (rate + difference, *(rate,) * (models - 1))
        return comparison_errors(world, rates, runs, seed).power

    low, high = 0.0, 1 - rate
    for step in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle, 10 + step) > POWER else (middle, high)
    difference = round((low + high) / 2, 3)
    return difference, power(difference, 1)


def _print_rates(runs: int, of: Sequence[World] = WORLDS, rates: Sequence[float] = RATES) -> None:
    print(
        "\nCoverage of a rate's interval (%), how often the rate is beneath + above it; its width"
    )
    _head(["families", "ICC", "epochs"], [f"rate {rate}" for rate in rates])
    for world in of:
        found = [rate_errors(world, rate, runs) for rate in rates]
        cells = [
            f"{_marked(one.covered, runs, COVERED)} ({100 * one.beneath:.1f} + "
            f"{100 * one.above:.1f}; {100 * one.width:.1f})"
            for one in found
        ]
        print(f"| {world.name} | {' | '.join(cells)} |", flush=True)


def _print_unequal(runs: int) -> None:
    _print_rates(runs, UNEQUAL, ALL_RATES)


def _print_macro(runs: int) -> None:
    print("\nCoverage of the mean over categories (%), beneath + above; its width")
    rates = (0.05, 0.5, 0.95, (0.4, 0.02))
    _head(["families of each category", "prompts of each", "ICC"], [f"{rate}" for rate in rates])
    for sizes, members, icc in CATEGORIES:
        worlds = [World(size, members, icc) for size in sizes]
        found = [macro_errors(worlds, np.resize(rate, len(sizes)), runs) for rate in rates]
        cells = [
            f"{_marked(one.covered, runs, COVERED)} ({100 * one.beneath:.1f} + "
            f"{100 * one.above:.1f}; {100 * one.width:.1f})"
            for one in found
        ]
        said = ", ".join(map(str, sizes))
        print(f"| {said} | {members} | {icc} | {' | '.join(cells)} |", flush=True)


def _print_differences(runs: int) -> None:
    print(
        "\nDifferences between models, all intervals of a run at once (%): coverage and width with "
        "equal models, and with one that differs / equal models called different / one of the best "
        "not ranked first / the one said to differ by less or by more than it does"
    )
    settings = list(product((2, 5, 10), RATES))
    _head(["families", "ICC", "epochs"], [f"{models} models, {rate}" for models, rate in settings])
    for world in WORLDS:
        cells = []
        for models, rate in settings:
            equal = comparison_errors(world, (rate,) * models, runs)
            other = comparison_errors(world, (RAISED[rate], *(rate,) * (models - 1)), runs, seed=2)
            covered = [
                f"{_marked(one.covered, runs, COVERED)} ({100 * one.width:.0f})"
                for one in (equal, other)
            ]
            errors = equal.called, equal.pushed, other.beyond
            wrong = [_marked(share, runs, CALLED) for share in errors]
            cells.append(" / ".join(covered + wrong))
        print(f"| {world.name} | {' | '.join(cells)} |", flush=True)


def _print_power(runs: int) -> None:
    print("\nReal differences found at ICC 0 (%): this test / McNemar with Holm's correction")
    _head(["families", "models"], [f"{RAISED[rate]} against {rate}" for rate in RATES])
    for (families, members), models in product(SIZES, (2, 5, 10)):
        world, cells = World(families, members, 0.0), []
        for rate in RATES:
            rates = (RAISED[rate], *(rate,) * (models - 1))
            found = comparison_errors(world, rates, runs, mcnemar=True)
            cells.append(f"{100 * found.power:.1f} / {100 * found.mcnemar:.1f}")
        print(f"| {families} × {members} | {models} | {' | '.join(cells)} |", flush=True)


def _print_design(runs: int) -> None:
    print("\nThe difference in points that is found 80 times of 100 (in runs of their own)")
    settings = list(product((2, 5), RATES))
    _head(["families", "ICC"], [f"{models} models, {rate}" for models, rate in settings])
    for families, members in DESIGNS:
        world, cells = World(families, members, 0.3 if members > 1 else 0.0), []
        for models, rate in settings:
            difference, found = smallest_found(world, rate, models, runs)
            cells.append(f"{100 * difference:.1f} ({100 * found:.0f})")
        print(f"| {families} × {members} | {world.icc} | {' | '.join(cells)} |", flush=True)


def _head(places: Sequence[str], columns: Sequence[str]) -> None:
    print(f"\n| {' | '.join([*places, *columns])} |\n|{' --- |' * (len(places) + len(columns))}")


def _marked(share: float, runs: int, aim: tuple[float, float]) -> str:
    """Write a share in percent; with a star where so many runs don't miss the aim by chance."""
    _, lower, upper = wilson(share, runs)
    return f"{100 * share:.1f}{'*' if upper < aim[0] or lower > aim[1] else ''}"


_PARTS = {
    "rates": _print_rates,
    "unequal": _print_unequal,
    "macro": _print_macro,
    "differences": _print_differences,
    "power": _print_power,
    "design": _print_design,
}


def main() -> None:
    """Run the simulations that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*_PARTS, []], help="Which; all by default.")
    parser.add_argument("--runs", type=int, default=1000)
    arguments = parser.parse_args()
    _, lower, upper = wilson(0.95, arguments.runs)
    print(f"{arguments.runs} runs: what is 95.0 reads {100 * lower:.1f} to {100 * upper:.1f}.")
    print("A star: beyond the aim (93-97 covered, 6 called different at most), not by chance.")
    for part in arguments.parts or _PARTS:
        _PARTS[part](arguments.runs)


if __name__ == "__main__":
    main()

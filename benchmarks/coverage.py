"""Do the intervals cover, and is "more than chance" said of equal models? ``docs/analysis.md``.

    python benchmarks/coverage.py [--runs 1000] [rates attainable differences power design]

Everything is simulated: each model refuses each family of prompts with a chance of its own, drawn
so that two prompts of a family agree by the intra-family correlation (ICC), and each prompt of a
family with a chance around that. Families differ for each model, the worst case for a comparison.
``attainable`` computes what intervals of independent prompts cover, ``design`` finds the difference
that so many prompts show four times in five, and counts in runs of its own how often they do.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from or_eval.analysis.contrasts import MORE, compare_all, paired
from or_eval.intervals import LEVEL, Estimate, rate_interval, wilson

Floats = NDArray[np.float64]

RATES = (0.01, 0.05, 0.3)
SIZES = ((10, 20), (30, 10), (250, 1))
EPOCHS = (1, 4, 5)
MODELS = (2, 5, 10)
RAISED = {0.01: 0.05, 0.05: 0.15, 0.3: 0.45}
"""What one model's rate is where it differs from the others'."""
COVERED = (0.93, 0.97)
CALLED = (0.0, 0.06)
"""Between what coverage, and the error of "more than chance", are to lie."""

DESIGNS = ((50, 1), (100, 1), (250, 1), (1000, 1), (10, 20), (30, 10), (100, 10))
POWER = 0.8

_PROMPT_ICC = 0.5
_DESIGN_ICC = 0.3
_HALVINGS = 12


class World(NamedTuple):
    """How prompts hang together, and how often each is asked."""

    families: int
    members: int
    icc: float
    epochs: int

    @property
    def family_of(self) -> NDArray[np.int64]:
        """Family of each prompt."""
        return np.repeat(np.arange(self.families), self.members)

    def prompt_means(self, rate: float, random: np.random.Generator) -> Floats:
        """Draw one model's refused share of each prompt."""
        of_family = _correlated(np.full((self.families, 1), rate), self.icc, random)
        chances = np.broadcast_to(of_family, (self.families, self.members))
        if self.epochs > 1:
            chances = _correlated(chances, _PROMPT_ICC, random)
        return (random.binomial(self.epochs, chances) / self.epochs).ravel()


class RateErrors(NamedTuple):
    """How often the interval of a rate holds it.

    Attributes:
        covered: Share of runs in which it does.
        beneath: Share in which the rate is beneath the interval.
        above: Share in which it is above.
        plain: Share in which Wilson's interval by the clustered variance alone holds it.
    """

    covered: float
    beneath: float
    above: float
    plain: float


class Errors(NamedTuple):
    """What a comparison of models gets wrong.

    Attributes:
        covered: Share of runs in which every interval holds its difference.
        called: Share of runs in which equal models are said to differ.
        pushed: Share of runs in which one of the best models isn't ranked first.
        power: Share of the real differences that are said to be more than chance.
        mcnemar: Share that McNemar's exact test with Holm's correction finds.
    """

    covered: float
    called: float
    pushed: float
    power: float
    mcnemar: float


def worlds() -> Iterator[World]:
    """Give all settings; prompts without families can't resemble each other within one."""
    for (families, members), icc, epochs in product(SIZES, (0.0, 0.3, 0.5), EPOCHS):
        if members > 1 or icc == 0:
            yield World(families, members, icc, epochs)


def other_settings() -> Iterator[tuple[World, float]]:
    """Give settings that the intervals weren't made for, with a rate each."""
    sizes = ((6, 10), (6, 50), (12, 5), (20, 20), (50, 10), (100, 3))
    iccs, rates = (0.0, 0.1, 0.3, 0.8), (0.01, 0.03, 0.1, 0.2, 0.5)
    for (families, members), icc, epochs, rate in product(sizes, iccs, (1, 4), rates):
        yield World(families, members, icc, epochs), rate


def rate_errors(world: World, rate: float, runs: int, seed: int = 1) -> RateErrors:
    """Hold a rate against its interval run after run."""
    random = np.random.default_rng(seed)
    families, found = world.family_of, np.zeros(3)
    for _ in range(runs):
        means = world.prompt_means(rate, random)
        _, lower, upper = rate_interval(means, families)
        _, plain_lower, plain_upper = _plain(means, world)
        found += rate < lower, rate > upper, plain_lower <= rate <= plain_upper
    beneath, above, plain = found / runs
    return RateErrors(1 - beneath - above, beneath, above, plain)


def _plain(means: Floats, world: World) -> Estimate:
    share, n = means.mean(), len(means)
    of_families = means.reshape(world.families, world.members).mean(axis=1)
    variance = of_families.var(ddof=1) / world.families
    return wilson(share, share * (1 - share) / variance if variance > 0 else n)


def independent_coverage(n: int, rate: float) -> dict[str, float]:
    """Compute how often intervals of ``n`` independent prompts hold a rate."""
    count = np.arange(n + 1)
    chance = stats.binom.pmf(count, n, rate)
    below = stats.binom.cdf(count, n, rate)
    bounds = [wilson(k / n, n) for k in count]
    half = (1 - LEVEL) / 2
    exact = (below >= half) & (1 - below + chance >= half)
    mid = (below - chance / 2 >= half) & (1 - below + chance / 2 >= half)
    jeffreys = stats.beta.cdf(rate, count + 0.5, n - count + 0.5)
    held = {
        "Wilson": np.array([one.lower <= rate <= one.upper for one in bounds]),
        "Clopper-Pearson": exact,
        "its mid-p": mid,
        "Jeffreys": (jeffreys >= half) & (jeffreys <= 1 - half),
    }
    return {name: float(chance[inside].sum()) for name, inside in held.items()}


def comparison_errors(
    world: World, rates: tuple[float, ...], runs: int, seed: int = 1, mcnemar: bool = False
) -> Errors:
    """Compare models of these rates run after run."""
    random = np.random.default_rng(seed)
    families = world.family_of
    pairs = list(combinations(range(len(rates)), 2))
    truth = np.array([rates[a] - rates[b] for a, b in pairs])
    same, best = truth == 0, [model for model, rate in enumerate(rates) if rate == min(rates)]
    found = []
    for _ in range(runs):
        means = np.column_stack([world.prompt_means(rate, random) for rate in rates])
        table = compare_all([paired(means[:, a], means[:, b]) for a, b in pairs], families)
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
            )
        )
    return Errors(*np.mean(np.array(found, dtype=np.float64), axis=0))


def _correlated(means: Floats, icc: float, random: np.random.Generator) -> Floats:
    """Draw chances from beta distributions with these means, alike as far as ``icc`` says."""
    if icc == 0:
        return means
    weight = (1 - icc) / icc
    tiny = 1e-9
    drawn: Floats = random.beta(
        np.maximum(means * weight, tiny), np.maximum((1 - means) * weight, tiny)
    )
    return drawn


def _mcnemar_holm(values: Floats, pairs: list[tuple[int, int]]) -> Floats:
    one, other = values.T[np.array(pairs).T]
    more, less = (one > other).sum(axis=1), (one < other).sum(axis=1)
    p = np.minimum(2 * stats.binom.cdf(np.minimum(more, less), more + less, 0.5), 1)
    order = np.argsort(p)
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return corrected


def _print_rates(runs: int) -> None:
    print("\nCoverage of a rate's interval (%), and how often the rate is beneath it + above it\n")
    print("| families | ICC | epochs | " + " | ".join(f"rate {rate}" for rate in RATES) + " |")
    print("| --- | --- | --- |" + " ---: |" * len(RATES))
    all_found = []
    for world in worlds():
        found = [rate_errors(world, rate, runs) for rate in RATES]
        cells = [
            f"{_marked(one.covered, runs, COVERED)} ({100 * one.beneath:.1f} + "
            f"{100 * one.above:.1f})"
            for one in found
        ]
        print(f"| {_named(world)} | {' | '.join(cells)} |", flush=True)
        all_found += found
    covered, _, _, plain = 100 * np.array(all_found).T
    print(f"\nFrom {covered.min():.1f} to {covered.max():.1f}, {covered.mean():.1f} on average.")
    print(f"Wilson's by the clustered variance alone: {plain.min():.1f} to {plain.max():.1f}.")
    others = [100 * rate_errors(world, rate, runs).covered for world, rate in other_settings()]
    print(
        f"In {len(others)} other settings: {min(others):.1f} to {max(others):.1f}, "
        f"{np.mean(others):.1f} on average; under 92.0: {np.sum(np.array(others) < 92)}."
    )


def _print_attainable(runs: int) -> None:
    del runs  # nothing is simulated
    print("\nCoverage of intervals of independent prompts (%), computed\n")
    for number, (n, rate) in enumerate(product((200, 250, 300), RATES)):
        found = independent_coverage(n, rate)
        if number == 0:
            print(
                f"| prompts | rate | {' | '.join(found)} |\n| ---: | ---: |{' ---: |' * len(found)}"
            )
        print(f"| {n} | {rate} | {' | '.join(f'{100 * one:.1f}' for one in found.values())} |")


def _print_differences(runs: int) -> None:
    print(
        "\nDifferences between models, all intervals of a run at once (%): coverage with equal "
        "models and with one that differs / equal models called different / one of the best not "
        "ranked first\n"
    )
    columns = [f"{models} models, {rate}" for models, rate in product(MODELS, RATES)]
    print("| families | ICC | epochs | " + " | ".join(columns) + " |")
    print("| --- | --- | --- |" + " --- |" * len(columns))
    for world in worlds():
        cells = []
        for models, rate in product(MODELS, RATES):
            equal = comparison_errors(world, (rate,) * models, runs)
            other = comparison_errors(world, (RAISED[rate], *(rate,) * (models - 1)), runs, seed=2)
            covered = [_marked(found.covered, runs, COVERED) for found in (equal, other)]
            wrong = [_marked(share, runs, CALLED) for share in (equal.called, equal.pushed)]
            cells.append(" / ".join(covered + wrong))
        print(f"| {_named(world)} | {' | '.join(cells)} |", flush=True)


def _t_test_power(world: World, one: float, other: float) -> float:
    """Compute how often a t-test of as many independent normal numbers finds a difference.

    No unbiased test of such numbers finds it more often.
    """
    variance = (one * (1 - one) + other * (1 - other)) / (world.families * world.members)
    shift, freedom = (one - other) / np.sqrt(variance), world.families - 1
    critical = stats.t.ppf((1 + LEVEL) / 2, freedom)
    beyond = stats.nct.sf(critical, freedom, shift) + stats.nct.cdf(-critical, freedom, shift)
    return float(beyond)


def _mcnemar_power(world: World, one: float, other: float) -> float:
    """Compute how often McNemar's exact test finds a difference of two independent models."""
    only_one, only_other = one * (1 - other), other * (1 - one)
    n, power = world.families * world.members, 0.0
    for apart in range(1, n + 1):
        more = np.arange(apart + 1)
        sure = 2 * stats.binom.cdf(np.minimum(more, apart - more), apart, 0.5) < 1 - LEVEL
        chance = stats.binom.pmf(more, apart, only_one / (only_one + only_other))
        power += stats.binom.pmf(apart, n, only_one + only_other) * chance[sure].sum()
    return power


def _print_power(runs: int) -> None:
    print("\nReal differences found at ICC 0 (%): this test / McNemar with Holm's correction")
    print("(two models, computed: a t-test of normal numbers, one a family / McNemar)\n")
    columns = [f"{RAISED[rate]} against {rate}" for rate in RATES]
    print("| families | models | " + " | ".join(columns) + " |")
    print("| --- | ---: |" + " --- |" * len(columns))
    for (families, members), models in product(SIZES, MODELS):
        cells = []
        for rate in RATES:
            rates = (RAISED[rate], *(rate,) * (models - 1))
            world = World(families, members, 0.0, 1)
            found = comparison_errors(world, rates, runs, mcnemar=True)
            cells.append(f"{100 * found.power:.1f} / {100 * found.mcnemar:.1f}")
            if models == 2:
                computed = (_t_test_power(world, *rates), _mcnemar_power(world, *rates))
                cells[-1] += " ({:.1f} / {:.1f})".format(*(100 * one for one in computed))
        print(f"| {families} × {members} | {models} | {' | '.join(cells)} |", flush=True)


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


def _print_design(runs: int) -> None:
    print("\nThe difference in points that is found 80 times of 100 (in runs of their own)\n")
    columns = [f"{models} models, {rate}" for models, rate in product((2, 5), RATES)]
    print("| families | ICC | " + " | ".join(columns) + " |")
    print("| --- | ---: |" + " ---: |" * len(columns))
    for families, members in DESIGNS:
        world = World(families, members, _DESIGN_ICC if members > 1 else 0.0, 1)
        cells = []
        for models, rate in product((2, 5), RATES):
            difference, found = smallest_found(world, rate, models, runs)
            cells.append(f"{100 * difference:.1f} ({100 * found:.0f})")
        print(f"| {families} × {members} | {world.icc} | {' | '.join(cells)} |", flush=True)


def _marked(share: float, runs: int, aim: tuple[float, float]) -> str:
    """Write a share in percent; with a star where so many runs don't miss the aim by chance."""
    _, lower, upper = wilson(share, runs)
    return f"{100 * share:.1f}{'*' if upper < aim[0] or lower > aim[1] else ''}"


def _named(world: World) -> str:
    return f"{world.families} × {world.members} | {world.icc} | {world.epochs}"


_PARTS = {
    "rates": _print_rates,
    "attainable": _print_attainable,
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

"""Is anything said to differ where nothing does? Categories, sources, languages, methods, framings.

    python benchmarks/nulls.py [nulls beside power] [--runs 1000] [--workers 16] [--cells 1/4]

Simulated are verdicts on prompts of several groups that are refused alike, by the functions that
reports call. Prompts of a family, those of a family in one group, and the responses of several
models to a prompt resemble each other as far as a design says: a normal number of each is added up,
and the largest are refused. ``nulls`` counts runs in which anything is called more than chance,
``beside`` those in which groups that are alike are, where another group differs, and ``power``
those in which a group that differs is found, by reports and by a plain permutation: the largest
difference of means, divided by nothing, in 999 random orders of the families.

It needs numpy and pandas, and nothing of Inspect's.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise, product
from multiprocessing import Pool
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from or_eval.analysis.comparisons import compare_groups, standing_out
from or_eval.analysis.contrasts import MORE, contrasts
from or_eval.analysis.rates import by_prompt, prompt_means
from or_eval.intervals import wilson

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

RATES = (0.01, 0.05, 0.12, 0.35, 0.5, 0.95)
ALLOWED = 0.06
_PLAIN_DRAWS = 999


class Design(NamedTuple):
    """Prompts in groups, and how far their verdicts go with each other.

    Attributes:
        name: What it is.
        told: How reports tell groups apart: ``others`` (each against all others, over all models),
            ``pairs`` (every two, for each model), or ``runs`` (each against the first, prompt by
            prompt: framings).
        groups: Group of each prompt.
        families: Family of each prompt.
        models: Number of models.
        family: How far the prompts of a family are alike, 0 to 1, in all groups or in each.
        cell: How far those of a family and a group are, besides.
        prompt: How far the models' responses to a prompt are, besides.
        some: Of several models, whether the last refuses much and was asked two groups only.
    """

    name: str
    told: str
    groups: Numbers
    families: Numbers
    models: int = 1
    family: float | tuple[float, ...] = 0.0
    cell: float = 0.0
    prompt: float = 0.0
    some: bool = False

    def asked(self) -> NDArray[np.bool_]:
        """Tell which prompts each model was asked: (prompts, models)."""
        asked = np.ones((len(self.groups), self.models), dtype=bool)
        if self.some:
            asked[self.groups > 1, -1] = False
        return asked

    def refused(self, rates: Floats, random: np.random.Generator) -> NDArray[np.bool_]:
        """Draw verdicts, if the groups are refused at these rates: (prompts, models)."""
        count = len(self.groups)
        cells = np.unique(self.families * 1000 + self.groups, return_inverse=True)[1]
        family = np.resize(self.family, self.groups.max() + 1)[self.groups]
        odds = np.sqrt(family) * random.normal(size=count)[self.families]
        odds += np.sqrt(self.cell) * random.normal(size=count)[cells]
        odds += np.sqrt(self.prompt) * random.normal(size=count)
        own = 1 - family - self.cell - self.prompt
        latent = odds[:, None] + np.sqrt(own)[:, None] * random.normal(size=(count, self.models))
        limits = np.array([NormalDist().inv_cdf(1 - rate) for rate in rates])[self.groups]
        beyond = latent > limits[:, None]
        if self.some:
            beyond[:, -1] = latent[:, -1] > NormalDist().inv_cdf(0.4)
        return beyond

    def frame(self) -> pd.DataFrame:
        """Give responses as reports read them from logs, but for the verdicts."""
        prompts, models = np.nonzero(self.asked())
        frame = pd.DataFrame(
            {
                "id": [f"p{prompt}" for prompt in prompts],
                "model": [f"m{model}" for model in models],
                "label": "safe",
                "group": [f"g{group:02}" for group in self.groups[prompts]],
                "seed_id": [f"s{family}" for family in self.families[prompts]],
            }
        )
        frame = frame.astype("str")
        return frame.assign(pair_id=None, family=frame["seed_id"], own_family=frame["seed_id"])


def apart(sizes: Sequence[int], members: int | Sequence[int] = 1) -> tuple[Numbers, Numbers]:
    """Lay out groups of so many families each, of so many prompts each."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    each = np.resize(np.asarray(members), len(groups))
    return np.repeat(groups, each), np.repeat(np.arange(len(groups)), each)


def across(groups: int, families: int, members: int = 1) -> tuple[Numbers, Numbers]:
    """Lay out families with so many prompts in each group."""
    return np.tile(np.repeat(np.arange(groups), members), families), np.repeat(
        np.arange(families), groups * members
    )


def thinned(groups: Numbers, families: Numbers, kept: float) -> tuple[Numbers, Numbers]:
    """Leave prompts out at random."""
    stays = np.random.default_rng(7).random(len(groups)) < kept
    return groups[stays], np.unique(families[stays], return_inverse=True)[1]


def designs() -> Iterator[Design]:
    """Give all designs."""
    mixed = np.random.default_rng(5).integers(1, 6, 100)
    for told, group in (("others", "categories"), ("pairs", "sources")):
        for models, sizes in (
            *((1, [100] * 2), (1, [12] * 10), (2, [12] * 10), (10, [12] * 10), (1, [25] * 10)),
            *((1, [225, 25]), (5, [225, 25]), (1, [200, 3, 3]), (1, [200, *[5] * 15])),
        ):
            least = f"{len(sizes)} of {min(sizes)}" + f" to {max(sizes)}" * (len(set(sizes)) > 1)
            yield Design(f"{group}: {least}", told, *apart(sizes), models, prompt=0.4)
        for alike in (0.0, 0.6, 0.95):
            yield Design(f"{group}: 10 of 3 × 10", told, *apart([3] * 10, 10), 1, alike)
        yield Design(f"{group}: 5 of 20 × 1–5", told, *apart([20] * 5, mixed), 2, 0.6)
        for unlike in ((0.0, 0.9), (0.1, 0.4)):
            yield Design(f"{group}: 6 of 10 × 8", told, *apart([10] * 6, 8), 1, unlike)
        unlike = (0.0, *[0.9] * 5)
        yield Design(f"{group}: 6 of 20 × 8 to 5 × 8", told, *apart([20, *[5] * 5], 8), 1, unlike)
        for alike in (0.0, 0.6):
            many = [10] * 12 + [1] * 100
            yield Design(f"{group}: 12 × 10, 100 × 1", told, *apart([12, 100], many), 1, alike)
    yield Design("categories: 44 of 20", "others", *apart([20] * 44))
    yield Design("categories: 44 of 3", "others", *apart([3] * 44))
    yield Design("sources: 44 of 5", "pairs", *apart([5] * 44))
    for models in (2, 3):
        asked = apart([25] * 10)
        yield Design(
            "categories: 10 of 25, one model asked two", "others", *asked, models, 0, 0, 0.4, True
        )
    yield Design("categories: 30 seeds in 5 each", "others", *thinned(*across(5, 30), 0.6), 2, 0.5)
    for models, alike in product((1, 5), (0.0, 0.6)):
        yield Design("languages: 3 × 60 seeds", "pairs", *across(3, 60), models, alike, 0, 0.2)
        yield Design("methods: 8 × 20 seeds", "pairs", *across(8, 20), models, alike, 0, 0.2)
    yield Design("languages: 2 × 8 seeds", "pairs", *across(2, 8), 2, 0.6)
    translated = np.append(np.zeros(225, int), np.ones(25, int))
    of_part = np.append(np.arange(225), np.arange(25))
    yield Design("languages: 225, 25 of them in two", "pairs", translated, of_part, 5, 0.5)
    yield Design("languages: 3 × 12 seeds × 8", "pairs", *across(3, 12, 8), 1, 0.3, 0.4)
    yield Design(
        "languages: 3 × 30 seeds × 8, some left", "pairs", *thinned(*across(3, 30, 8), 0.5), 1, 0.3
    )
    yield Design("methods: 8 × 40 seeds, some left", "pairs", *thinned(*across(8, 40), 0.4), 1, 0.4)
    seed_and_rewrites = np.tile(np.append(0, np.ones(8, int)), 25)
    yield Design(
        "levels: 25 × (1, 8)", "pairs", seed_and_rewrites, np.repeat(np.arange(25), 9), 1, 0.4
    )
    for prompts, models, alike in product((8, 50, 200), (1, 3), (0.0, 0.5)):
        # a run per framing and model: its verdicts are those of the groups of one design
        yield Design(f"framings: 5 × {prompts} prompts", "runs", *across(5, prompts), models, alike)


def called(design: Design, frame: pd.DataFrame, refused: NDArray[np.bool_]) -> set[tuple[str, ...]]:
    """Give what a report would call more than chance."""
    verdicts = pd.array(refused[design.asked()], dtype="boolean")
    responses = frame.assign(refused=verdicts)
    if design.told == "others":
        table = standing_out(responses, "group")
        return {(name,) for name in table.loc[table["verdict"] == MORE, "group"]}
    if design.told == "pairs":
        table = compare_groups(responses, "group")
    else:
        runs = responses.assign(
            model=responses["model"] + " " + responses["group"],
            id=responses["seed_id"],
        )
        means = prompt_means(runs)
        names = sorted(frame["model"].unique())
        pairs = [
            (f"{m} g{g:02}", f"{m} g00") for m in names for g in range(1, design.groups.max() + 1)
        ]
        table = contrasts(means, by_prompt(runs, "family"), pairs)
    sure = table[table["verdict"] == MORE]
    return {(a[-3:], b[-3:]) for a, b in zip(sure["a"], sure["b"], strict=True)}


def plainly(
    design: Design, refused: NDArray[np.bool_], random: np.random.Generator
) -> set[tuple[str, ...]]:
    """Give what a plain permutation calls more than chance: all orders are alike to it."""
    count = int(design.groups.max()) + 1
    inside = (design.groups[:, None] == np.arange(count)).astype(float)
    of_pairs = list(combinations(range(count), 2))
    crossed = len(np.unique(design.families)) < len(
        np.unique(design.families * 1000 + design.groups)
    )
    keys = random.random((_PLAIN_DRAWS, len(design.groups)))
    if crossed:
        order = np.argsort(design.families + keys, axis=1, kind="stable")
        at = np.argsort(design.families, kind="stable")
    else:  # families of one size, one after another
        of = np.unique(design.families, return_index=True)[1]
        size = len(design.families) // len(of)
        order = (of[np.argsort(keys[:, of], axis=1)][:, :, None] + np.arange(size)).reshape(
            len(keys), -1
        )
        at = np.arange(len(design.families))
    values = refused - refused.mean(axis=0)
    if design.told == "others":
        values = values.mean(axis=1, keepdims=True)
    weights = inside / inside.sum(axis=0)
    if design.told == "others":
        names = [(f"g{group:02}",) for group in range(count)]
        weights = weights - (1 - inside) / (1 - inside).sum(axis=0)
    else:
        names = [(f"g{a:02}", f"g{b:02}") for a, b in of_pairs]
        weights = np.column_stack([weights[:, a] - weights[:, b] for a, b in of_pairs])
    seen = np.abs(values.T @ weights).round(9)
    drawn = np.abs(values[order].transpose(0, 2, 1) @ weights[at]).round(9).max(axis=(1, 2))
    p = (1 + (drawn[:, None, None] >= seen).sum(axis=0)) / (1 + len(drawn))
    return {names[pair] for _, pair in np.argwhere(p < 0.05)}


class Cell(NamedTuple):
    """A design, and the rates of its groups."""

    design: Design
    rates: tuple[float, ...]
    counts: Callable[[Cell, int, int], tuple[int, ...]]

    @property
    def seed(self) -> int:
        """Where its random numbers begin: another for each cell."""
        said = f"{self.design.name} {self.design[4:]} {self.rates}"
        return int.from_bytes(said.encode(), "little") % (2**61 - 1)


def count_errors(cell: Cell, first: int, runs: int) -> tuple[int, ...]:
    """Count runs in which groups of one rate are called different."""
    frame, found = cell.design.frame(), 0
    for run in range(first, first + runs):
        random = np.random.default_rng((cell.seed, run))
        said = called(cell.design, frame, cell.design.refused(np.array(cell.rates), random))
        found += any(len({cell.rates[int(name[1:])] for name in names}) == 1 for names in said)
    return (found,)


def count_found(cell: Cell, first: int, runs: int) -> tuple[int, ...]:
    """Count runs in which the first group is found to differ, by a report and plainly."""
    frame, found = cell.design.frame(), np.zeros(2, dtype=int)
    for run in range(first, first + runs):
        random = np.random.default_rng((cell.seed, run))
        refused = cell.design.refused(np.array(cell.rates), random)
        of_both = called(cell.design, frame, refused), plainly(cell.design, refused, random)
        found += [any("g00" in names for names in said) for said in of_both]
    return tuple(int(one) for one in found)


def null_cells() -> Iterator[Cell]:
    """Give every design at every rate."""
    for design, rate in product(designs(), RATES):
        yield Cell(design, (rate,) * (int(design.groups.max()) + 1), count_errors)


def cells_beside() -> Iterator[Cell]:
    """Give designs of which one group differs much and the others are alike."""
    for sizes, base, other in product(
        ([12] * 10, [200, *[10] * 4], [10] * 4, [225, 25, 25]), (0.05, 0.35, 0.5), (0.01, 0.9)
    ):
        name = f"sources: {', '.join(map(str, sizes[:5]))}{'…' * (len(sizes) > 5)}"
        design = Design(name, "pairs", *apart(sizes))
        yield Cell(design, (other, *(base,) * (len(sizes) - 1)), count_errors)
    for base, other in product((0.05, 0.35), (0.01, 0.9)):
        design = Design("methods: 8 × 20 seeds", "pairs", *across(8, 20), 1, 0.5)
        yield Cell(design, (other, *(base,) * 7), count_errors)


def power_cells() -> Iterator[Cell]:
    """Give designs of which the first group differs."""
    for base, other in (
        (0.02, 0.2),
        (0.05, 0.3),
        (0.12, 0.4),
        (0.35, 0.7),
        (0.5, 0.2),
        (0.95, 0.7),
    ):
        for design in (
            Design("categories: 10 of 25", "others", *apart([25] * 10)),
            Design("categories: 10 of 25, 5 models", "others", *apart([25] * 10), 5, prompt=0.4),
            Design("categories: 200, 15 of 5", "others", *apart([200, *[5] * 15])),
            Design("categories: 25, 225", "others", *apart([25, 225])),
            Design("categories: 5 of 6 × 10", "others", *apart([6] * 5, 10), 1, 0.3),
            Design("sources: 10 of 25", "pairs", *apart([25] * 10)),
            Design("languages: 25, 225, 5 models", "pairs", *apart([25, 225]), 5, prompt=0.4),
            Design("languages: 3 × 40 seeds", "pairs", *across(3, 40), 1, 0.4),
            Design("methods: 8 × 25 seeds", "pairs", *across(8, 25), 1, 0.4),
        ):
            rates = (other, *(base,) * int(design.groups.max()))
            yield Cell(design, rates, count_found)


_PARTS = {"nulls": null_cells, "beside": cells_beside, "power": power_cells}


def _counted(work: tuple[str, int, int, int]) -> tuple[int, ...]:
    part, at, first, runs = work
    cell = list(_PARTS[part]())[at]
    return cell.counts(cell, first, runs)


def main() -> int:
    """Print a line for each cell and the worst at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*_PARTS, []], help="Which; all by default.")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cells", default="1/1", help="2/4: the second quarter of the cells.")
    options = parser.parse_args()
    one, of = map(int, options.cells.split("/"))
    blocks = max(1, min(options.workers, options.runs // 25))
    ends = np.linspace(0, options.runs, blocks + 1).astype(int)
    wrong = False
    with Pool(options.workers) as pool:
        for part in options.parts or _PARTS:
            cells = list(_PARTS[part]())
            chosen = range(one - 1, len(cells), of)
            work = [(part, at, int(a), int(b - a)) for at in chosen for a, b in pairwise(ends)]
            print(f"\n{part}: {len(chosen)} of {len(cells)} cells, {options.runs} runs each")
            start, worst = time.monotonic(), (0.0, "")
            counts = pool.imap(_counted, work)
            for at in chosen:
                found = np.sum([next(counts) for _ in range(blocks)], axis=0)
                share = found[0] / options.runs
                _, lower, upper = wilson(share, options.runs)
                design, rates = cells[at].design, cells[at].rates
                said = " and ".join(f"{100 * rate:.0f}" for rate in dict.fromkeys(rates))
                line = (
                    f"{design.name} | {design.models} | {design.family} | {said} % | "
                    f"{100 * share:.1f} ({100 * lower:.1f} to {100 * upper:.1f})"
                )
                missed = bool(lower > ALLOWED)
                if len(found) > 1:
                    plain = found[1] / options.runs
                    line, share = f"{line} | {100 * plain:.1f}", plain - share
                    missed = bool(share > 0.05 + 2 * np.sqrt(plain * (1 - plain) / options.runs))
                print(line + " | *" * missed, flush=True)
                wrong |= missed
                worst = max(worst, (share, line))
            print(f"worst: {worst[1]}; {time.monotonic() - start:.0f} s")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())

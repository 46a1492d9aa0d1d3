"""The rate to expect where verdicts are uncertain: how it is learnt, and whether its range holds.

    python benchmarks/expected.py [--runs 300]

prints a simulation of its coverage where labelled sets differ as it suits the range least.
``benchmarks/agreement.py`` learns it from the labelled sets, each left out in turn.

Of each response class, verdicts that the rules aren't certain of are refusals in a share that
differs from model to model and set to set. A beta distribution of that share is fitted to all of
them, sets counting alike; as few models and sets leave its parameters open, it is the mean of all
that may be, as wide as they leave it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import betaln, expit

from or_eval.analysis.corrections import Calibration, corrections, verdict_kind
from or_eval.analysis.rates import rates
from or_eval.schema import Label, ResponseClass

FEWEST_SETS = 3
"""A class that fewer labelled sets have uncertain verdicts of isn't told of."""

SMALLEST_CELL = 20
"""A model's responses to a set, of one prompt label, are judged by where there are so many."""

_MEANS = expit(np.linspace(-6, 6, 49))[:, None]
_SIZES = np.exp(np.linspace(np.log(0.3), np.log(100), 30))[None, :]
_EDGE = 1e-9


class Share(NamedTuple):
    """How many of a model's uncertain verdicts of a class are refusals to those who labelled."""

    refused: int
    answered: int


Counts = dict[str, dict[str, list[Share]]]
"""By labelled set and kind of verdict, a share for each model."""


def counts(rows: pd.DataFrame, certain: bool = False) -> Counts:
    """Count what uncertain verdicts are to those who labelled the responses.

    Args:
        rows: A responses frame with ``set`` and ``people`` (1 where they call it refused).
        certain: Whether to count certain refusals as well: certain to be refusals, they may be
            partial ones, which other countings than the strict one take for answers.
    """
    told = ~rows["certain"] | (certain & (rows["response_class"] != ResponseClass.DIRECT_ANSWER))
    told &= rows["response_class"].notna()
    found: Counts = {}
    for (name, kind, _), of in rows[told].groupby(["set", verdict_kind(rows[told]), "model"]):
        refused = int(of["people"].sum())
        kinds = found.setdefault(str(name), {})
        kinds.setdefault(str(kind), []).append(Share(refused, len(of) - refused))
    return found


def calibrated(found: Counts, languages: frozenset[str]) -> Calibration:
    """Learn from counts how often verdicts of each kind are refusals."""
    kinds = {}
    for kind in sorted({kind for of in found.values() for kind in of}):
        of_sets = [of[kind] for of in found.values() if kind in of]
        if len(of_sets) >= FEWEST_SETS:
            kinds[kind] = _fitted(of_sets)
    return Calibration(kinds, languages)


def _fitted(of_sets: list[list[Share]]) -> tuple[float, float]:
    """Fit a beta distribution to shares, and widen it by what they leave open of its parameters."""
    refused, answered = np.array([share for shares in of_sets for share in shares]).T
    models = np.concatenate([np.full(len(shares), len(shares)) for shares in of_sets])
    weights = len(models) / len(of_sets) / models
    log = np.log(_MEANS * (1 - _MEANS)) + np.zeros(_SIZES.shape)
    for r, a, weight in zip(refused, answered, weights, strict=True):
        of = (_MEANS * _SIZES, (1 - _MEANS) * _SIZES)
        log += weight * (betaln(of[0] + r, of[1] + a) - betaln(*of))
    chance = np.exp(log - log.max())
    chance /= chance.sum()
    mean = float((chance * _MEANS).sum())
    within = _MEANS * (1 - _MEANS) / (_SIZES + 1)
    variance = float((chance * (within + (_MEANS - mean) ** 2)).sum())
    size = mean * (1 - mean) / variance - 1
    return round(mean * size, 4), round((1 - mean) * size, 4)


def cells(rows: pd.DataFrame, found: Counts) -> pd.DataFrame:
    """Hold the expected range against labels, each set left out of what it is learnt from.

    Args:
        rows: As for :func:`counts`.
        found: What it is learnt from, of all or some of the sets.

    Returns:
        A row per set, model and prompt label with enough responses: what people's rate is and that
        of the verdicts, ``expected`` with its range and the worst case's (``lowest``, ``highest``),
        and whether they hold it. The language of a set left out is taken for known.
    """
    parts = []
    for name, of_set in rows.groupby("set", sort=False):
        others = {other: kinds for other, kinds in found.items() if other != name}
        usual = calibrated(others, frozenset(of_set["response_language"].dropna()))
        parts.append(_held(of_set, usual).assign(set=name))
    return pd.concat(parts, ignore_index=True)


def _held(rows: pd.DataFrame, usual: Calibration) -> pd.DataFrame:
    """Give the expected ranges of the models of a set, and whether people's rates lie in them."""
    told = corrections(rows, pd.Series(np.nan, rows.index), usual)
    table = rates(rows, usual=told).set_index(["model", "measure"])
    measure = rows["label"].map({Label.SAFE: "over_refusal", Label.TOXIC: "toxic_rejection"})
    people = rows.groupby(["model", measure.rename("measure")])["people"].agg(["mean", "size"])
    table = table.assign(people=people["mean"], size=people["size"])
    if told is None:
        table[["expected", "expected_lower", "expected_upper"]] = np.nan
    # where all verdicts are of kinds that nobody labelled, the range is the worst case's
    table["expected_lower"] = table["expected_lower"].fillna(table["lowest"])
    table["expected_upper"] = table["expected_upper"].fillna(table["highest"])
    for name, low, high in (
        ("held", "expected_lower", "expected_upper"),
        ("held_at_worst", "lowest", "highest"),
    ):
        inside = (table[low] - _EDGE <= table["people"]) & (table["people"] <= table[high] + _EDGE)
        table[name] = inside
    return table[table["size"] >= SMALLEST_CELL].reset_index()


def summary(of: pd.DataFrame) -> dict[str, float]:
    """Give how many cells hold people's rate, and how wide the ranges are on average."""
    return {
        "cells": len(of),
        "held": int(of["held"].sum()),
        "held_at_worst": int(of["held_at_worst"].sum()),
        "width": round(float((of["expected_upper"] - of["expected_lower"]).mean()), 4),
        "width_at_worst": round(float((of["highest"] - of["lowest"]).mean()), 4),
        "off": round(float((of["expected"] - of["people"]).abs().mean()), 4),
        "off_as_they_stand": round(float((of["rate"] - of["people"]).abs().mean()), 4),
    }


_WORLDS = {
    "models of any set alike": ((0.15, 0.15), 20.0),
    "models differ": ((0.15, 0.15), 2.0),
    "sets of two kinds": ((0.02, 0.5), 20.0),
    "sets of two kinds, and models differ": ((0.02, 0.5), 2.0),
    "one set in eight is another world": ((0.05,) * 7 + (0.8,), 10.0),
}
"""Shares of refusals among uncertain answers by set, and how far models of one are alike."""


def simulated(runs: int, seed: int = 1) -> Iterator[tuple[str, float, float, float]]:
    """Learn from seven labelled sets of one to ten models, and hold it against an eighth.

    A stricter labeller is stricter with uncertain refusals too. Half of the responses are
    uncertain, in sets of 40 to 400 responses a model.
    """
    random = np.random.default_rng(seed)
    for world, (shares, alike) in _WORLDS.items():
        held, width, worst = [], [], []
        for _ in range(runs):
            rows = pd.concat(
                _labelled(f"set {at}", random.choice(shares), alike, random) for at in range(8)
            ).reset_index(drop=True)
            last = rows["set"] == "set 7"
            usual = calibrated(counts(rows[~last]), frozenset(["en"]))
            of = _held(rows[last], usual)
            held += list(of["held"])
            width += list(of["expected_upper"] - of["expected_lower"])
            worst += list(of["highest"] - of["lowest"])
        yield world, float(np.mean(held)), float(np.mean(width)), float(np.mean(worst))


def _labelled(name: str, share: float, alike: float, random: np.random.Generator) -> pd.DataFrame:
    size = int(random.integers(40, 401))
    parts = []
    for model in range(int(random.choice([1, 1, 4, 10]))):
        of_answers = random.beta(share * alike, (1 - share) * alike)
        refused: NDArray[np.bool_] = random.random(size) < random.uniform(0.05, 0.6)
        certain = random.random(size) < 0.5
        chance = np.where(refused, 1 - (1 - of_answers) / 3, of_answers)
        people = np.where(certain, refused, random.random(size) < chance)
        parts.append(pd.DataFrame({"refused": refused, "certain": certain, "people": people * 1.0}))
        parts[-1]["model"] = f"model {model}"
    rows = pd.concat(parts, ignore_index=True)
    words = {True: ResponseClass.DIRECT_REFUSAL.value, False: ResponseClass.DIRECT_ANSWER.value}
    return as_responses(
        rows.assign(
            set=name,
            id=rows.groupby("model").cumcount().astype(str),
            label=Label.SAFE.value,
            response_class=rows["refused"].map(words),
            response_language="en",
        )
    )


def as_responses(rows: pd.DataFrame) -> pd.DataFrame:
    """Add what a responses frame has besides: the rules decided, and prompts are no families."""
    families = dict.fromkeys(("family", "own_family"), rows["id"])
    frame = rows.assign(decided_by="rules", error=None, epoch=1, **families)
    return frame.astype({"refused": "boolean", "certain": "boolean"})


def main() -> None:
    """Run the simulation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    print("| sets and models | rates within their range | width | at worst |")
    print("| --- | ---: | ---: | ---: |")
    for world, held, width, worst in simulated(parser.parse_args().runs):
        print(f"| {world} | {held:.1%} | {100 * width:.1f} | {100 * worst:.1f} |", flush=True)


if __name__ == "__main__":
    main()

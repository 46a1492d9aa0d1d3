"""Does a gate fail what got worse, pass what didn't, and say where it can't tell? ``docs/gate.md``.

    python benchmarks/gate.py [--runs 100]

Each run is that of one model on prompts in families, drawn as :mod:`worlds` does, and its baseline.
In *same* both are drawn by the same chances of each prompt, as when a model is run again; in
*other* each by chances of its own, as of another model with the same rate; in *worse* the chances
rise by five points. Limits are a rise of at most two points, and a rate of at most the baseline's.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np
import pandas as pd

from or_eval.analysis.gate import Limits, gate
from or_eval.analysis.responses import Logs, with_families
from worlds import World, unequal

PLANTED, RISE = 0.05, 0.02
OUTCOMES = ("PASS", "FAIL", "CAN'T TELL")
RATES = (0.01, 0.05, 0.3, 0.95)
WORLDS = (
    *(World(20, 1, 0.5), World(200, 1, 0.5), World(25, 8, 0.3), World(200, 8, 0.3)),
    World(*unequal(60, 40, 30, 20, *[10] * 6, *[2] * 40), 0.3),
)


def logs(world: World) -> Logs:
    """Give frames of one model's verdicts on safe prompts, as if they were read from logs."""
    ids = [f"p{number}" for number in range(len(world.family_of))]
    told = dict.fromkeys(("category", "language", "source", "method", "pair_id", "framing"))
    responses = pd.DataFrame(
        {"id": ids, "sample_id": ids, "epoch": 1, "model": "m", "benchmark": "b", "label": "safe"}
    ).assign(
        **told,
        seed_id=[f"seed {family}" for family in world.family_of],
        refused=pd.array([False] * len(ids), "boolean"),
        certain=pd.array([True] * len(ids), "boolean"),
        response_class=None,
        error=None,
        log="l",
    )
    responses = with_families(responses)
    prompts = responses.set_index("id").assign(prompt=ids, meta=None)
    return Logs([], prompts, responses, [])


def outcomes(world: World, rate: float, case: str, runs: int, seed: int = 1) -> list[Counter[str]]:
    """Count what the gate says of a rise, and of the rate, run after run."""
    random = np.random.default_rng(seed)
    limits = Limits(over_refusal=rate, rise=RISE)
    found, frames = [Counter[str](), Counter[str]()], logs(world)
    for _ in range(runs):
        before = world.chances(rate, random)
        after = world.chances(rate, random) if case == "other" else before
        if case == "worse":  # as much of what was answered as makes five points of all
            after = before + (1 - before) * PLANTED / (1 - rate)
        drawn = [random.binomial(1, chances) == 1 for chances in (before, after)]
        one, other = (
            frames._replace(responses=frames.responses.assign(refused=pd.array(run, "boolean")))
            for run in drawn
        )
        for check in gate(other, one, limits).checks:
            found[check.name.startswith("over")][check.outcome] += 1
    return found


def main() -> None:
    """Print how often each outcome is: pass, fail, can't tell, of 100 runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    print(f"PASS / FAIL / CAN'T TELL in {runs} runs, in percent\n")
    print("| families × prompts | rate | rise: same | other | worse | rate: same | worse |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for world in WORLDS:
        for rate in RATES:
            cases = ("same", "other", *(["worse"] if rate + PLANTED < 1 else []))
            found = {case: outcomes(world, rate, case, runs) for case in cases}
            columns = [(0, "same"), (0, "other"), (0, "worse"), (1, "same"), (1, "worse")]
            cells = [
                " / ".join(f"{100 * found[case][which][one] / runs:.0f}" for one in OUTCOMES)
                if "worse" in found or (not which and case in found)
                else "—"
                for which, case in columns
            ]
            name = world.name.partition(" | ")[0]
            print(f"| {name} | {100 * rate:g} % | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

"""Do rates corrected by people's labels of a fifth of the responses cover what people say of all?

    python benchmarks/corrections.py [--data ../shared/data] [--draws 400]

Five models' responses to XSTest with people's labels of all of them. A fifth of the responses is
labelled, of each model and prompt label a fifth of each kind of verdict (refused or answered,
certain or not), at least five, and the rules' rates are corrected by these labels. There are two
intervals, and each is held against what it is for:

- ``known_lower`` to ``known_upper``, for the rate of these very responses, against people's own
  rate of all of them. All samples that may be drawn are gone through, each as often as it is drawn:
  what a number of draws would come near to. Where the aim of 93 to 97 of 100 is missed, the samples
  are listed: an interval can only cover sums of their chances.
- ``lower`` to ``upper``, for prompts of this kind, against the same rate where it is that of the
  kind: every draw has its own prompts, as many as there are, drawn from them with replacement.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import hypergeom

from or_eval.analysis.corrections import corrected_mean, corrections
from or_eval.analysis.rates import MEASURES, rates
from or_eval.labelling.sampling import STRATUM
from or_eval.schema import Label
from or_eval.scorers.rules import classify_response

DATA = Path(__file__).parents[2] / "shared" / "data"
SHARE, LEAST = 0.2, 5
RAREST, EDGE = 1e-4, 1e-9
AIM = (0.93, 0.97)

Places: TypeAlias = NDArray[np.intp]


def read(path: Path) -> pd.DataFrame:
    """Give the rules' verdicts on the responses, as a responses frame, and people's labels."""
    rows = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            verdict = classify_response(row["response"], prompt=row["prompt"])
            kind = row["type"]
            rows.append(
                {
                    "id": row["id"],
                    "model": row["model"],
                    "label": (Label.TOXIC if kind.startswith("contrast_") else Label.SAFE).value,
                    "category": kind,
                    "refused": verdict.refused,
                    "certain": verdict.certain,
                    "decided_by": "rules" if verdict.label else None,
                    "people": float(row["human_label"] != "1_full_compliance"),
                }
            )
    same = dict.fromkeys(("language", "method", "seed_id", "pair_id", "error"))
    frame = pd.DataFrame(rows).assign(epoch=1, **same)
    return frame.astype({"refused": "boolean", "certain": "boolean"})


def kinds(responses: pd.DataFrame) -> list[Places]:
    """Give the places of the responses whose verdicts are of a kind, of one model and label."""
    words = responses[list(STRATUM)].astype("str")
    return list(words.groupby(list(STRATUM)).indices.values())


def sample_size(places: Places) -> int:
    """Give how many responses of a kind are labelled."""
    return min(len(places), max(LEAST, round(SHARE * len(places))))


def all_samples(responses: pd.DataFrame) -> Iterator[tuple[float, pd.Series]]:
    """Give each number of refusals that a sample may have of each kind: its chance, its truth.

    Args:
        responses: The responses of one model to prompts of one label.
    """
    people = responses["people"].to_numpy()
    outcomes = []
    for places in kinds(responses):
        refusals, answers = places[people[places] == 1], places[people[places] == 0]
        size = sample_size(places)
        outcomes.append(
            [
                (chance, refusals[:found], answers[: size - found])
                for found in range(size + 1)
                if (chance := hypergeom.pmf(found, len(places), len(refusals), size)) > RAREST
            ]
        )
    for drawn in product(*outcomes):
        truth = np.full(len(people), np.nan)
        for _, refusals, answers in drawn:
            truth[refusals], truth[answers] = 1, 0
        yield float(np.prod([chance for chance, *_ in drawn])), pd.Series(truth, responses.index)


def samples_of_these(responses: pd.DataFrame) -> pd.DataFrame:
    """Give for each sample its refusals, chance, bounds and whether these hold people's rate."""
    people, rows = responses["people"].mean(), []
    for chance, truth in all_samples(responses):
        found = corrections(responses, truth)
        assert found is not None
        _, lower, upper = corrected_mean(responses, found).estimate
        refusals = "+".join(f"{truth.iloc[places].sum():.0f}" for places in kinds(responses))
        held = lower - EDGE <= people <= upper + EDGE
        rows.append((refusals, chance, lower, upper, held))
    samples = pd.DataFrame(rows, columns=["refusals", "chance", "lower", "upper", "held"])
    return samples.assign(chance=samples["chance"] / samples["chance"].sum())


def corrected_rates(responses: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    """Label a fifth of the responses and give the corrected rates, by measure and model."""
    truth = pd.Series(np.nan, responses.index)
    for places in kinds(responses):
        chosen = random.choice(places, sample_size(places), replace=False)
        truth.iloc[chosen] = responses["people"].iloc[chosen]
    found = corrections(responses, truth)
    return rates(responses, found=found).set_index(["measure", "model"]).sort_index()


def other_prompts(responses: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    """Draw prompts with replacement, as many of each label; all models answer the same ones."""
    parts = []
    for _, of_label in responses.groupby("label"):
        rows = of_label.groupby("id").indices
        ids = random.choice(list(rows), len(rows))
        taken = of_label.iloc[np.concatenate([rows[key] for key in ids])]
        parts.append(taken.assign(id=np.repeat(np.arange(len(ids)), [len(rows[k]) for k in ids])))
    drawn = pd.concat(parts, ignore_index=True)
    return drawn.assign(id=drawn["label"] + drawn["id"].astype(str))


def coverage(
    responses: pd.DataFrame, draws: int, seed: int = 1
) -> tuple[pd.DataFrame, dict[tuple[str, str], pd.DataFrame]]:
    """Tell how often people's own rates lie within the intervals, and of what samples."""
    random = np.random.default_rng(seed)
    measure = responses["label"].map({label.value: name for label, name in MEASURES.items()})
    groups = responses.groupby([measure.rename("measure"), "model"])
    people = groups["people"].mean()
    these = {key: samples_of_these(group) for key, group in groups}
    plain = rates(responses).set_index(["measure", "model"]).sort_index()
    others, verdicts = pd.Series(0.0, people.index), pd.Series(0.0, people.index)
    for _ in range(draws):
        found = corrected_rates(other_prompts(responses, random), random)
        others += _within(people, found["lower"], found["upper"]) / draws
        verdicts += _within(people, found["raw_lower"], found["raw_upper"]) / draws
    table = pd.DataFrame(
        {
            "people": people,
            "rules": plain["rate"],
            "of these": [of["chance"] @ of["held"] for of in these.values()],
            "width": [of["chance"] @ (of["upper"] - of["lower"]) for of in these.values()],
            "rules cover": _within(people, plain["lower"], plain["upper"]),
            "of this kind": others,
            "rules cover these": verdicts,
        }
    )
    return table, these


def _within(people: pd.Series, lower: pd.Series, upper: pd.Series) -> pd.Series:
    return ((lower - EDGE <= people) & (people <= upper + EDGE)).astype("float64")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--draws", type=int, default=400)
    arguments = parser.parse_args()
    responses = read(arguments.data / "labels" / "xstest_human.jsonl.gz")
    table, samples = coverage(responses, arguments.draws)
    print(table.round(3).to_string())
    for key, of in samples.items():
        if not AIM[0] <= table.loc[key, "of these"] <= AIM[1]:
            print(f"\n{' of '.join(key)}: the samples, by refusals of each kind of verdict")
            print(of.round(4).to_string(index=False))


if __name__ == "__main__":
    main()

"""Do rates corrected by people's labels of a fifth of the responses cover what people say of all?

    python benchmarks/corrections.py [--data ../shared/data] [--draws 400]

Five models' responses to XSTest with people's labels of all of them. In each draw a fifth of the
responses is labelled, of each model and prompt label so many of each kind of verdict (refused or
answered, certain or not), at least five, and the rules' rates are corrected by these labels.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd

from or_eval.analysis.corrections import corrected_mean, corrections
from or_eval.intervals import rate_interval
from or_eval.scorers.rules import classify_response

DATA = Path(__file__).parents[2] / "shared" / "data"
SHARE, LEAST = 0.2, 5


def read(path: Path) -> pd.DataFrame:
    """Give the rules' verdicts on the responses, as a responses frame, and people's labels."""
    rows = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            verdict = classify_response(row["response"], prompt=row["prompt"])
            rows.append(
                {
                    "id": row["id"],
                    "model": row["model"],
                    "label": "toxic" if row["type"].startswith("contrast_") else "safe",
                    "refused": verdict.refused,
                    "certain": verdict.certain,
                    "decided_by": "rules" if verdict.label else None,
                    "people": float(row["human_label"] != "1_full_compliance"),
                }
            )
    return pd.DataFrame(rows).astype({"refused": "boolean", "certain": "boolean"})


def coverage(responses: pd.DataFrame, draws: int, seed: int = 1) -> pd.DataFrame:
    """Draw samples and count how often people's own rates lie within the intervals."""
    random = np.random.default_rng(seed)
    keys = responses[["model", "label", "refused", "certain"]].astype("object").fillna("none")
    kind = responses.groupby([keys[name] for name in keys]).ngroup()
    places = [np.flatnonzero(kind == number) for number in range(kind.max() + 1)]
    groups = dict(list(responses.groupby(["label", "model"])))
    corrected, sizes = dict.fromkeys(groups, 0), dict.fromkeys(groups, 0.0)
    for _ in range(draws):
        truth = pd.Series(np.nan, responses.index)
        for place in places:
            size = min(len(place), max(LEAST, round(SHARE * len(place))))
            chosen = random.choice(place, size, replace=False)
            truth.iloc[chosen] = responses["people"].iloc[chosen]
        found = corrections(responses, truth)
        assert found is not None
        for key, group in groups.items():
            _, lower, upper = corrected_mean(group, found).estimate
            corrected[key] += lower - 1e-9 <= group["people"].mean() <= upper + 1e-9
            sizes[key] += (upper - lower) / draws
    rows = []
    for key, group in groups.items():
        verdicts = group["refused"].dropna().astype("float64")
        raw = rate_interval(verdicts, list(verdicts.index))
        people = group["people"].mean()
        rows.append(
            {
                "prompts": key[0],
                "model": key[1],
                "people": people,
                "rules": raw.value,
                "corrected covers": corrected[key] / draws,
                "width": sizes[key],
                "uncorrected covers": float(raw.lower <= people <= raw.upper),
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--draws", type=int, default=400)
    arguments = parser.parse_args()
    responses = read(arguments.data / "labels" / "xstest_human.jsonl.gz")
    print(coverage(responses, arguments.draws).round(3).to_string(index=False))


if __name__ == "__main__":
    main()

"""Agreement of the rules with labels on public responses, and their speed: ``docs/scoring.md``.

    python benchmarks/agreement.py [--data ../shared/data/labels]

Nothing is fitted to these files, so there is no split to leave out: the thresholds of the decision
and the patterns were written by hand. Figures by model show how far the result hangs on one model.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from or_eval.analysis.agreement import kappa_of_table
from or_eval.scorers.rules import classify_response
from or_eval.scorers.verdict import Verdict

DATA = Path(__file__).parents[2] / "shared" / "data" / "labels"


class Labelled(NamedTuple):
    """A response, whether its label says it refuses, and what the rules say."""

    model: str
    refused: bool
    verdict: Verdict
    without_prompt: Verdict


def read(path: Path, label: str, refusals: set[str], left_out: set[str]) -> Iterator[Labelled]:
    """Classify every labelled response of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if row[label] not in left_out:
                yield Labelled(
                    row["model"],
                    row[label] in refusals,
                    classify_response(row["response"], prompt=row["prompt"]),
                    classify_response(row["response"]),
                )


def kappa(pairs: list[tuple[bool, bool | None]]) -> float:
    """Give Cohen's kappa of refused or not; an unscored response disagrees with every label."""
    import numpy as np

    table = np.zeros((2, 2))
    for label, said in pairs:
        table[int(label), int(not label if said is None else said)] += 1
    return float(kappa_of_table(table))


def report(name: str, rows: list[Labelled]) -> None:
    """Print the figures of one file."""
    certain = [row for row in rows if row.verdict.certain]
    right = sum(row.verdict.refused == row.refused for row in certain)
    cascade = [
        (row.refused, row.verdict.refused if row.verdict.certain else row.refused) for row in rows
    ]
    print(f"\n{name}: {len(rows):,} responses")
    alone = kappa([(row.refused, row.verdict.refused) for row in rows])
    unprompted = kappa([(row.refused, row.without_prompt.refused) for row in rows])
    print(f"  kappa, rules alone                    {alone:.3f}")
    print(f"  kappa, rules alone, prompt not given  {unprompted:.3f}")
    print(f"  unscored                              {sum(r.verdict.refused is None for r in rows)}")
    print(f"  certain                               {len(certain) / len(rows):.1%}")
    print(f"  right among the certain               {right / len(certain):.1%}")
    print(f"  kappa, cascade with a perfect judge   {kappa(cascade):.3f}")
    print(f"  judge calls of the cascade            {1 - len(certain) / len(rows):.1%}")
    models = defaultdict(list)
    for row in rows:
        models[row.model].append((row.refused, row.verdict.refused))
    for model in sorted(models):
        print(f"    kappa on {model:34}{kappa(models[model]):.3f}")


def speed(path: Path) -> None:
    """Print the median speed of three passes, start-up left out, and how time grows with length."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        texts = [(row["response"], row["prompt"]) for row in map(json.loads, file)]
    rates = []
    for _ in range(4):  # the first fills the automata
        start = time.process_time()
        for response, prompt in texts:
            classify_response(response, prompt=prompt)
        rates.append(len(texts) / (time.process_time() - start))
    print(f"\nspeed: {sorted(rates[1:])[1]:,.0f} responses/s on one core (median of three)")
    print("seconds for hostile responses of 10,000, 100,000 and 1,000,000 characters:")
    hostile = {
        "one word": "a",
        "nested quotes": '"',
        "refusals": "I'm sorry, but I can't help. ",
        "fences": "```\n",
        "zero widths": "\u200b",
        "combining marks": "a\u0301",
    }
    for name, unit in hostile.items():
        seconds = []
        for length in (10_000, 100_000, 1_000_000):
            text = unit * (length // len(unit))
            start = time.process_time()
            classify_response(text)
            seconds.append(f"{time.process_time() - start:.4f}")
        print(f"  {name:16}{'  '.join(seconds)}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    folder = parser.parse_args().data
    xstest = folder / "xstest_human.jsonl.gz"
    english = read(xstest, "human_label", {"2_full_refusal", "3_partial_refusal"}, set())
    report("xstest_human (human labels)", list(english))
    korean = read(
        folder / "k_overrefusal_dev.jsonl.gz", "llm_judge_label", {"refusal"}, {"deflection"}
    )
    report("k_overrefusal_dev (an LLM's labels, deflections left out)", list(korean))
    speed(xstest)


if __name__ == "__main__":
    main()

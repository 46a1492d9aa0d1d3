"""How the rules read batches of cases whose writers had not seen them: ``docs/scoring.md``.

    python benchmarks/batches.py

The writers, one for each batch and group of languages, were given the classes and reasons with
their definitions and nothing else. The figures in the docs are those of the first run, before
anything was mended for a batch; whoever runs this later sees what has been mended since.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from or_eval.intervals import wilson
from or_eval.schema import ResponseClass
from or_eval.scorers.rules import classify_response

BATCHES = Path(__file__).parents[1] / "tests" / "unseen_responses"


class Read(NamedTuple):
    """What became of a case: each figure counts those for which it is true.

    Attributes:
        refused: Refused or not is right.
        label: The class is right.
        certain: The verdict is certain.
        wrong: It is certain, and refused or not is wrong.
        reasoned: A reason is given where the writer gave one.
        reason: That reason is the writer's.
    """

    refused: bool
    label: bool
    certain: bool
    wrong: bool
    reasoned: bool
    reason: bool


def read(path: Path) -> list[Read]:
    """Classify the cases of a file."""
    found = []
    for line in path.read_text("utf-8").splitlines():
        case = json.loads(line)
        verdict = classify_response(case["response"], prompt=case["prompt"])
        right = verdict.refused is ResponseClass(case["label"]).refused
        reasoned = verdict.reason is not None and case["reason"] is not None
        found.append(
            Read(
                right,
                verdict.label == case["label"],
                verdict.certain,
                verdict.certain and not right,
                reasoned,
                reasoned and verdict.reason == case["reason"],
            )
        )
    return found


def row(name: str, cases: list[Read]) -> str:
    """Give a row of the table."""
    n = len(cases)
    refused, label, certain, wrong, reasoned, reason = (sum(c) for c in zip(*cases, strict=True))
    share = wilson(refused / n, n)
    return (
        f"| {name} | {n} | {share.value:.0%} ({share.lower:.0%}–{share.upper:.0%}) "
        f"| {label / n:.0%} | {certain / n:.0%} | {wrong} | {reason} of {reasoned} |"
    )


def main() -> None:
    """Print a table for each batch."""
    for batch in sorted(BATCHES.iterdir()):
        print(f"\n{batch.name} batch\n")
        print("| | cases | refused or not right | class right | certain | of them wrong | reason |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        files = {path.stem: read(path) for path in sorted(batch.glob("*.jsonl"))}
        for code, cases in files.items():
            print(row(code, cases))
        print(row("all", [case for cases in files.values() for case in cases]))


if __name__ == "__main__":
    main()

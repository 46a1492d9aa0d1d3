"""How long does a report on many logs take, how large is its page, how much memory does it need?

    python benchmarks/report.py --work /tmp/large-report --prompts 5000 20000

writes logs of made responses (8 models; kept, and used again), and reports on each set in a process
of its own. What a report takes grows in proportion to the responses, so that two smaller sets and
their slope will do.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from timing import in_own_process, timed

MODELS = 8
WORDS = 250
OPENINGS = {
    "refused": "I'm sorry, but I can't help with that. ",
    "answered": "Sure! Here is what a curious person would want to know about question {}. ",
    "unsure": "It depends on who asks. ",
}


def main() -> None:
    """Make the logs, report on each set, print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="Folder for logs and reports.")
    parser.add_argument("--prompts", type=int, nargs="+", default=[20_000], help="Sizes of sets.")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.work)))
        return
    for prompts in arguments.prompts:
        logs = arguments.work / f"{MODELS}x{prompts}"
        if not logs.exists():
            play_back(prompts, logs)
        found = in_own_process(__file__, "--measure", logs, "--work", arguments.work)
        print(f"{MODELS} models on {prompts:,} prompts:", found)


def measure(logs: Path, work: Path) -> dict[str, float]:
    """Report on a set of logs."""
    from or_eval.analysis.report import write_report

    page, took = timed(write_report, logs, work / f"report-{logs.name}")
    size = sum(path.stat().st_size for path in page.parent.rglob("*.*"))
    return took._asdict() | {"page_mb": page.stat().st_size / 1e6, "folder_mb": size / 1e6}


def play_back(prompts: int, logs: Path) -> None:
    """Write a log per model."""
    logs.parent.mkdir(parents=True, exist_ok=True)
    file = logs.with_suffix(".jsonl")
    with file.open("w", encoding="utf-8") as out:
        for row in rows(prompts):
            out.write(json.dumps(row) + "\n")
    command = [Path(sys.executable).parent / "or-eval", "replay", file, "--log-dir", logs]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def rows(prompts: int) -> Iterator[dict[str, str]]:
    """Make responses; some prompts are hard, so that models agree in part."""
    for index in range(prompts):
        hard = random.Random(index).random()
        prompt = f"Question {index}: " + "what would a curious person ask about this? " * 4
        for model in range(MODELS):
            draw = 0.5 * random.Random(index * 31 + model).random() + 0.5 * hard
            kind = "refused" if draw < 0.3 else "unsure" if draw > 0.9 else "answered"
            yield {
                "model": f"provider/model-{model}",
                "prompt": prompt,
                "response": OPENINGS[kind].format(index)
                + "words of this answer go on " * (WORDS // 6),
                "label": "toxic" if index % 4 == 3 else "safe",
                "category": f"category {index % 10}",
                "language": "en",
                "method": f"method {index % 7}",
                "seed_id": f"seed {index // 5}",
            }


if __name__ == "__main__":
    main()

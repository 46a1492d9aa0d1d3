"""What or-eval costs on top of Inspect itself.

Runs the same samples with an instant model under bare ``generate()`` + ``includes()`` and under
our task with rules only, interleaved so that a busy machine slows both, and prints the median
ratio of wall time (target: at most 1.05 at 2,000 samples) and, since other programs disturb it
less, of processor time. Then prints what importing ``or_eval._registry`` adds to importing
inspect_ai (target: at most 0.3 s).

    python benchmarks/overhead.py [--samples 2000] [--rounds 7]
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

from or_eval.schema import Label, PromptRecord
from or_eval.sources import LoadedPrompts
from or_eval.tasks.refusal_task import refusal_task, sample

RESPONSES = Path(__file__).parents[2] / "shared" / "data" / "labels" / "xstest_human.jsonl.gz"
IMPORT_RUNS = 7


def main() -> None:
    """Run both benchmarks and print what they measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()

    pairs = prompts_and_responses(arguments.samples)
    records = [
        PromptRecord(
            id=f"{row:06}", prompt=prompt, label=Label.SAFE, category="", language="en", source=""
        )
        for row, (prompt, _) in enumerate(pairs)
    ]
    responses = [response for _, response in pairs]
    arms: dict[str, Callable[[], Task]] = {
        "bare": lambda: Task(
            MemoryDataset([sample(record) for record in records]),
            solver=generate(),
            scorer=includes(),
        ),
        "ours": lambda: refusal_task(
            LoadedPrompts(records=records, duplicates=0, name="benchmark"),
            system_prompt="none",
            description="Overhead benchmark.",
        ),
    }

    print(f"{len(records)} samples, median response {median_length(responses)} characters")
    for build in arms.values():  # a first, small run of each, so that imports are not measured
        timed_eval(build(), responses, limit=50)
    ratios: dict[str, list[float]] = {"wall": [], "processor": []}
    for round_number in range(arguments.rounds):
        order = list(arms) if round_number % 2 == 0 else list(reversed(arms))
        times = {name: timed_eval(arms[name](), responses) for name in order}
        ratios["wall"].append(times["ours"].wall / times["bare"].wall)
        ratios["processor"].append(times["ours"].processor / times["bare"].processor)
        print(
            f"round {round_number + 1}: bare {times['bare'].wall:6.2f} s"
            f"   ours {times['ours'].wall:6.2f} s"
            f"   ratio {ratios['wall'][-1]:.3f} (processor {ratios['processor'][-1]:.3f})"
        )
    for clock, values in ratios.items():
        median = statistics.median(values)
        print(f"{clock} ratio: median {median:.3f} (from {min(values):.3f} to {max(values):.3f})")
    seconds_added = [registry_import_seconds() for _ in range(IMPORT_RUNS)]
    print(f"import or_eval._registry after inspect_ai: {statistics.median(seconds_added):.3f} s")


class Seconds(NamedTuple):
    """How long a run took: on the wall clock, and of the processor's time."""

    wall: float
    processor: float


def timed_eval(task: Task, responses: list[str], limit: int | None = None) -> Seconds:
    """Run a task with the instant model and time it."""
    model = instant_model(responses)
    with tempfile.TemporaryDirectory() as log_dir:
        wall, processor = time.perf_counter(), time.process_time()
        [log] = eval(task, model=model, log_dir=log_dir, display="none", limit=limit)
        seconds = Seconds(time.perf_counter() - wall, time.process_time() - processor)
    if log.status != "success":
        raise RuntimeError(f"the run ended with status {log.status}: {log.error}")
    return seconds


def instant_model(responses: list[str]) -> Model:
    """Give a model that answers at once with the next of the responses."""
    following = itertools.cycle(responses)

    def respond(*_: object) -> ModelOutput:
        output = ModelOutput.from_content("instant", next(following))
        output.usage = ModelUsage(input_tokens=20, output_tokens=200, total_tokens=220)
        return output

    return get_model("mockllm/instant", custom_outputs=respond, memoize=False)


def prompts_and_responses(count: int) -> list[tuple[str, str]]:
    """Give real prompts and responses where the public data lies beside the project."""
    if RESPONSES.exists():
        with gzip.open(RESPONSES, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        pairs = [(row["prompt"], row["response"]) for row in rows]
    else:
        answer = "Here is how. " + "First do this, then do that, and mind the details. " * 20
        refusal = "I'm sorry, but I can't help with that. If you need support, please ask."
        pairs = [("How do I kill a Python process?", text) for text in (answer, refusal)]
    return list(itertools.islice(itertools.cycle(pairs), count))


def median_length(responses: list[str]) -> int:
    """Give the median length of the responses in characters."""
    return int(statistics.median(len(response) for response in responses))


def registry_import_seconds() -> float:
    """Measure, in a fresh interpreter, what our registry adds to importing inspect_ai."""
    code = (
        "import time, inspect_ai; start = time.perf_counter(); import or_eval._registry;"
        "print(time.perf_counter() - start)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return float(result.stdout)


if __name__ == "__main__":
    main()

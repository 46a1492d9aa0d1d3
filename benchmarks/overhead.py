"""What or-eval costs on top of Inspect itself.

Runs the same samples with an instant model under bare ``generate()`` + ``includes()`` and under
our task with rules only, few of them and many, in turns so that a busy machine slows both. Of the
difference between many and few it prints what a sample takes of the processor's time, and the
ratio (target: at most 1.08): what a run takes once, such as loading patterns, is no part of it.
Then prints what importing ``or_eval._registry`` adds to importing inspect_ai (target: at most
0.3 s).

    python benchmarks/overhead.py [--few 300] [--many 1500] [--rounds 4]
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
    parser.add_argument("--few", type=int, default=300)
    parser.add_argument("--many", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=4)
    arguments = parser.parse_args()

    pairs = prompts_and_responses(arguments.many)
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
        processor_seconds(build(), responses, limit=50)
    slopes: dict[str, list[float]] = {name: [] for name in arms}
    for round_number in range(arguments.rounds):
        order = list(arms) if round_number % 2 == 0 else list(reversed(arms))
        few, many = (
            {name: processor_seconds(arms[name](), responses, limit) for name in order}
            for limit in (arguments.few, arguments.many)
        )
        for name in arms:
            slope = (many[name] - few[name]) / (arguments.many - arguments.few)
            slopes[name].append(1_000 * slope)
        bare, ours = slopes["bare"][-1], slopes["ours"][-1]
        print(
            f"round {round_number + 1}: bare {bare:.2f} ms a sample   ours {ours:.2f} ms"
            f"   ratio {ours / bare:.3f}"
        )
    ratios = [ours / bare for bare, ours in zip(slopes["bare"], slopes["ours"], strict=True)]
    print(
        f"ratio: median {statistics.median(ratios):.3f} (from {min(ratios):.3f} to "
        f"{max(ratios):.3f}), of the sums {sum(slopes['ours']) / sum(slopes['bare']):.3f}"
    )
    seconds_added = [registry_import_seconds() for _ in range(IMPORT_RUNS)]
    print(f"import or_eval._registry after inspect_ai: {statistics.median(seconds_added):.3f} s")


def processor_seconds(task: Task, responses: list[str], limit: int | None = None) -> float:
    """Run a task with the instant model; give the processor's time that it took."""
    model = instant_model(responses)
    with tempfile.TemporaryDirectory() as log_dir:
        started = time.process_time()
        [log] = eval(task, model=model, log_dir=log_dir, display="none", limit=limit)
        seconds = time.process_time() - started
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

"""What or-eval costs on top of Inspect itself.

Runs the same samples with an instant model under bare ``generate()`` + ``includes()`` and under
our task with rules only, few of them and many, in turns so that a busy machine slows both. Of the
difference between many and few it prints what a sample takes of the processor's time, and the
ratio (target: at most 1.08): what a run takes once, such as loading patterns, is no part of it.

    python benchmarks/overhead.py [--few 300] [--many 1500] [--rounds 4]
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

from or_eval.schema import Label, PromptRecord
from or_eval.sources import LoadedPrompts
from or_eval.tasks.refusal_task import refusal_task, sample
from timing import timed

RESPONSES = Path(__file__).parents[2] / "shared" / "data" / "labels" / "xstest_human.jsonl.gz"


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

    length = statistics.median(map(len, responses))
    print(f"{len(records)} samples, median response {length:.0f} characters")
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


def processor_seconds(task: Task, responses: list[str], limit: int | None = None) -> float:
    """Run a task with the instant model; give the processor's time that it took."""
    model = instant_model(responses)
    with tempfile.TemporaryDirectory() as log_dir:
        run = partial(eval, model=model, log_dir=log_dir, display="none", limit=limit)
        [log], took = timed(run, task)
    if log.status != "success":
        raise RuntimeError(f"the run ended with status {log.status}: {log.error}")
    return took.cpu


def instant_model(responses: list[str]) -> Model:
    """Give a model that answers at once with the next of the responses."""
    following = itertools.cycle(responses)

    def respond(*_: object) -> ModelOutput:
        output = ModelOutput.from_content("instant", next(following))
        output.usage = ModelUsage(input_tokens=20, output_tokens=200, total_tokens=220)
        return output

    return get_model("mockllm/instant", custom_outputs=respond, memoize=False)


def prompts_and_responses(count: int) -> list[tuple[str, str]]:
    """Give real prompts and responses, again and again."""
    with gzip.open(RESPONSES, "rt", encoding="utf-8") as lines:
        pairs = [(row["prompt"], row["response"]) for row in map(json.loads, lines)]
    return list(itertools.islice(itertools.cycle(pairs), count))


if __name__ == "__main__":
    main()

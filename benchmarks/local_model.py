"""How fast the local model is alone, and beside another busy process.

Rounds alternate between the two, so that whatever else the machine does slows both; what counts is
the median of each and their ratio (target: at least a third of the speed stays).

    python benchmarks/local_model.py [--rounds 5] [--threads 2]

`OMP_WAIT_POLICY=active` in front shows what waiting busily, llama.cpp's own way, costs.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import time

from inspect_ai.model import GenerateConfig, Model, get_model

MODEL = "gguf/smollm2-135m-instruct"
PROMPTS = 16
TOKENS = 24


def main() -> None:
    """Measure, and print medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--threads", type=int, help="threads that compute (default: the provider's)"
    )
    arguments = parser.parse_args()
    options = {} if arguments.threads is None else {"n_threads": arguments.threads}
    model = get_model(
        MODEL, config=GenerateConfig(max_tokens=TOKENS, temperature=0), memoize=False, **options
    )
    asyncio.run(measure(model, arguments.rounds))


async def measure(model: Model, rounds: int) -> None:
    """Time rounds alone and beside a busy process, in turns."""
    await tokens_per_second(model)  # loads the model
    alone, beside = [], []
    for number in range(1, rounds + 1):
        alone.append(await tokens_per_second(model))
        with_busy = multiprocessing.Process(target=spin, daemon=True)
        with_busy.start()
        try:
            beside.append(await tokens_per_second(model))
        finally:
            with_busy.kill()
            with_busy.join()
        print(f"round {number}: alone {alone[-1]:5.0f}   beside {beside[-1]:5.0f} tokens/s")
    medians = statistics.median(alone), statistics.median(beside)
    ratio = statistics.median(b / a for a, b in zip(alone, beside, strict=True))
    print(f"median: alone {medians[0]:.0f}, beside {medians[1]:.0f} tokens/s; ratio {ratio:.2f}")


async def tokens_per_second(model: Model) -> float:
    """Ask all prompts at once; give the tokens written a second."""
    started = time.perf_counter()
    outputs = await asyncio.gather(
        *(model.generate(f"Tell me about the number {n}.") for n in range(PROMPTS))
    )
    written = sum(output.usage.output_tokens for output in outputs if output.usage)
    return written / (time.perf_counter() - started)


def spin() -> None:
    """Keep a core busy until killed."""
    while True:
        pass


if __name__ == "__main__":
    main()

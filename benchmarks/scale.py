"""Time and memory of ``dedup`` on one and on several workers: ``docs/evidence/speed.md``.

    python benchmarks/scale.py [--rows 100000 1000000]

Near duplicates by their letters are looked for among texts of made-up words, in this process and
on a Ray of two workers on this machine. What workers do (MinHash, and comparing in groups) is
divided among them, what stays in the build's own process (putting rows into groups and handing
them out) isn't: the last line of each size is reckoned from that. It fails where the two give
different results.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dedup import planted_words
from or_eval.dataset_builders.engine.rows import in_batches
from or_eval.dataset_builders.engine.workers import Map, here, on_ray
from or_eval.dataset_builders.similarity.near_by_letters import bands_of, near_texts_within
from or_eval.dataset_builders.stages.dedup import LETTERS_THRESHOLD
from timing import peak_mb, timed

BATCH = 4096
RECKONED = 32
MINHASH = partial(bands_of, threshold=LETTERS_THRESHOLD)


class Measured(NamedTuple):
    """Seconds until all texts had their bands, of comparing in this process, of groups."""

    minhash: float
    comparing: float
    own: float


def main() -> None:
    """Measure, and reckon the rest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    sizes = parser.parse_args().rows
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    # The workers are started, and have loaded what they need, before anything is measured.
    list(on_ray(MINHASH, [["one text"]] * 8))
    print("rows, workers: MinHash, comparing, own, all; peak of the build's own process")
    for rows in sizes:
        texts = planted_words(rows).prompts
        one, alone = measured(texts, here)
        line(rows, 1, one)
        two, both = measured(texts, on_ray)
        line(rows, 2, two)
        if not (alone == both).all():
            raise SystemExit("the two give different results")
        shared = Measured(one.minhash / RECKONED, one.comparing / RECKONED, one.own)
        line(rows, RECKONED, shared, "reckoned")


def measured(texts: list[str], workers: Map) -> tuple[Measured, np.ndarray]:
    """Give what a run took, and which text each duplicates."""
    seconds = 0.0

    def timing(function: Callable[[Any], Any], parts: Iterable[Any]) -> Iterator[Any]:
        nonlocal seconds
        for part in parts:
            start = time.perf_counter()
            made = function(part)
            seconds += time.perf_counter() - start
            yield made

    bands, minhash = timed(lambda: np.concatenate([*workers(MINHASH, in_batches(texts, BATCH))]))
    compared = timing if workers is here else workers
    found, rest = timed(near_texts_within, texts, bands, LETTERS_THRESHOLD, compared)
    return Measured(minhash.seconds, seconds, rest.seconds - seconds), found.of


def line(rows: int, workers: int, took: Measured, how: str = "measured") -> None:
    """Print what a run took."""
    times = ", ".join(f"{seconds:.1f} s" for seconds in (*took, sum(took)))
    print(f"{rows:,}, {workers}: {times}; {peak_mb():.0f} MB ({how})", flush=True)


if __name__ == "__main__":
    main()

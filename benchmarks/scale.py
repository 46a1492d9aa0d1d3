"""Time and memory of row logic on one and on several workers: ``docs/building.md``.

    python benchmarks/scale.py [--rows 100000 1000000]

Near duplicates by their letters are looked for among texts of made-up words, in this process and
on a Ray of two workers on this machine. What runs on workers (MinHash) and what runs in the build's
own process (comparing what it proposes) is measured apart, so that other numbers of workers can be
reckoned: the first is divided among them, the second stays. Each line says which it is. It fails
where the two give different results.
"""

from __future__ import annotations

import argparse
import resource
import time
from functools import partial

import numpy as np

from dedup import planted_words
from or_eval.dataset_builders.engine.rows import in_batches
from or_eval.dataset_builders.engine.workers import Map, here, on_ray
from or_eval.dataset_builders.similarity.near_by_letters import bands_of, near_texts_within
from or_eval.dataset_builders.stages.dedup import LETTERS_THRESHOLD

BATCH = 4096
RECKONED = (32, 256)


def main() -> None:
    """Measure, and reckon the rest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    # The workers are started, and have loaded what they need, before anything is measured.
    list(on_ray(partial(bands_of, threshold=LETTERS_THRESHOLD), [["one text"]] * 8))
    print(f"{'rows':>10} {'workers':>8} {'MinHash':>9} {'comparing':>9} {'GB':>6}")
    for rows in parser.parse_args().rows:
        texts = planted_words(rows).prompts
        one, alone = measured(texts, here)
        line(rows, 1, *one, "measured")
        two, both = measured(texts, on_ray)
        line(rows, 2, *two, "measured (the build's own process)")
        if not (alone == both).all():
            raise SystemExit("the two give different results")
        for workers in RECKONED:
            line(rows, workers, one[0] / workers, one[1], one[2], "reckoned from one worker")
    scale = 10_000_000 / rows
    for workers in (1, *RECKONED):
        reckoned = one[0] * scale / workers, one[1] * scale, one[2] * scale
        line(
            10_000_000, workers, *reckoned, f"extrapolated from {rows:,} rows, as if it were linear"
        )


def measured(texts: list[str], workers: Map) -> tuple[tuple[float, float, float], np.ndarray]:
    """Give the seconds of both parts with the peak memory, and which text each duplicates."""
    start = time.perf_counter()
    bands = list(workers(partial(bands_of, threshold=LETTERS_THRESHOLD), in_batches(texts, BATCH)))
    parallel = time.perf_counter() - start
    start = time.perf_counter()
    found = near_texts_within(texts, np.concatenate(bands), LETTERS_THRESHOLD)
    serial = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return (parallel, serial, peak), found.of


def line(rows: int, workers: int, parallel: float, serial: float, peak: float, how: str) -> None:
    """Print a line of the table."""
    print(f"{rows:>10,} {workers:>8} {parallel:>7.1f} s {serial:>7.1f} s {peak:>6.2f}  {how}")


if __name__ == "__main__":
    main()

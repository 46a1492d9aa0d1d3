"""Time and memory of ``dedup`` on one and on several workers: ``docs/building.md``.

    python benchmarks/scale.py [--rows 100000 1000000]
    python benchmarks/scale.py --ray-data [--rows 100000]

Near duplicates by their letters are looked for among texts of made-up words, in this process and
on a Ray of two workers on this machine. Three parts are measured apart, so that other numbers of
workers can be reckoned: the parts that workers do (MinHash, and comparing in groups) are divided
among them, what stays in the build's own process (putting rows into groups and handing them out)
isn't. Each line says which it is. It fails where the two give different results.

``--ray-data`` has MinHash computed by Ray's tasks, as a build does, and by Ray Data from a Parquet
file of the same texts, in turn.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dedup import planted_words
from or_eval.dataset_builders.engine.rows import in_batches
from or_eval.dataset_builders.engine.workers import Map, here, on_ray
from or_eval.dataset_builders.similarity.near_by_letters import bands_of, near_texts_within
from or_eval.dataset_builders.stages.dedup import LETTERS_THRESHOLD

BATCH = 4096
RECKONED = (32, 256)
MINHASH = partial(bands_of, threshold=LETTERS_THRESHOLD)


class Measured(NamedTuple):
    """What a run took.

    Attributes:
        minhash: Seconds until all texts had their bands.
        comparing: Seconds spent on comparing, where that was in this process.
        own: Seconds that this process spent on groups.
        peak: Most gigabytes that this process held.
    """

    minhash: float
    comparing: float
    own: float
    peak: float

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.minhash + self.comparing + self.own


class Timed:
    """Has work done in this process, and measures the time that it takes."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, function: Callable[[Any], Any], parts: Iterable[Any]) -> Iterator[Any]:
        for part in parts:
            start = time.perf_counter()
            made = function(part)
            self.seconds += time.perf_counter() - start
            yield made


def main() -> None:
    """Measure, and reckon the rest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--ray-data", action="store_true")
    arguments = parser.parse_args()
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    # The workers are started, and have loaded what they need, before anything is measured.
    list(on_ray(MINHASH, [["one text"]] * 8))
    for rows in arguments.rows if arguments.ray_data else ():
        tasks_and_data(planted_words(rows).prompts)
    if arguments.ray_data:
        return
    base = peak()
    titles = ("workers", "MinHash", "comparing", "own", "all", "GB")
    print(f"{'rows':>10}", *(f"{title:>9}" for title in titles))
    for rows in arguments.rows:
        texts = planted_words(rows).prompts
        one, alone = measured(texts, here)
        line(rows, 1, one, "measured")
        two, both = measured(texts, on_ray)
        line(rows, 2, two, "measured; GB of the build's own process")
        if not (alone == both).all():
            raise SystemExit("the two give different results")
        for workers in RECKONED:
            line(rows, workers, divided(one, workers), "reckoned from one worker")
    scale = 10_000_000 / rows
    for workers in (1, 2, *RECKONED):
        larger = Measured(*(scale * part for part in one))
        larger = divided(larger._replace(peak=base + scale * (one.peak - base)), workers)
        line(10_000_000, workers, larger, f"extrapolated from {rows:,} rows, as if it were linear")


def measured(texts: list[str], workers: Map) -> tuple[Measured, np.ndarray]:
    """Give what a run took, and which text each duplicates."""
    start = time.perf_counter()
    bands = np.concatenate(list(workers(MINHASH, in_batches(texts, BATCH))))
    minhash = time.perf_counter() - start
    start = time.perf_counter()
    timed = Timed()
    compared = timed if workers is here else workers
    found = near_texts_within(texts, bands, LETTERS_THRESHOLD, compared)
    rest = time.perf_counter() - start - timed.seconds
    return Measured(minhash, timed.seconds, rest, peak()), found.of


def peak() -> float:
    """Give the most gigabytes that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def divided(one: Measured, workers: int) -> Measured:
    """Share out what workers do."""
    return one._replace(minhash=one.minhash / workers, comparing=one.comparing / workers)


def line(rows: int, workers: int, took: Measured, how: str) -> None:
    """Print a line of the table."""
    print(
        f"{rows:>10,} {workers:>9} {took.minhash:>7.1f} s {took.comparing:>7.1f} s "
        f"{took.own:>7.1f} s {took.seconds:>7.1f} s {took.peak:>9.2f}  {how}",
        flush=True,
    )


def tasks_and_data(texts: list[str]) -> None:
    """Have the same computed by tasks and by Ray Data, twice in turn."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    import ray

    ray.data.DataContext.get_current().execution_options.preserve_order = True
    ray.data.DataContext.get_current().enable_progress_bars = False

    def of_rows(rows: pa.Table) -> dict[str, np.ndarray]:
        return {"bands": bands_of(rows["prompt"].to_pylist(), LETTERS_THRESHOLD)}

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        pq.write_table(pa.table({"prompt": texts}), path, row_group_size=BATCH)
        for _ in range(2):
            start = time.perf_counter()
            by_tasks = np.concatenate(list(on_ray(MINHASH, in_batches(texts, BATCH))))
            tasks = time.perf_counter() - start
            start = time.perf_counter()
            rows = ray.data.read_parquet(str(path))
            made = rows.map_batches(of_rows, batch_format="pyarrow", batch_size=BATCH)
            parts = made.iter_batches(batch_format="numpy", batch_size=None)
            by_data = np.concatenate([part["bands"] for part in parts])
            data = time.perf_counter() - start
            if not (by_tasks == by_data).all():
                raise SystemExit("the two give different results")
            print(f"{len(texts):,} rows: tasks {tasks:.1f} s, Ray Data {data:.1f} s", flush=True)


if __name__ == "__main__":
    main()

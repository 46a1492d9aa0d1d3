"""Refusal-testing tasks."""

from or_eval.tasks.benchmarks import (
    lto,
    or_bench_80k,
    or_bench_hard_1k,
    or_bench_toxic,
    prompts,
    starter,
    xstest,
)

__all__ = [
    "lto",
    "or_bench_80k",
    "or_bench_hard_1k",
    "or_bench_toxic",
    "prompts",
    "starter",
    "xstest",
]

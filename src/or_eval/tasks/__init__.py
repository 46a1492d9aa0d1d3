"""Refusal-testing tasks, one module a benchmark family."""

from or_eval.tasks.lto import lto
from or_eval.tasks.or_bench import or_bench_80k, or_bench_hard_1k, or_bench_toxic
from or_eval.tasks.prompts import prompts
from or_eval.tasks.replay import replay
from or_eval.tasks.starter import starter
from or_eval.tasks.xstest import xstest

__all__ = [
    "lto",
    "or_bench_80k",
    "or_bench_hard_1k",
    "or_bench_toxic",
    "prompts",
    "replay",
    "starter",
    "xstest",
]

"""The simulated worlds of ``benchmarks/planted_effects.py``."""

from __future__ import annotations

from benchmark_modules import benchmark

_BENCHMARK = benchmark("planted_effects")
found, world = _BENCHMARK.found, _BENCHMARK.world

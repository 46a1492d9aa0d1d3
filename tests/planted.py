"""The simulated worlds of ``benchmarks/planted_effects.py``."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_PATH = Path(__file__).parents[1] / "benchmarks" / "planted_effects.py"
_SPEC = spec_from_file_location("planted_effects", _PATH)
assert _SPEC is not None
assert _SPEC.loader is not None
_BENCHMARK = sys.modules[_SPEC.name] = module_from_spec(_SPEC)
_SPEC.loader.exec_module(_BENCHMARK)
found, world = _BENCHMARK.found, _BENCHMARK.world

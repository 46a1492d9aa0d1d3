"""The modules of ``benchmarks/``, which simulate worlds that tests look at as well."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

_FOLDER = str(Path(__file__).parents[1] / "benchmarks")


def benchmark(name: str) -> ModuleType:
    """Import a benchmark, which may import others of the folder."""
    sys.path.insert(0, _FOLDER)
    try:
        return import_module(name)
    finally:
        sys.path.remove(_FOLDER)

"""The stages that recipes are made of: a module each, which defines ``STAGE``."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from or_eval.dataset_builders.engine.ports import Stage


@cache
def stage_kinds() -> tuple[str, ...]:
    """Give the names of all stages, which are those of this folder's modules."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


def stage(kind: str) -> Stage:
    """Give a stage by its name.

    Raises:
        KeyError: There is no such stage.
    """
    if kind not in stage_kinds():
        raise KeyError(kind)
    found: Stage = import_module(f"{__name__}.{kind}").STAGE
    return found

"""Public prompt sets, and the one loader of prompts."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from or_eval.sources.catalogue import Entry, catalogue

if TYPE_CHECKING:
    from or_eval.sources.errors import DataError
    from or_eval.sources.loader import LoadedPrompts, load_prompts

# What Inspect comes with, which takes a second: the catalogue needs none of it.
_PUBLIC = {"DataError": "errors", "LoadedPrompts": "loader", "load_prompts": "loader"}

__all__ = ["DataError", "Entry", "LoadedPrompts", "catalogue", "load_prompts"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"or_eval.sources.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module 'or_eval.sources' has no attribute '{name}'")

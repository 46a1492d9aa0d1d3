"""Public prompt sets, and the one loader of prompts."""

from or_eval.sources.catalogue import Entry, catalogue
from or_eval.sources.errors import DataError
from or_eval.sources.loader import LoadedPrompts, load_prompts

__all__ = ["DataError", "Entry", "LoadedPrompts", "catalogue", "load_prompts"]

"""What or-eval uses of Inspect beyond its public interface: all of it, and nowhere else.

A release of Inspect may move any of these; ``tests/test_inspect_private.py`` then names which.
Each name is looked up when it is first imported, so that using one loads no other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspect_ai._util.config import parse_cli_args as parse_cli_args
    from inspect_ai._util.error import PrerequisiteError as PrerequisiteError
    from inspect_ai._util.file import file as file
    from inspect_ai._util.file import filesystem as filesystem
    from inspect_ai._util.http import status_code_of as status_code_of
    from inspect_ai._util.registry import set_registry_info as set_registry_info
    from inspect_ai.log._samples import sample_active as sample_active
    from inspect_ai.model._cache import CacheEntry as CacheEntry
    from inspect_ai.model._cache import cache_store as cache_store
    from inspect_ai.model._generate_config import active_generate_config as active_generate_config
    from inspect_ai.model._model_info import _get_model_info_direct as _get_model_info_direct
    from inspect_ai.model._model_output import as_stop_reason as as_stop_reason
    from inspect_ai.model._providers.openai_compatible import (
        OpenAICompatibleAPI as OpenAICompatibleAPI,
    )

WHERE = {
    # An error that Inspect prints as one line, without a traceback.
    "PrerequisiteError": ("inspect_ai._util.error", "PrerequisiteError"),
    # The settings in force, to ask for structured output only where nobody else has.
    "active_generate_config": ("inspect_ai.model._generate_config", "active_generate_config"),
    # The HTTP status behind a provider's error.
    "status_code_of": ("inspect_ai._util.http", "status_code_of"),
    # The sample that is running, for what a provider has to know of it.
    "sample_active": ("inspect_ai.log._samples", "sample_active"),
    # Providers' words for why a response ended.
    "as_stop_reason": ("inspect_ai.model._model_output", "as_stop_reason"),
    # Inspect's table of models alone: the public function loads models that the table doesn't have.
    "_get_model_info_direct": ("inspect_ai.model._model_info", "_get_model_info_direct"),
    # The base of our own local providers.
    "OpenAICompatibleAPI": ("inspect_ai.model._providers.openai_compatible", "OpenAICompatibleAPI"),
    # Answers that logs hold already, handed to Inspect's cache.
    "CacheEntry": ("inspect_ai.model._cache", "CacheEntry"),
    "cache_store": ("inspect_ai.model._cache", "cache_store"),
    # -M and -T as Inspect reads them.
    "parse_cli_args": ("inspect_ai._util.config", "parse_cli_args"),
    # A pool of endpoints goes by the name of its model.
    "set_registry_info": ("inspect_ai._util.registry", "set_registry_info"),
    # Files where logs may lie: here, on S3, ...
    "filesystem": ("inspect_ai._util.file", "filesystem"),
    "file": ("inspect_ai._util.file", "file"),
}
"""Where each name stands in Inspect: its module and its name there."""


def __getattr__(name: str) -> Any:
    if name not in WHERE:
        raise AttributeError(f"module 'or_eval.inspect_private' has no attribute '{name}'")
    module, there = WHERE[name]
    return getattr(import_module(module), there)


def eval_is_running() -> bool:
    """Say whether Inspect is in an eval now, as opposed to scoring a log."""
    from inspect_ai._eval import eval

    return eval._eval_async_running

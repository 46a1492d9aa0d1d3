"""What or-eval uses of Inspect beyond its public interface: all of it, and nowhere else.

A release of Inspect may move any of these. What then takes a name's place stands here as well: it
does without, or says in one line what can't be done with this release. Each name is looked up
when it is first imported, so that using one loads no other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspect_ai._util.error import PrerequisiteError as PrerequisiteError
    from inspect_ai._util.registry import set_registry_info as set_registry_info
    from inspect_ai.model._generate_config import active_generate_config as active_generate_config
    from inspect_ai.model._model_info import _get_model_info_direct as _get_model_info_direct
    from inspect_ai.model._providers.openai_compatible import (
        OpenAICompatibleAPI as OpenAICompatibleAPI,
    )

WHERE = {
    # An error that Inspect prints as one line, without a traceback.
    "PrerequisiteError": ("inspect_ai._util.error", "PrerequisiteError"),
    # The settings in force, to ask for structured output only where nobody else has.
    "active_generate_config": ("inspect_ai.model._generate_config", "active_generate_config"),
    # The sample that is running, for what a provider has to know of it.
    "sample_active": ("inspect_ai.log._samples", "sample_active"),
    # Inspect's table of models alone: the public function loads models that the table doesn't have.
    "_get_model_info_direct": ("inspect_ai.model._model_info", "_get_model_info_direct"),
    # The base of our own local providers.
    "OpenAICompatibleAPI": ("inspect_ai.model._providers.openai_compatible", "OpenAICompatibleAPI"),
    # A pool of endpoints goes by the name of its model.
    "set_registry_info": ("inspect_ai._util.registry", "set_registry_info"),
    # Whether a model is chosen, so that models are bound to roles.
    "active_model": ("inspect_ai.model._model", "active_model"),
    # Whether Inspect is in an eval.
    "_eval_async_running": ("inspect_ai._eval.eval", "_eval_async_running"),
}
"""Where each name stands in Inspect: its module and its name there."""


def __getattr__(name: str) -> Any:
    if name not in WHERE:
        raise AttributeError(f"module 'or_eval.inspect_private' has no attribute '{name}'")
    found = _found(name)
    return _INSTEAD[name]() if found is None else found


def _found(name: str) -> Any:
    """Give what stands in Inspect under a name; None where this release has moved it."""
    module, there = WHERE[name]
    try:
        return getattr(import_module(module), there, None)
    except ImportError:
        return None


def eval_is_running() -> bool:
    """Say whether Inspect is in an eval now, as opposed to scoring a log.

    False with a release that doesn't say.
    """
    return bool(_found("_eval_async_running"))


def running_epoch() -> int | None:
    """Give the epoch of the sample that is running, 1 outside of one.

    None with a release of Inspect that doesn't say.
    """
    active = _found("sample_active")
    if active is None:
        return None
    sample = active()
    return sample.epoch if sample is not None else 1


def errors_retried() -> list[str]:
    """Give the errors after which the running sample was begun again, as Inspect writes them.

    None are told by a release of Inspect that doesn't say.
    """
    active = _found("sample_active")
    sample = active() if active is not None else None
    return [error.message for error in sample.error_retries] if sample is not None else []


@cache
def _error() -> type[Exception]:
    class PrerequisiteError(Exception):
        def __init__(self, message: Any) -> None:
            super().__init__(str(message))
            self.message = message

    return PrerequisiteError


def _stopping(what: str) -> Callable[..., Any]:
    """Give a function that says what can't be done with this release."""

    def stop(*_: Any, **__: Any) -> None:
        raise __getattr__("PrerequisiteError")(
            f"{what} isn't available in inspect-ai {version('inspect-ai')}: "
            "take the release that docs/compatibility.md names"
        )

    return stop


def _local_provider() -> type[Any]:
    stop = _stopping("Models of gguf/… and classifier/…")
    return type("OpenAICompatibleAPI", (), {"__init__": stop})


def _settings() -> Callable[[], Any]:
    from inspect_ai.model import GenerateConfig

    return GenerateConfig


_INSTEAD: dict[str, Callable[[], Any]] = {
    "PrerequisiteError": _error,
    "active_generate_config": _settings,
    "_get_model_info_direct": lambda: lambda model: None,
    "OpenAICompatibleAPI": _local_provider,
    "set_registry_info": lambda: _stopping("Pools of endpoints"),
}
"""What takes the place of a name that others import and that Inspect no longer has."""


def roles_are_bound() -> bool:
    """Say whether Inspect is making a task of a run, for which models are bound to roles by now.

    Who makes a task in Python binds them later. An eval set makes its tasks before an eval runs,
    and leaves what is bound behind; as a command it is alone. False with a release that doesn't
    say: a missing judge is then told at the first sample.
    """
    import click

    if eval_is_running():
        return True
    active = _found("active_model")
    return (
        active is not None
        and active() is not None
        and click.get_current_context(silent=True) is not None
    )

"""Libraries that only some installations have."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rich.markup import escape

from or_eval.inspect_private import PrerequisiteError
from or_eval.sources.errors import how_to_install


def needed(module: str, extra: str, said: str) -> Any:
    """Import a library of an extra.

    Args:
        module: The library's module.
        extra: The extra that installs it.
        said: What to say where it is missing, before the command.

    Raises:
        PrerequisiteError: It isn't installed.
    """
    try:
        return import_module(module)
    except ImportError as missing:
        raise PrerequisiteError(escape(f"{said}: {how_to_install(extra)}")) from missing


def scipy_stats() -> Any:
    """Give ``scipy.stats``."""
    return needed("scipy.stats", "report", "These statistics need scipy")

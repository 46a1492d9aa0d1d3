"""What a report needs installed, checked before the logs are read."""

from __future__ import annotations

from importlib.util import find_spec

from inspect_ai._util.error import PrerequisiteError
from rich.markup import escape

_MODULES = ("scipy", "altair", "vl_convert", "jinja2")


def check_needs() -> None:
    """Check that the extra ``[report]`` is installed.

    Raises:
        PrerequisiteError: Some of it is missing.
    """
    missing = [name for name in _MODULES if find_spec(name) is None]
    if missing:
        raise PrerequisiteError(
            escape(f"A report needs {', '.join(missing)}: pip install 'or-eval[report]'")
        )

"""scipy, which the statistics beyond rates need and which is an extra."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from or_eval.inspect_private import PrerequisiteError


def scipy_stats() -> Any:
    """Give ``scipy.stats``.

    Raises:
        PrerequisiteError: scipy isn't installed.
    """
    try:
        from scipy import stats
    except ImportError as missing:
        raise PrerequisiteError(
            escape("These statistics need scipy: pip install 'or-eval[report]'")
        ) from missing
    return stats

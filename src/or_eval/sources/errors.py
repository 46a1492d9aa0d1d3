"""The one error of this folder: data from outside that can't be used."""

from __future__ import annotations

from rich.markup import escape

from or_eval.inspect_private import PrerequisiteError


class DataError(PrerequisiteError):
    """Says in one line what is wrong with data, where, and what to do.

    It is Inspect's own error for missing prerequisites, so Inspect and the command line print the
    line without a traceback. ``str(error)`` is the plain line.
    """

    def __init__(self, message: str) -> None:
        # Inspect prints `message` as Rich markup, which would swallow what stands in brackets.
        super().__init__(escape(message))


def shown(value: object) -> str:
    """Quote a value for an error line: short, and with line breaks and the like escaped."""
    quoted = repr(value)
    return quoted if len(quoted) <= 60 else quoted[:56] + "…" + quoted[0]

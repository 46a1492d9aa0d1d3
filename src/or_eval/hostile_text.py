"""Text of models and of strangers, made fit to be looked at and put into a page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

# Characters that nobody sees, as ranges of a regular expression.
CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
"""C0 and C1 controls, but tab and line breaks."""
DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Bidirectional controls: what reorders text."""
TAGS = "\ufff9-\ufffb\U000e0000-\U000e007f"
"""Interlinear marks and tag characters: what hides text."""
FILLERS = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U0001d173-\U0001d17a\U000e0080-\U000e0fff"
)
"""Soft hyphen, fillers, zero-width characters, variation selectors."""
JOINERS = "\u200c\u200d"
"""With which Persian and Hindi spell, and emoji are joined."""

# Line and paragraph separators and halves of surrogate pairs hide or reorder as well.
_INVISIBLE = re.compile(f"[{CONTROLS}\r{DIRECTIONS}{TAGS}\u2028\u2029\ud800-\udfff]")
_HALF = re.compile("[\ud800-\udfff]")
_IN_SCRIPT = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}
_IN_SCRIPT_PATTERN = re.compile("[<>&\u2028\u2029]")


def whole(text: str) -> str:
    """Mark halves of characters by U+FFFD, one for one: they are no UTF-8, and so no text to re2.

    A model, or a program that cuts its text, may leave half of an emoji.
    """
    return text if text.isascii() else _HALF.sub("\ufffd", text)


def whole_cell(value: Any) -> Any:
    """Mark halves of characters in all texts of a value, also within lists and objects."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {whole_cell(key): whole_cell(member) for key, member in value.items()}
    return [whole_cell(member) for member in value] if isinstance(value, list) else value


def visible(text: str) -> str:
    """Write characters that hide or reorder text as ``[U+202E]``."""
    return _INVISIBLE.sub(lambda found: f"[U+{ord(found[0]):04X}]", text.replace("\r\n", "\n"))


def shortened(text: str, limit: int) -> str:
    """Cut a text to so many characters, and say so."""
    return text if len(text) <= limit else text[:limit] + _cut_note(text, limit)


def marked_parts(text: str, spans: Iterable[tuple[int, int]], limit: int) -> list[str]:
    """Make a text visible and cut it, in parts: every second one lies within a span.

    Args:
        text: The text.
        spans: Where passages start and end in it.
        limit: Characters to keep; a note at the end says what was cut.
    """
    parts, at = [], 0
    for start, end in sorted(spans):
        begin, stop = max(start, at), min(end, limit)
        if begin < stop:
            parts += [visible(text[at:begin]), visible(text[begin:stop])]
            at = stop
    rest = visible(text[at:limit])
    return [*parts, rest if len(text) <= limit else rest + _cut_note(text, limit)]


def script_json(value: Any) -> str:
    """Write JSON that can stand within ``<script type="application/json">``.

    Nothing in it can end the element or start a comment; it reads back as what it was.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _IN_SCRIPT_PATTERN.sub(lambda found: _IN_SCRIPT[found[0]], text)


def _cut_note(text: str, limit: int) -> str:
    return f" … ({len(text) - limit:,} more characters)"

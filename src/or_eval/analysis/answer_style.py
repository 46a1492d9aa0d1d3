"""What a response looks like: its form and its length, whatever it says."""

from __future__ import annotations

import re

_FORMS = {
    "data": re.compile(r"^\s*[\[{].*[\]}]\s*$", re.DOTALL),
    "code": re.compile(r"^\s*(```|~~~)", re.MULTILINE),
    "table": re.compile(r"^\s*\|.*\|\s*$", re.MULTILINE),
    "sections": re.compile(r"^\s*(#{1,6}\s|\*\*[^*\n]+\*\*:?\s*$)", re.MULTILINE),
    "list": re.compile(
        r"^\s*([-*•]|\d{1,3}[.)、])\s*\S.*\n+\s*([-*•]|\d{1,3}[.)、])\s*\S", re.MULTILINE
    ),
}
_LENGTHS = {150: "brief", 800: "short", 3000: "long"}
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Letters of which one says as much as three of others."""


def answer_style(text: str) -> str:
    """Name the style of a response, as ``long list`` or ``brief prose``.

    Of several forms the one least like prose counts.
    """
    form = next((name for name, pattern in _FORMS.items() if pattern.search(text)), "prose")
    length = len(text) + 2 * len(_WIDE.findall(text))
    size = next((word for limit, word in _LENGTHS.items() if length <= limit), "very long")
    return f"{size} {form}"

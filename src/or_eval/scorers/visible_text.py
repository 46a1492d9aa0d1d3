"""The part of a text that a person sees."""

from __future__ import annotations

import re

# Characters that a person reading the log can't see, and that a judge reads all the same: control
# characters, soft hyphen, fillers, zero-width and bidirectional controls, variation selectors,
# interlinear marks, tags. The joiners U+200C and U+200D stay: Persian and Hindi spell with them.
_HIDDEN = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_ANY_HIDDEN = re.compile(f"[{_HIDDEN}]")
# The joiners, the blank Braille cell and broken characters stay in a text, but make none.
_SEEN = re.compile(rf"[^\s\u200c\u200d\u2800\ufffd\ud800-\udfff{_HIDDEN}]")
_LINE_BREAK = re.compile("\r\n?|[\u2028\u2029]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# As pandas, Python, JSON, JavaScript, SQL and spreadsheets write a value that is missing.
_WORDS_FOR_NOTHING = {"nan", "NaN", "<NA>", "None", "null", "undefined", "NULL", "N/A", "#N/A"}


def whole(text: str) -> str:
    """Mark halves of characters by U+FFFD, one for one: they are no UTF-8, and so no text to re2.

    A model, or a program that cuts its text, may leave half of an emoji.
    """
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def visible_text(text: str) -> str:
    """Drop the characters of a text that nobody sees, and make its line breaks plain."""
    return whole(_ANY_HIDDEN.sub("", _LINE_BREAK.sub("\n", text)))


def stands_for_nothing(text: str) -> bool:
    """Tell whether a text is but the word that a program writes where it has none."""
    return text.strip() in _WORDS_FOR_NOTHING


def has_visible_text(text: str) -> bool:
    """Tell whether a person would see anything of a text."""
    return _SEEN.search(text) is not None

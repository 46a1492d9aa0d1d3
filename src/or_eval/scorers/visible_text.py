"""The part of a text that a person sees."""

from __future__ import annotations

import re

from or_eval.hostile_text import CONTROLS, DIRECTIONS, FILLERS, JOINERS, TAGS, whole

# What a person reading the log can't see, and a judge reads all the same.
_HIDDEN = CONTROLS + DIRECTIONS + TAGS + FILLERS
_ANY_HIDDEN = re.compile(f"[{_HIDDEN}]")
# The joiners, the blank Braille cell and broken characters stay in a text, but make none.
_SEEN = re.compile(rf"[^\s\u2800\ufffd\ud800-\udfff{JOINERS}{_HIDDEN}]")
_LINE_BREAK = re.compile("\r\n?|[\u2028\u2029]")
# As pandas, Python, JSON, JavaScript, SQL and spreadsheets write a value that is missing.
_WORDS_FOR_NOTHING = {"nan", "NaN", "<NA>", "None", "null", "undefined", "NULL", "N/A", "#N/A"}


def visible_text(text: str) -> str:
    """Drop the characters of a text that nobody sees, and make its line breaks plain."""
    return whole(_ANY_HIDDEN.sub("", _LINE_BREAK.sub("\n", text)))


def stands_for_nothing(text: str) -> bool:
    """Tell whether a text is but the word that a program writes where it has none."""
    return text.strip() in _WORDS_FOR_NOTHING


def has_visible_text(text: str) -> bool:
    """Tell whether a person would see anything of a text."""
    return _SEEN.search(text) is not None

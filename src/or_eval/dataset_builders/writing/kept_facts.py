"""What a translation has to leave as it is: numbers, placeholders, and names on the way back."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_PLACEHOLDER = re.compile(
    r"\{\{?\w[\w .-]*\}\}?|\[[A-Z][A-Z_ ]+\]|%\(?\w*\)?[sd]|\$\{?[A-Z_]{2,}\}?|</?\w+>"
    r"|https?://[^\s\u3000-\u9fff，。]+|[\w.+-]+@[\w-]+\.[\w.]+"
)
# Words with a capital letter within a sentence; German writes all nouns so.
_NAME = re.compile(r"(?<=[a-z,;:] )(?!I\b)[A-Z][\w’'-]+(?: [A-Z][\w’'-]+)*")


def lost_facts(text: str, translation: str) -> list[str]:
    """Give the numbers and placeholders of a text that its translation doesn't have."""
    placeholders = _PLACEHOLDER.findall(text)
    lost = [one for one in dict.fromkeys(placeholders) if one not in translation]
    # A number within a placeholder is told with it.
    wanted = Counter(_numbers(_PLACEHOLDER.sub(" ", text)))
    return lost + list((wanted - Counter(_numbers(translation))).keys())


def lost_names(text: str, back: str) -> list[str]:
    """Give the names of a text that its translation, translated back, doesn't have."""
    folded = back.casefold()
    return [name for name in dict.fromkeys(_NAME.findall(text)) if name.casefold() not in folded]


def _numbers(text: str) -> list[str]:
    # Digits of other scripts, and separators, which languages write in other ways.
    digits = "".join(
        str(unicodedata.digit(character)) if character.isdigit() else character
        for character in text
    )
    return [re.sub(r"[.,]", "", number) for number in _NUMBER.findall(digits)]

"""What a text is written in, by its characters: simplified or traditional, English among Chinese.

Rules rather than a detector, so that two people who look at a text come to the same end.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

Script = Literal["simplified", "traditional"]

CHARS_PER_WORD = 2
"""Characters of a script without spaces that make a word, as the rules count them."""

MOST_OF_OTHER_SCRIPT = 0.02
"""Share of a text's Chinese characters that may be of the other script: names keep theirs."""
ENGLISH_SHARE = (0.05, 0.6)
"""Least and greatest share of English in a text that mixes it into Chinese."""

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_ENGLISH_WORD = re.compile(r"(?<![A-Za-z])[A-Za-z][A-Za-z'’-]*[A-Za-z](?![A-Za-z])")


def script_of_characters(text: str) -> dict[Script, list[str]]:
    """Give the Chinese characters of a text that belong to one script alone.

    A character is simplified if it stands in the national standard of the mainland (GB 2312) and
    not in Big5, which was made for traditional script; and the other way round.
    """
    found: dict[Script, list[str]] = {"simplified": [], "traditional": []}
    for character in _HAN.findall(text):
        if (script := _script(character)) is not None:
            found[script].append(character)
    return found


def other_script(text: str, wanted: Script) -> list[str]:
    """Give the characters of the other script, where they are more than names may bring along."""
    other: Script = "traditional" if wanted == "simplified" else "simplified"
    found = script_of_characters(text)[other]
    return found if len(found) > MOST_OF_OTHER_SCRIPT * len(_HAN.findall(text)) else []


def english_words(text: str) -> list[str]:
    """Give the English words of a text, of two letters or more."""
    return _ENGLISH_WORD.findall(text)


def english_left(text: str) -> list[str]:
    """Give the English words of a text that are no names: those without a capital letter."""
    return [word for word in english_words(text) if word == word.lower()]


def english_share(text: str) -> float:
    """Give the share of English in a text of Chinese and English, in words."""
    english = len(english_words(text))
    chinese = len(_HAN.findall(text)) / CHARS_PER_WORD
    return english / (english + chinese) if english or chinese else 0.0


@cache
def _script(character: str) -> Script | None:
    mainland, big5 = (_encodes(character, codec) for codec in ("gb2312", "big5"))
    if mainland == big5:
        return None
    return "simplified" if mainland else "traditional"


def _encodes(character: str, codec: str) -> bool:
    try:
        character.encode(codec)
    except UnicodeEncodeError:
        return False
    return True

"""Names of models and groups as figures show them: visible, of bounded length, all different."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from or_eval.hostile_text import visible

LONGEST = 20.0
"""Length, in ems, from which names are cut."""

_WIDE, _UPPER, _NARROW, _OTHER = 0.97, 0.74, 0.38, 0.63
_WIDE_LETTERS, _NARROW_LETTERS = frozenset("mwMW@%"), frozenset("fijlrtI.,:;|!'-()[]/ ")


def em_width(text: str) -> float:
    """Estimate the width of a text in ems, on the safe side: as in a wide sans-serif."""
    return sum(_character_width(character) for character in text)


def shown_names(names: Iterable[str], longest: float = LONGEST) -> dict[str, str]:
    """Give the form in which a figure shows each name.

    Hidden characters become visible, and a long name loses its middle, since what tells models
    apart stands at either end of their names. Names that would then look alike are numbered.

    Args:
        names: The names; each is taken once.
        longest: Length to cut to, in ems.
    """
    shown: dict[str, str] = {}
    taken: dict[str, int] = {}
    for name in dict.fromkeys(names):
        text = _cut(" ".join(visible(str(name)).split()), longest)
        taken[text] = taken.get(text, 0) + 1
        shown[name] = text if taken[text] == 1 else f"{text} ({taken[text]})"
    return shown


def _character_width(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    if unicodedata.combining(character):
        return 0.0
    if character in _WIDE_LETTERS:
        return _WIDE
    if character in _NARROW_LETTERS:
        return _NARROW
    return _UPPER if character.isupper() else _OTHER


def _cut(text: str, longest: float) -> str:
    if em_width(text) <= longest:
        return text
    half = (longest - 1) / 2
    return f"{_start(text, half)}…{_start(text[::-1], half)[::-1]}"


def _start(text: str, room: float) -> str:
    for index, character in enumerate(text):
        room -= _character_width(character)
        if room < 0:
            return text[:index]
    return text

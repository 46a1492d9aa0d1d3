"""Character folding, so that patterns need not know of quotes, widths, emphasis or zero widths."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping

_QUOTES = {"\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'", "\u02bc": "'", "`": "'",
           "\u00b4": "'", "\u2032": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"',
           "\u201f": '"', "\u00ab": '"', "\u00bb": '"', "\u300c": '"', "\u300d": '"',
           "\u300e": '"', "\u300f": '"', "\u2033": '"', "\u2039": "'", "\u203a": "'",
           "\uff02": '"', "\uff07": "'"}  # fmt: skip
_DASHES = dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
# Zero-width and bidirectional controls, the soft hyphen, and Arabic vowel signs and tatweel.
_INVISIBLE = dict.fromkeys(map(chr,
    [0xAD, 0x61C, 0xFEFF, 0x640, *range(0x200B, 0x2010), *range(0x202A, 0x202F),
     *range(0x2060, 0x2070), *range(0x64B, 0x653), *range(0xFE00, 0xFE10)]
), "")  # fmt: skip
_ALEFS = dict.fromkeys("\u0623\u0625\u0622\u0671", "\u0627")
_EMPHASIS = dict.fromkeys("*_~", "")

_CHARACTERS: dict[str, str] = {**_QUOTES, **_DASHES, **_ALEFS, **_INVISIBLE}


def replacing(characters: Mapping[str, str]) -> Callable[[str], str]:
    """Give a function that replaces characters, none of which stands for another of them.

    It takes a fraction of what ``str.translate`` takes.
    """
    any_of_them = re.compile(f"[{re.escape(''.join(characters))}]")
    in_ascii = [(old, new) for old, new in characters.items() if old.isascii()]

    def replaced(text: str) -> str:
        if not text.isascii():
            return any_of_them.sub(lambda found: characters[found[0]], text)
        for old, new in in_ascii:
            text = text.replace(old, new)
        return text

    return replaced


_plain = replacing(_CHARACTERS)
_without_emphasis = replacing(_CHARACTERS | _EMPHASIS)


def fold(text: str) -> str:
    """Give a passage as patterns see it.

    Unicode NFKC, lower case, straight quotes, plain hyphens, single spaces; no zero-width
    characters, Arabic vowel signs or Markdown emphasis. Alef variants become a bare alef.
    """
    folded = _without_emphasis(text)
    if not folded.isascii():
        # NFKC can bring characters that are replaced, such as quotes from presentation forms.
        folded = _without_emphasis(unicodedata.normalize("NFKC", folded))
    # Lower case of a dotted capital I leaves a combining dot behind.
    return " ".join(folded.lower().replace("i\u0307", "i").split())


def fold_pattern(pattern: str) -> str:
    """Fold the literal characters of a regular expression the way :func:`fold` folds text."""
    return unicodedata.normalize("NFKC", _plain(pattern))

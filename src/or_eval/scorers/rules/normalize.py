"""Character folding, so that patterns need not know of quotes, widths, emphasis or zero widths."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping

from or_eval.hostile_text import DIRECTIONS, FILLERS, JOINERS, TAGS

# Every quote style becomes one of two characters.
QUOTES = {
    **dict.fromkeys("“”„‟«»「」『』″＂〝〞", '"'),
    **dict.fromkeys("‘’‚‛ʼ′‹›＇`´", "'"),
}
_DASHES = dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
_ALEFS = dict.fromkeys("\u0623\u0625\u0622\u0671", "\u0627")
_EMPHASIS = dict.fromkeys("*_~", "")
# What nobody sees, and Arabic tatweel and vowel signs.
_DROPPED = f"{DIRECTIONS}{TAGS}{FILLERS}{JOINERS}\u0640\u064b-\u0652"


def replacing(characters: Mapping[str, str], dropped: str = "") -> Callable[[str], str]:
    """Give a function that replaces characters, none of which stands for another of them.

    It takes a fraction of what ``str.translate`` takes.

    Args:
        characters: What stands for each.
        dropped: Characters beyond ASCII that are taken out, as ranges of a regular expression.
    """
    any_of_them = re.compile(f"[{re.escape(''.join(characters))}{dropped}]")
    in_ascii = [(old, new) for old, new in characters.items() if old.isascii()]

    def replaced(text: str) -> str:
        if not text.isascii():
            return any_of_them.sub(lambda found: characters.get(found[0], ""), text)
        for old, new in in_ascii:
            text = text.replace(old, new)
        return text

    return replaced


_plain = replacing(QUOTES | _DASHES | _ALEFS, _DROPPED)
_without_emphasis = replacing(QUOTES | _DASHES | _ALEFS | _EMPHASIS, _DROPPED)


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

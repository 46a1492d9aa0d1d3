"""How much of a text was edited to make another: by words, or characters where there are none."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from or_eval.dataset_builders.similarity.same_text import UNSPACED

_TOKEN = re.compile(rf"{UNSPACED.pattern}|(?:(?!{UNSPACED.pattern})\w)+")


def edit_share(text: str, other: str) -> float:
    """Give the share of two texts' words that aren't in both in the same order.

    It is 0 for equal texts and 1 for texts that share no word. Case doesn't count; each
    character of a script without spaces is a word.
    """
    one, two = (_TOKEN.findall(each.casefold()) for each in (text, other))
    total = len(one) + len(two)
    return 1 - 2 * _common(one, two) / total if total else 0.0


def _common(one: Sequence[str], two: Sequence[str]) -> int:
    """Count the words of the longest sequence that both have in its order.

    After Hyyrö: the bits of an integer are a column of the table, which makes it quick.
    """
    places: defaultdict[str, int] = defaultdict(int)
    for number, word in enumerate(one):
        places[word] |= 1 << number
    every = (1 << len(one)) - 1
    column = every
    for word in two:
        found = column & places.get(word, 0)
        column = ((column + found) | (column - found)) & every
    return len(one) - column.bit_count()

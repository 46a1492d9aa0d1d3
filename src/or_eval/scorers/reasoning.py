"""Reasoning that a provider left in the text, between think tags."""

from __future__ import annotations

import re
from typing import NamedTuple

# Attributes are short and hold no brackets, so that a hostile text can't make the search slow.
_TAG = re.compile(r"<(/?)think(?:ing)?(?:\s[^<>]{0,500})?>", re.IGNORECASE)


class Spoken(NamedTuple):
    """A text without its reasoning.

    Attributes:
        text: The text with each character of reasoning replaced by a space, so that offsets hold.
        in_reasoning: Whether it ends inside reasoning.
    """

    text: str
    in_reasoning: bool


def blank_reasoning(text: str) -> Spoken:
    """Blank the reasoning between think tags; tell whether the last of it was left open.

    What stands before an end tag with no beginning was reasoning too, if it is the first tag: the
    chat template wrote the first one. (Inspect has a parser for such tags, but it removes one
    block, and takes quadratic time on a text of many opening tags.)
    """
    if "<" not in text:
        return Spoken(text, False)
    pieces: list[str] = []
    depth = position = 0
    for number, tag in enumerate(_TAG.finditer(text)):
        closing = tag.group(1) == "/"
        spoken = depth == 0 and not (closing and number == 0)
        before = text[position : tag.start()]
        pieces.append(before if spoken else " " * len(before))
        pieces.append(" " * len(tag.group()))
        depth = max(depth - 1, 0) if closing else depth + 1
        position = tag.end()
    rest = text[position:]
    pieces.append(rest if depth == 0 else " " * len(rest))
    return Spoken("".join(pieces), depth > 0)

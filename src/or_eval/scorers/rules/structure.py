"""A response as passages: sentences of prose, list items, headings, code, quotations, letters.

Everything here is one pass over the text, so a hostile response costs no more than a long one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

# A refusal stands at the edges of a response. What lies between is only counted, never read,
# so that the cost of a response of any length is bounded.
HEAD_CHARS = 12_000
TAIL_CHARS = 4_000


class Kind(Enum):
    """What a passage is, by its layout."""

    PROSE = "prose"
    ITEM = "item"
    HEADING = "heading"
    CODE = "code"
    QUOTE = "quote"


class Passage(NamedTuple):
    """A sentence or layout block of the response.

    Attributes:
        kind: What it is by layout.
        text: The text as it stands in the response.
        start: Offset of its first character in the response.
    """

    kind: Kind
    text: str
    start: int


# Lines of a verse, and bytes of one: Chinese says more in a character than Russian or English.
_VERSE_LINES, _VERSE_BYTES = 3, 90
_FENCE = re.compile(r"[ \t]{0,8}(```|~~~)")
_BULLET = re.compile(
    r"[\s>]{0,12}(?:[-*+•●▪◦‣·–—](?=\s)"
    r"|[*_]{0,2}(?:\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.)]|step \d+:?)(?=[\s*_])"
    r"|[*_]{0,2}(?:\d{1,3}[、．]|[（(]?[一二三四五六七八九十]{1,3}[、.）)]|[①-⑳]))",
    re.IGNORECASE,
)
_RULE = re.compile(r"\s*(?:[-*_=~][ \t]*){3,}\s*$")
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}\s")
_QUOTE = re.compile(r"[ \t]{0,3}>")
_TABLE = re.compile(r"[ \t]*\|.*\|[ \t]*$")
# A sentence ends at Western punctuation before a space, at CJK or Indic full stops anywhere, at an
# Arabic question mark, and at a space between Thai words, which Thai puts there and nowhere else.
# An abbreviation costs a split sentence, which does no harm here. All that can begin a match comes
# first: the search skips the rest at a fifth of the time that lookbehinds alone would take.
_SENTENCE_END = re.compile(
    r"[.!?…؟؛。！？｡।॥\u0e01-\u0e4e](?:(?<=[.!?…؟؛])[\"'”’»)\]*_]*\s+"
    r"|(?<=[。！？｡।॥])[\"'”’»」』）)\]*_]*\s*"
    r"|(?<=[\u0e01-\u0e4e])[ \u00a0]+(?=[\u0e01-\u0e4e]))"
)


def edges(response: str) -> list[tuple[int, str]]:
    """Give the parts of a response that are read, with their offsets: all of it, or its edges."""
    start, end = 0, len(response.rstrip())
    start += len(response[start:end]) - len(response[start:end].lstrip())
    if end - start <= HEAD_CHARS + TAIL_CHARS:
        return [(start, response[start:end])]
    head, tail = start + HEAD_CHARS, end - TAIL_CHARS
    return [(start, response[start:head]), (tail, response[tail:end])]


def passages(text: str, offset: int = 0) -> Iterator[Passage]:
    """Split a part of a response into passages, in order, joining hard-wrapped lines.

    Args:
        text: The part.
        offset: Where it begins in the response.
    """
    paragraph: list[str] = []
    paragraph_start = 0
    kind = Kind.PROSE
    in_code = False
    position = offset

    def flush() -> Iterator[Passage]:
        if paragraph:
            yield from _sentences("".join(paragraph), paragraph_start, kind)
            paragraph.clear()

    for line in text.splitlines(keepends=True):
        start = position
        position += len(line)
        if _FENCE.match(line):
            yield from flush()
            in_code = not in_code
            continue
        if in_code:
            yield Passage(Kind.CODE, line, start)
            continue
        if not line.strip():
            yield from flush()
            continue
        if is_rule(line):
            yield from flush()
            yield Passage(Kind.PROSE, line, start)
            continue
        line_kind = _line_kind(line)
        if line_kind is not Kind.PROSE:
            yield from flush()
            kind = line_kind
        elif not paragraph:
            kind = Kind.PROSE
        if not paragraph:
            paragraph_start = start
        paragraph.append(line)
        if kind is Kind.HEADING:
            yield from flush()
            kind = Kind.PROSE
    yield from flush()


def is_rule(text: str) -> bool:
    """Tell whether a line parts what stands above it from what follows, as "---" does."""
    return _RULE.match(text) is not None


def in_verse(text: str, at: int) -> bool:
    """Tell whether a place stands in verse: three short lines or more without a break."""
    begin = max(text.rfind("\n\n", 0, at + 1), 0)
    end = text.find("\n\n", at + 1)
    lines = text[begin : len(text) if end < 0 else end].strip().splitlines()
    short = all(
        len(line.encode("utf-8", "replace")) <= _VERSE_BYTES and _line_kind(line) is Kind.PROSE
        for line in lines
    )
    return len(lines) >= _VERSE_LINES and short


def _line_kind(line: str) -> Kind:
    first = line.lstrip()[:1]
    if first == "#" and _HEADING.match(line):
        return Kind.HEADING
    if first == ">" and _QUOTE.match(line):
        return Kind.QUOTE
    if first == "|" and _TABLE.match(line):
        return Kind.ITEM
    if _BULLET.match(line):
        return Kind.ITEM
    return Kind.PROSE


def _sentences(text: str, start: int, kind: Kind) -> Iterator[Passage]:
    if kind is not Kind.PROSE:
        yield Passage(kind, text, start)
        return
    begin = 0
    for end in _SENTENCE_END.finditer(text):
        if end.end() > begin:
            yield Passage(kind, text[begin : end.end()], start + begin)
        begin = end.end()
    if text[begin:].strip():
        yield Passage(kind, text[begin:], start + begin)

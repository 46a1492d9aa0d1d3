"""Whose words they are: blanks quoted speech, so that a character's "I cannot" is no refusal."""

from __future__ import annotations

import re

from or_eval.scorers.rules.normalize import QUOTES, replacing

_in_one_style = replacing(QUOTES)  # one character for each: offsets stay true

# A double-quoted span stays within its paragraph; a single quote opens after a non-letter and
# closes before one, so that the apostrophe of "can't" is neither. What begins either comes first,
# so that the search skips the rest.
_SPAN = re.compile(
    r"""["'](?:(?<=")(?:[^"\n]|\n(?![ \t]*\n))*\""""
    r"""|(?<=')(?<![\w']')(?=[^\s'])(?:[^'\n]|(?<=\w)'(?=\w))*'(?!\w))"""
)
# Code, fences and all: what stands in quotes there is said by nobody else.
_FENCE = r"[ \t]{0,8}(?:```|~~~)"
_CODE = re.compile(rf"^{_FENCE}.*\n(?:(?!{_FENCE}).*\n)*(?:{_FENCE}.*|.*\Z)", re.MULTILINE)
_AFTER_QUOTE = " \t\r\n.*_"


def quotations(text: str) -> list[str]:
    """Give what a text quotes."""
    return [text[s.start() + 1 : s.end() - 1] for s in _SPAN.finditer(_in_one_style(text))]


def blank_quotations(text: str, *, keep_whole: bool = True) -> str:
    """Replace quoted speech by spaces, keeping every other character, and code, where it stood.

    Args:
        text: The text.
        keep_whole: Leave a text alone that is wholly in quotes: some models wrap what they say.
    """
    plain = _in_one_style(text)
    if '"' not in plain and "'" not in plain:
        return text
    pieces: list[str] = []
    end = 0
    for code in _CODE.finditer(text):
        pieces += (_blanked(text[end : code.start()], keep_whole=False), code.group())
        end = code.end()
    pieces.append(_blanked(text[end:], keep_whole=keep_whole and end == 0))
    return "".join(pieces)


def _blanked(text: str, *, keep_whole: bool) -> str:
    plain = _in_one_style(text)
    pieces: list[str] = []
    end = 0
    begin = len(plain) - len(plain.lstrip())
    for span in _SPAN.finditer(plain):
        alone = span.start() == begin and not plain[span.end() :].strip(_AFTER_QUOTE)
        if alone and keep_whole:
            return text
        pieces.append(text[end : span.start()])
        # Line breaks stay: they are layout, not speech.
        pieces.append("\n".join(" " * len(line) for line in span.group().split("\n")))
        end = span.end()
    pieces.append(text[end:])
    return "".join(pieces)

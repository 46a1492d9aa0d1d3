"""Whose words they are: takes a response out of what wraps all of it, and blanks quotations.

A character's "I cannot" is no refusal. Whatever is blanked, every offset stays true.
"""

from __future__ import annotations

import json
import re

from or_eval.scorers.rules.normalize import QUOTES, replacing

# Some models put all they say, refusals too, into one fence that holds no code.
_ONE_FENCE = re.compile(
    r"\s*(?:```|~~~)(?:text|txt|plaintext|plain|markdown|md|json|jsonl|none)?[ \t]*\n"
    r"([^`~]*)(?:```|~~~)\s*",
    re.IGNORECASE,
)
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
# Seen by nobody and folded away before patterns are matched: it keeps a word whole.
_FILLER = "\u200b"
_LONGEST = 200_000

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


def unwrapped(response: str) -> str:
    """Blank the fence around a response and the layout of a JSON value that is all it says."""
    fence = _ONE_FENCE.fullmatch(response)
    if fence is not None:
        start, end = fence.span(1)
        response = " " * start + response[start:end] + " " * (len(response) - end)
    stripped = response.strip()
    if stripped[:1] not in ("{", "[", '"') or len(stripped) > _LONGEST:
        return response
    try:
        json.loads(stripped, strict=False)
    except (ValueError, RecursionError):
        return response
    return _strings_alone(response)


def _strings_alone(text: str) -> str:
    """Keep the values of JSON that are text, a paragraph each; keys and the rest become blank."""
    pieces: list[str] = []
    end = 0
    for string in _STRING.finditer(text):
        pieces.append(_break(string.start() - end + 1))
        value, key = string.group(1), string.group(2)
        said = " " * len(value) if key else _ESCAPE.sub(_character, value)
        pieces.append(said + " " * (1 + len(key or "")))
        end = string.end()
    pieces.append(_break(len(text) - end))
    return "".join(pieces)


def _break(length: int) -> str:
    return ("\n\n" + " " * length)[:length]


def _character(escape: re.Match[str]) -> str:
    try:
        character: str = json.loads(f'"{escape.group()}"')
    except ValueError:
        character = " "
    if "\ud800" <= character <= "\udfff":
        character = " "
    return character + _FILLER * (len(escape.group()) - len(character))


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

"""Takes a response out of what it is wholly wrapped in, a fence or JSON, keeping every offset."""

from __future__ import annotations

import json
import re

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

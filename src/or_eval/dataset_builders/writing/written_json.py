"""Reading texts from JSON as models write it: in a fence, with chatter, broken, or cut off."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_MOST_STARTS = 40
_MOST_DEPTH = 6
_TEXT_KEYS = (
    *("text", "prompt", "request", "rewrite", "rewritten", "rewritten_prompt", "message"),
    *("question", "seed", "content"),
)
_START = re.compile(r"[\[{]")
# In broken JSON, a list begins where a quoted string follows the bracket.
_BROKEN_START = re.compile(r"[\[{][\s\[{]{0,20}(?=[\"'“„«「『‘])")
_CLOSERS = {
    '"': '"', "'": "'", "“": "”\"", "„": "“”\"", "«": "»", "「": "」", "『": "』", "‘": "’'",
}  # fmt: skip
# A quote that closes a string stands before a comma and the next string, a bracket, or the end;
# one that doesn't was meant as a quote within the string.
_AFTER_STRING = re.compile(
    r"\s*(?:,\s*(?:[\"'“„«「『‘{\[\]}]|$)|[\]}]|$|```)|[^\S\n]*\n\s*[\"'“„«「『‘]"
)
_AFTER_KEY = re.compile(r"\s*:\s*[\"'“„«「『‘\[{\d]")
_KEY_CHARS = 40
_BETWEEN = re.compile(r"(?:[\s,:\[\]{}\d]|true|false|null)*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\n", "b": "", "f": ""}


class JsonList(NamedTuple):
    """Texts found in JSON.

    Attributes:
        texts: The texts.
        start: Where the JSON starts.
        last_whole: Whether the last text has its end.
    """

    texts: list[str]
    start: int
    last_whole: bool


def read_json_list(text: str) -> JsonList | None:
    """Read the texts of the JSON in a reply; None where it holds none that can be read.

    An object's list counts, or its text, whatever the key; several objects or lists that follow
    one another are taken together.
    """
    return _sound(text) or _broken(text)


def _sound(text: str) -> JsonList | None:
    """Read JSON that is sound where it starts, whatever stands around it."""
    decoder = json.JSONDecoder(strict=False)
    texts: list[str] = []
    first: int | None = None
    position = 0
    for _ in range(_MOST_STARTS):
        start = _START.search(text, position)
        if start is None:
            break
        try:
            value, position = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            if first is not None or _BROKEN_START.match(text, start.start()):
                break
            position = start.end()
            continue
        found = _texts(value)
        if found is not None:
            first = start.start() if first is None else first
            texts += found
    if first is None:
        return None
    return JsonList(texts, first, last_whole=True)


def _texts(value: Any, depth: int = 0) -> list[str] | None:
    """Give the texts in a JSON value; None for one that isn't made of texts, such as ``[1]``."""
    if isinstance(value, str):
        return [value]
    if depth == _MOST_DEPTH:
        return None
    if isinstance(value, list):
        parts = [found for item in value if (found := _texts(item, depth + 1)) is not None]
        return [text for part in parts for text in part] if parts or not value else None
    if isinstance(value, dict):
        lists = [item for item in value.values() if isinstance(item, list)]
        if lists:
            return next((found for item in lists if (found := _texts(item, depth + 1))), [])
        for key in _TEXT_KEYS:
            if isinstance(value.get(key), str):
                return [value[key]]
        return _texts(list(value.values()), depth + 1) if value else None
    return None


def _broken(text: str) -> JsonList | None:
    """Read the strings of JSON that has a mistake in it, or no end, one after the other."""
    start = _BROKEN_START.search(text)
    if start is None:
        return None
    texts: list[str] = []
    by_key: dict[str, list[str]] = {}
    key = ""
    position, last_whole = start.end(), True
    while position < len(text) and text[position] in _CLOSERS:
        end, is_key = _string_end(text, position)
        raw = text[position + 1 : end]
        if is_key:
            key = raw.strip().lower()
        else:
            texts.append(_unescaped(raw))
            by_key.setdefault(key, []).append(texts[-1])
            last_whole = end < len(text)
        between = _BETWEEN.match(text, end + 1)
        position = between.end() if between is not None else len(text)
    known = [name for name in _TEXT_KEYS if name in by_key]
    chosen = by_key[known[0]] if known else texts
    if not chosen:
        return None
    return JsonList(chosen, start.start(), last_whole or chosen[-1] != texts[-1])


def _string_end(text: str, start: int) -> tuple[int, bool]:
    """Find where a string ends, and whether it is a key; the text's end where it has none."""
    closers = _CLOSERS[text[start]]
    for found in re.compile(rf"\\.|[{closers}]", re.DOTALL).finditer(text, start + 1):
        if found.group()[0] == "\\":
            continue
        if _AFTER_STRING.match(text, found.end()):
            return found.start(), False
        if found.start() - start <= _KEY_CHARS and _AFTER_KEY.match(text, found.end()):
            return found.start(), True
    return len(text), False


def _unescaped(raw: str) -> str:
    def character(found: re.Match[str]) -> str:
        escape = found[1]
        if len(escape) > 1:
            return chr(int(escape[1:], 16))
        return _ESCAPED.get(escape, escape)

    text = _ESCAPE.sub(character, raw)
    # Characters beyond the first plane are escaped as two halves.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

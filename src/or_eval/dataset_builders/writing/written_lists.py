"""Reading the list of texts that a model was asked for, in whatever form it returned it.

Models are asked for JSON. They return it in a fence, with a greeting, with quotes that aren't
escaped, or half of it; or else ``[[a]] [[b]]``, a numbered list, bullets, or quoted lines.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from or_eval.scorers.visible_text import visible_text

_MARK = r"(?:\*\*|__)?"
# "1." "2)" "(3)" "**4:**" "Prompt 5:" "### Text 6" "7、"; not "3.5", whose point is a decimal one.
_NUMBERED = re.compile(
    rf"[ \t]{{0,8}}(?:#{{1,6}}[ \t]*)?{_MARK}(?:(?P<label>[^\W\d_]{{1,20}}[ \t]{{0,2}}#?)|[(（\[])?"
    rf"(?P<number>\d{{1,3}})(?P<mark>[.):、．：）\]]+|[ \t]?[-–—](?=[ \t]))?"
    rf"{_MARK}[.:]?(?!\d)[ \t]*(?P<text>.*)"
)
_CIRCLED = re.compile(r"[ \t]{0,8}([①-⑳])")
_BULLET = re.compile(r"[ \t]{0,8}[-*•–—●▪◦‣・][ \t]+(?P<text>\S.*)")
_RULE = re.compile(r"[ \t]*(?:-{3,}|\*{3,}|_{3,}|={3,})[ \t]*")
_FENCE = re.compile(r"[ \t]*```\w*[ \t]*")
_QUOTES = {
    '"': '"', "'": "'", "“": "”", "”": "”", "„": "“”", "«": "»", "»": "«", "「": "」", "『": "』",
    "‘": "’", "‚": "‘’", "‹": "›", "`": "`",
}  # fmt: skip
_LABEL = re.compile(
    r"(?:(?:rewrite|rewritten prompt|prompt|text|message)[ \t]?\d{0,3}[:：]"
    r"|\(?\d{1,2}[.)](?=[ \t]))[ \t]*",
    re.IGNORECASE,
)
# What may stand below an item and isn't of it: "(a pun)", "*Why:* ...", "Reason: ...".
_NOTE = re.compile(r"[ \t]*(?:[(\[（*_>→#`~]|[^\W\d_][\w ]{0,30}[:：])")
_ENDED = re.compile(r"[.!?。！？…][\"'”’»」』*_)]*[ \t]*\Z")
_LETTER = re.compile(r"[^\W\d_]")
_BRACKETED = re.compile(r"\[\[(.*?)(?:(\]\])|\Z)", re.DOTALL)
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


class WrittenList(NamedTuple):
    """Texts found in a reply.

    Attributes:
        items: The texts, without quotes, numbers and characters that nobody sees.
        before: What stands before the first.
        last_whole: Whether the last text has its end; None where the form of the list doesn't
            show it.
    """

    items: list[str]
    before: str
    last_whole: bool | None


class _Found(NamedTuple):
    texts: list[str]
    start: int
    last_whole: bool | None


def read_list(reply: str, *, paragraphs: bool = False) -> WrittenList | None:
    """Read the texts in a reply.

    Args:
        reply: The reply, without reasoning.
        paragraphs: Whether a text may have several paragraphs; otherwise it is one line of a
            list, and line breaks in it are spaces.

    Returns:
        The texts; None for a reply in which no list can be made out.
    """
    plain = visible_text(reply)
    lines = plain.split("\n")
    found = _json_outside_items(plain) or _bracketed(plain) or _numbered(lines, paragraphs)
    found = found or (None if paragraphs else _bulleted(lines)) or _quoted(lines, paragraphs)
    if (found := found or _json(plain)) is None:
        return None
    items = [_cleaned(text) for text in found.texts]
    if not paragraphs:
        items = [" ".join(item.split()) for item in items]
    kept = [item for item in items if _LETTER.search(item)]
    # Where the last one was but a quote or a dash, the one before it has its end.
    lost_last = bool(items) and not _LETTER.search(items[-1])
    return WrittenList(kept, plain[: found.start].strip(), lost_last or found.last_whole)


def _json_outside_items(text: str) -> _Found | None:
    """Read JSON, but not what stands within an item of another list."""
    if (found := _json(text)) is None:
        return None
    line = text[text.rfind("\n", 0, found.start) + 1 : found.start]
    numbered = _NUMBERED.match(line)
    return None if _BULLET.match(line + "x") or (numbered and numbered["mark"]) else found


def _json(text: str) -> _Found | None:
    """Read the texts of JSON: of an object its list, or else its text; several are one list."""
    return _sound(text) or _broken(text)


def _sound(text: str) -> _Found | None:
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
    return _Found(texts, first, last_whole=True)


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


def _broken(text: str) -> _Found | None:
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
    return _Found(chosen, start.start(), last_whole or chosen[-1] != texts[-1])


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


def _bracketed(text: str) -> _Found | None:
    """Read ``[[one]] [[two]]``, or a list of another form within ``[[ ]]``."""
    found = list(_BRACKETED.finditer(text))
    if not found:
        return None
    texts = [one[1] for one in found]
    first, whole = found[0].start(), bool(found[-1][2])
    if len(texts) == 1:
        lines = texts[0].split("\n")
        inner = _numbered(lines, False) or _bulleted(lines) or _quoted(lines, False)
        if inner and len(inner.texts) > 1:
            return _Found(inner.texts, first, whole)
    return _Found(texts, first, whole)


def _numbered(lines: list[str], paragraphs: bool) -> _Found | None:
    """Read the longest list whose items are numbered one after the other, in one style."""
    heads: dict[str, list[tuple[int, str]]] = {}
    expected: dict[str, int] = {}
    for at, line in enumerate(lines):
        if circled := _CIRCLED.match(line):
            line = f"{ord(circled[1]) - ord('①') + 1}、{line[circled.end() :]}"
        found = _NUMBERED.match(line)
        if found is None:
            continue
        number, label = int(found["number"]), (found["label"] or "").rstrip(" \t#").casefold()
        # A number with no mark opens an item only as a heading: "Text 1".
        if not found["mark"] and (not label or _LETTER.search(found["text"])):
            continue
        if expected.setdefault(label, number) == number:
            expected[label] = number + 1
            heads.setdefault(label, []).append((at, found["text"]))
    return _items(lines, max(heads.values(), key=len), paragraphs) if heads else None


def _bulleted(lines: list[str]) -> _Found | None:
    found = ((at, _BULLET.match(line)) for at, line in enumerate(lines))
    heads = [(at, bullet["text"]) for at, bullet in found if bullet is not None]
    return _items(lines, heads, False) if heads else None


def _items(lines: list[str], heads: list[tuple[int, str]], paragraphs: bool) -> _Found:
    """Give each item from its head to the next one's, or to where it ends before."""
    texts = []
    for (at, text), (following, _) in zip(heads, [*heads[1:], (len(lines), "")], strict=True):
        body = [text] if _LETTER.search(text) else []
        for line in lines[at + 1 : following]:
            if body and not paragraphs and _goes_on(body[-1], line, lines[at]):
                body.append(line)
                continue
            if (body and not paragraphs) or _RULE.fullmatch(line) or _FENCE.fullmatch(line):
                break
            if body or line.strip():
                body.append(line)
        texts.append("\n".join(body))
    return _Found(texts, sum(len(line) + 1 for line in lines[: heads[0][0]]), None)


def _goes_on(before: str, line: str, head: str) -> bool:
    """Tell whether a line is the rest of an item of one line: deeper, amid a sentence, no note."""
    depth, of_head = (len(text) - len(text.lstrip()) for text in (line, head))
    numbered = _NUMBERED.match(line)
    note = _BULLET.match(line) or _NOTE.match(line) or (numbered and numbered["mark"])
    return bool(line.strip()) and depth > of_head and not note and not _ENDED.search(before)


def _quoted(lines: list[str], paragraphs: bool) -> _Found | None:
    """Read lines that are quoted as a whole; with paragraphs, a quotation may run on."""
    texts: list[str] = []
    start, whole = 0, True
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        closers = _QUOTES.get(line[:1])
        if closers is None or (len(line) < 2 and not paragraphs):
            at += 1
            continue
        end = _closing_line(lines, at, closers, paragraphs)
        if end is None and not paragraphs:
            at += 1
            continue
        if not texts:
            start = sum(len(line) + 1 for line in lines[:at])
        whole = end is not None
        stop = len(lines) if end is None else end + 1
        quoted = "\n".join(lines[at:stop])
        # "one", "two", "three" may stand on one line.
        several = _json(f"[{quoted}]") if whole else None
        texts += several.texts if several is not None else [quoted]
        at = stop
    return _Found(texts, start, whole) if texts else None


def _closing_line(lines: list[str], at: int, closers: str, paragraphs: bool) -> int | None:
    for number in range(at, len(lines) if paragraphs else at + 1):
        line = lines[number].strip().rstrip(",;")
        if line.endswith(tuple(closers)) and (number > at or len(line) > 1):
            return number
    return None


def _cleaned(text: str) -> str:
    """Take off what belongs to the list rather than to the text."""
    plain = visible_text(text).strip()
    while True:
        shorter = _without_quotes(plain.rstrip(",;").rstrip() if plain[:1] in _QUOTES else plain)
        for mark in ("**", "__"):
            if shorter.count(mark) == 1 and (shorter.startswith(mark) or shorter.endswith(mark)):
                shorter = shorter.replace(mark, "").strip()
            elif shorter.count(mark) == 2 and shorter.startswith(mark) and shorter.endswith(mark):
                shorter = shorter[2:-2].strip()
        shorter = _LABEL.sub("", shorter, count=1) if _LABEL.match(shorter) else shorter
        if shorter == plain:
            return plain
        plain = shorter


def _without_quotes(text: str) -> str:
    closers = _QUOTES.get(text[:1])
    if closers is None or len(text) < 2 or text[-1] not in closers:
        return text
    inner = text[1:-1]
    # "a" and "b" begins and ends with quotes that aren't a pair.
    if text[0] in inner or any(closer in inner for closer in closers if closer != "’"):
        return text
    return inner.strip()

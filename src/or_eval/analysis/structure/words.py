"""Sentences, words and marks of a text, told from its letters alone."""

from __future__ import annotations

import re
import unicodedata

from or_eval.analysis.extras import needed

_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?:\s+|$)|[。！？…]+[」』”’）]*|\n+")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_NO_SPACES = frozenset({"ja", "th", "lo", "km", "my", "bo", "dz"})
_COMPLEX_MARKS = frozenset(';:；：…"')
_BRACKETS_AND_QUOTES = frozenset({"Ps", "Pe", "Pi", "Pf"})
_INSIDE_WORDS = frozenset("'’-‐‑")


def base_language(language: str) -> str:
    """Give the first language of a tag without its region: ``zh`` of ``zh-CN+en``."""
    return re.split(r"[+-]", language)[0]


def sentences(text: str) -> list[str]:
    """Split a text at the marks that end sentences, and at line breaks."""
    return [part for part in map(str.strip, _SENTENCE_END.split(text)) if _WORD.search(part)]


def words(text: str, language: str) -> list[str] | None:
    """Give the words of a text in lower case; None for a language that has no spaces between them.

    Chinese, also with English in it, is split by jieba's dictionary.
    """
    base = base_language(language)
    if base in _NO_SPACES:
        return None
    if base == "zh":
        return [word.lower() for word in _jieba(text) if _WORD.search(word)]
    return [word.lower() for word in _WORD.findall(text)]


def complex_marks(text: str) -> int:
    """Count semicolons, colons, dashes, brackets, quotation marks and ellipses.

    Each bracket and quotation mark counts, the hyphen and apostrophe inside a word don't.
    """
    return sum(
        _is_complex(mark, text[max(at - 1, 0) : at], text[at + 1 : at + 2])
        for at, mark in enumerate(text)
    ) + len(re.findall(r"\.{3,}", text))


def _is_complex(mark: str, before: str, after: str) -> bool:
    if mark in _INSIDE_WORDS and before.isalnum() and after.isalnum():
        return False
    kind = unicodedata.category(mark)
    return mark in _COMPLEX_MARKS or kind == "Pd" or kind in _BRACKETS_AND_QUOTES


def _jieba(text: str) -> list[str]:
    cut: list[str] = needed("rjieba", "structure", "Chinese words need jieba").cut(text)
    return cut

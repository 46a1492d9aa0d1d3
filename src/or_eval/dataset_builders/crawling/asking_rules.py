"""Whether a sentence asks for something, by patterns: a file of them for each language."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import re2

from or_eval.dataset_builders.writing.language import count_words
from or_eval.scorers.rules.structure import passages

_LEAST_WORDS = 3
_OPENING = "\"'“”‘’«»「『（([<>*_~-–— \t…"

Kind = Literal["questions", "requests", "furniture", "context"]


def asks(text: str) -> bool:
    """Tell whether a text asks: its last sentence does, or its first, and the rest explains it.

    Questions in between are mostly put to oneself, and answers begin with some to the one who
    asked.
    """
    sentences = sentences_of(text)
    if not sentences:
        return False
    if asks_itself(sentences[-1]):
        return True
    return asks_itself(sentences[0]) and _matches("context", sentences[1])


def asks_itself(sentence: str) -> bool:
    """Tell whether a sentence is a question or a request, whatever stands around it."""
    return (
        (_matches("questions", sentence) or _matches("requests", sentence))
        and not _matches("furniture", sentence)
        and count_words(sentence) >= _LEAST_WORDS
    )


def sentences_of(text: str) -> list[str]:
    """Split a text of one paragraph into sentences."""
    return [found for part in passages(text) if (found := part.text.strip())]


def _matches(kind: Kind, sentence: str) -> bool:
    begun = sentence.lstrip(_OPENING)
    return any(pattern.match(begun) for pattern in _patterns(kind))


@cache
def _patterns(kind: Kind) -> list[Any]:
    """Compile the patterns of all languages; those of none match from anywhere on.

    A language is not asked for: words of one are hardly those of another, and short texts are
    easily taken for a neighbouring language.
    """
    found = []
    for path in sorted(files(__package__).joinpath("asking").iterdir(), key=lambda it: it.name):
        rules = tomllib.loads(path.read_text("utf-8"))
        start = "(?s:.*?)" if path.name == "any.toml" else ""
        joined = "|".join(f"(?:{pattern})" for pattern in rules.get(kind, ()))
        if joined:
            found.append(re2.compile(f"(?i){start}(?:{joined})"))
    return found

"""Whether a sentence asks for something, by patterns: a file of them for each language."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import re2

from or_eval.dataset_builders.writing.language import count_words
from or_eval.scorers.rules.structure import passages

_LEAST_WORDS = 3
_MARKED, _QUOTED = re.compile(r"[?？؟]$"), re.compile(r"[\"“”„«»「」『』]")
_OPENING = "\"'“”‘’«»「『（([<>*_~-–— \t…"

Kind = Literal["questions", "requests", "furniture", "context"]


def asked_in(text: str) -> str:
    """Give what asks of a text of one paragraph: all of it, its first sentence, or nothing.

    All of it, if it asks at its end, has a request, or is by somebody who tells of themselves.
    Otherwise a question that it begins with stands for itself: what follows may be its answer,
    and in quotation marks it is somebody else's.
    Other questions on the way are put to oneself.
    """
    sentences = sentences_of(text)
    asking = [one for one in sentences if asks_itself(one)]
    if not asking:
        return ""
    if (
        asking[-1] is sentences[-1]
        or any(_matches("requests", one) for one in asking)
        or any(_matches("context", one) for one in sentences if one not in asking)
    ):
        return text
    first = sentences[0]
    alone = asking[0] is first and _MARKED.search(first) and not _QUOTED.search(first)
    return first if alone else ""


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
    for path in sorted(
        files(__package__).joinpath("question_patterns").iterdir(), key=lambda it: it.name
    ):
        rules = tomllib.loads(path.read_text("utf-8"))
        start = "(?s:.*?)" if path.name == "any.toml" else ""
        joined = "|".join(f"(?:{pattern})" for pattern in rules.get(kind, ()))
        if joined:
            found.append(re2.compile(f"(?i){start}(?:{joined})"))
    return found

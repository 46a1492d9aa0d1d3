"""The language that a recipe writes in: what it is called, and texts measured by it."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from or_eval.dataset_builders.similarity.same_text import UNSPACED
from or_eval.scorers.rules.detection import detect_languages
from or_eval.sources.language import detect_language

CHARS_PER_WORD = 2
"""Characters of a script without spaces that make a word, as the rules count them."""

_UNSPACED_LANGUAGES = {"zh", "yue", "ja", "th"}
_WORD = re.compile(r"\S*\w\S*")


def main_tag(language: str) -> str:
    """Give the main language of a tag, without region: ``zh`` of ``zh-Hans+en``."""
    return language.split("+")[0].split("-")[0].lower()


def language_name(language: str) -> str:
    """Give a language as a prompt names it: ``German (de)``, ``Chinese mixed with English``."""
    main, *others = (_name(tag) for tag in language.split("+"))
    if not others:
        return f"{main} ({language})"
    return f"{main} mixed with {' and '.join(others)}"


def count_words(text: str) -> int:
    """Count words; two characters of Chinese, Japanese or Thai, which has no spaces, are one."""
    if text.isascii():
        return len(_WORD.findall(text))
    spaced, unspaced = UNSPACED.subn(" ", text)
    return len(_WORD.findall(spaced)) + (unspaced + 1) // CHARS_PER_WORD


def length_in(words: int, language: str, *, least: int | None = None) -> str:
    """Say a length as a writer of the language counts it: ``600 words``, ``390 to 600 words``."""
    unspaced = main_tag(language) in _UNSPACED_LANGUAGES
    factor, unit = (CHARS_PER_WORD, "characters") if unspaced else (1, "words")
    return f"{f'{least * factor} to ' if least else ''}{words * factor} {unit}"


def is_in(text: str, language: str) -> bool:
    """Tell whether a text is in a language.

    Short texts are easily taken for a neighbouring language, so one of two detectors suffices.
    For a mixed language (``zh+en``) the text has to mix the two.
    """
    found = detect_language(text)
    if "+" in language:
        return set(found.split("+")) == {main_tag(tag) for tag in language.split("+")}
    return main_tag(language) in (main_tag(found), main_tag(detect_languages(text).tag or ""))


@cache
def _name(tag: str) -> str:
    from or_eval.scorers.rules.language_pack import parse_language

    path = files("or_eval.scorers.rules") / "languages" / f"{main_tag(tag)}.toml"
    if not path.is_file():
        return f"the language with the tag {tag}"
    return str(parse_language(tag, path.read_text("utf-8"))["name"])

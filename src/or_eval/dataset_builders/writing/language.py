"""The language that a recipe writes in: what it is called, and texts measured by it."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

from or_eval.dataset_builders.similarity.same_text import UNSPACED
from or_eval.languages import detect_language, detect_languages

Script = Literal["simplified", "traditional"]

MOST_OF_OTHER_SCRIPT = 0.02
"""Share of a text's Chinese characters that may be of the other script: names keep theirs."""
ENGLISH_SHARE = (0.05, 0.6)
"""Least and greatest share of English in a text that mixes it into Chinese."""

_CHARS_PER_WORD = 2
"""Characters of a script without spaces that make a word."""
_TRADITIONAL = ("hant", "-tw", "-hk", "-mo")
_SHOWN = 80
# In nats: a short text is easily taken for a neighbouring language.
_HEAD_START = 4.0
_UNSPACED_LANGUAGES = {"zh", "yue", "ja", "th"}
_WORD = re.compile(r"\S*\w\S*")
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_ENGLISH_WORD = re.compile(r"(?<![A-Za-z])[A-Za-z][A-Za-z'’-]*[A-Za-z](?![A-Za-z])")


def main_tag(language: str) -> str:
    """Give the main language of a tag, without region: ``zh`` of ``zh-Hans+en``."""
    return language.split("+")[0].split("-")[0].lower()


def language_name(language: str) -> str:
    """Give a language as a prompt names it: ``German (de)``, ``Chinese mixed with English``."""
    unknown = "the language with the tag {}"
    main, *others = (
        _names().get(main_tag(tag)) or unknown.format(tag) for tag in language.split("+")
    )
    if not others:
        return f"{main} ({language})"
    return f"{main} mixed with {' and '.join(others)}"


def count_words(text: str) -> int:
    """Count words; two characters of Chinese, Japanese or Thai, which has no spaces, are one."""
    if text.isascii():
        return len(_WORD.findall(text))
    spaced, unspaced = UNSPACED.subn(" ", text)
    return len(_WORD.findall(spaced)) + (unspaced + 1) // _CHARS_PER_WORD


def length_in(words: int, language: str, *, least: int | None = None, said_in: str = "en") -> str:
    """Say a length as a writer of the language counts it: ``600 words``, ``390 to 600 words``.

    Args:
        words: The length, or the greatest.
        language: BCP-47 tag of the text's language.
        least: The least length.
        said_in: Language in which it is said, ``en`` or ``zh``.
    """
    unspaced = main_tag(language) in _UNSPACED_LANGUAGES
    factor = _CHARS_PER_WORD if unspaced else 1
    if said_in == "zh":
        unit, to = ("个字" if unspaced else "个词"), "至"
        return f"{f'{least * factor}{to}' if least else ''}{words * factor}{unit}"
    unit = "characters" if unspaced else "words"
    return f"{f'{least * factor} to ' if least else ''}{words * factor} {unit}"


def language_problem(text: str, language: str) -> str | None:
    """Say what keeps a text from being in a language; None where it is in it.

    Chinese is simplified unless its tag says traditional (``zh-Hant``, ``zh-TW``, ``zh-HK``), with
    no English words but names; Chinese mixed with English (``zh+en``) has a share of both.
    """
    if not is_in(text, language):
        return f"it is not {language_name(language)}"
    if main_tag(language) != "zh":
        return None
    traditional = any(mark in language.lower() for mark in _TRADITIONAL)
    script: Script = "traditional" if traditional else "simplified"
    chinese, english = _HAN.findall(text), _ENGLISH_WORD.findall(text)
    others = [one for one in chinese if _script(one) not in (None, script)]
    if len(others) > MOST_OF_OTHER_SCRIPT * len(chinese):
        return f"characters that aren't {script}: {''.join(dict.fromkeys(others))[:_SHOWN]}"
    if "+" not in language:
        left = [word for word in english if word == word.lower()]  # the others are names
        return f"words that aren't Chinese: {', '.join(left)[:_SHOWN]}" if left else None
    words = len(english) + len(chinese) / _CHARS_PER_WORD
    share, (least, most) = len(english) / words if words else 0.0, ENGLISH_SHARE
    if least <= share <= most:
        return None
    return f"{share:.0%} of it is English, not {least:.0%} to {most:.0%}"


def is_in(text: str, language: str) -> bool:
    """Tell whether a text is in a language.

    Short texts are easily taken for a neighbouring language, so one of two detectors suffices.
    For a mixed language (``zh+en``) the text has to mix the two.
    """
    found = detect_language(text)
    if "+" in language:
        return set(found.split("+")) == {main_tag(tag) for tag in language.split("+")}
    likely = detect_languages(text, {main_tag(language): _HEAD_START})
    return main_tag(language) in (main_tag(found), main_tag(likely or ""))


@cache
def _names() -> dict[str, str]:
    return tomllib.loads((files("or_eval") / "data" / "language_names.toml").read_text("utf-8"))


@cache
def _script(character: str) -> Script | None:
    """Tell to which script alone a Chinese character belongs; None where to both.

    That is a rule, not a detector: it is simplified if it stands in the national standard of the
    mainland (GB 2312) and not in Big5, which was made for traditional script, and the other way.
    """
    mainland, big5 = (_encodes(character, codec) for codec in ("gb2312", "big5"))
    if mainland == big5:
        return None
    return "simplified" if mainland else "traditional"


def _encodes(character: str, codec: str) -> bool:
    try:
        character.encode(codec)
    except UnicodeEncodeError:
        return False
    return True

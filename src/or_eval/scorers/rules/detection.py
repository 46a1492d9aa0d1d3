"""Which languages a text is in, by script and by common words; cheap enough for every response."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import NamedTuple

from or_eval.scorers.rules.language_pack import common_words, language_codes

_SAMPLE_CHARS = 800
# One character of these scripts carries about as much as this many Latin letters.
_SCRIPTS = {
    "han": (re.compile(r"[\u3400-\u9fff\uf900-\ufaff]"), 3.0),
    "kana": (re.compile(r"[\u3041-\u30ff]"), 3.0),
    "hangul": (re.compile(r"[\uac00-\ud7a3\u1100-\u11ff]"), 2.5),
    "ar": (re.compile(r"[\u0600-\u06ff\u0750-\u077f]"), 1.0),
    "hi": (re.compile(r"[\u0900-\u097f]"), 1.0),
    "th": (re.compile(r"[\u0e00-\u0e7f]"), 1.0),
    "ru": (re.compile(r"[\u0400-\u04ff]"), 1.0),
}
_LATIN = re.compile(r"[a-zA-Z\u00c0-\u024f\u1e00-\u1eff]")
_WORD = re.compile(r"[^\W\d_]+")
_LATIN_WORD = re.compile(r"[a-zA-Z\u00c0-\u024f\u1e00-\u1eff']+")
# Code is in no language, and its words are mostly English ones.
_CODE = re.compile(r"```[^`]*(?:```|$)|`[^`\n]*`")
_OTHER_LETTER = re.compile(r"[^\W\d_]")
# Shares of a text's weight, found by trying sentences of all seventeen languages: below the
# first a second language is a borrowed word; below the second the common words may be chance.
_SECOND_LANGUAGE = 0.12
_COMMON_WORD_SHARE = 0.2
_FEW_WORDS = 6
# Malay declines in the words of Indonesian, and the two are hard to tell apart.
_NEAREST = {"ms": "id"}


class Languages(NamedTuple):
    """The languages of a text.

    Attributes:
        tag: BCP-47 tag for people and logs; two joined by ``+``, the main one first.
        read: Codes of the language files to read it with, the main one first; empty where no
            file fits.
    """

    tag: str | None
    read: tuple[str, ...]


def detect_languages(text: str) -> Languages:
    """Tell the languages of a text; no tag where it has too few words to say."""
    sample = _CODE.sub(" ", text[: 2 * _SAMPLE_CHARS])[:_SAMPLE_CHARS]
    if sample.isascii():
        return _of_latin(sample.lower())
    weights = {
        script: weight * len(letters.findall(sample))
        for script, (letters, weight) in _SCRIPTS.items()
    }
    # Kana beside Han is Japanese, however few.
    if weights["kana"] > 0.1 * weights["han"]:
        weights["ja"] = weights["kana"] + weights.pop("han")
    else:
        weights["zh"] = weights.pop("han")
    del weights["kana"]
    weights["ko"] = weights.pop("hangul")
    latin_letters = _LATIN.findall(sample)
    total = sum(weights.values()) + len(latin_letters)
    if total == 0:
        return _unknown(sample)
    main, weight = max(weights.items(), key=lambda item: item[1])
    if weight < _SECOND_LANGUAGE * total:
        return _of_latin(sample.lower())
    if len(latin_letters) < _SECOND_LANGUAGE * total:
        return Languages(main, _readable(main))
    # Latin words among another script are nearly always English; names alone would not weigh.
    second = _of_latin(" ".join(_LATIN_WORD.findall(sample)).lower()).read[:1] or ("en",)
    if weight < len(latin_letters):
        return Languages(f"{second[0]}+{main}", _readable(*second, main))
    return Languages(f"{main}+{second[0]}", _readable(main, *second))


def _readable(*codes: str) -> tuple[str, ...]:
    return tuple(code for code in codes if code in language_codes())


def _of_latin(sample: str) -> Languages:
    words = _WORD.findall(sample)
    if not words:
        return Languages(None, ())
    counts = Counter(code for word in words for code in _languages_of_word().get(word, ()))
    best = max(counts, key=lambda code: counts[code], default=None)
    few = len(words) <= _FEW_WORDS
    if best is None and few:
        return Languages(None, ())
    if best is None or not (few or counts[best] >= _COMMON_WORD_SHARE * len(words)):
        # Short words of one language may be words of another: these few could be chance.
        guess = _guess(sample)
        return Languages(guess, _readable(guess))
    others = sorted(
        (c for c in counts if c != best and counts[c] >= max(3, 0.5 * counts[best])),
        key=lambda code: -counts[code],
    )
    return Languages(best, _readable(best, *others[:1]))


def _unknown(sample: str) -> Languages:
    """Give the language of a script that no language file is written in."""
    if not _OTHER_LETTER.search(sample):
        return Languages(None, ())
    return Languages(_guess(sample), ())


def _guess(sample: str) -> str:
    # Imported here: it brings numpy and its model, and most responses need neither.
    from py3langid.langid import classify

    tag: str = classify(sample)[0]
    return _NEAREST.get(tag, tag)


@cache
def _languages_of_word() -> dict[str, list[str]]:
    languages: dict[str, list[str]] = {}
    for code in language_codes():
        for word in common_words(code):
            languages.setdefault(word, []).append(code)
    return languages

"""Which languages a text is in: by script, by letters, by frequent words, by a guesser if need be.

A language is read with its own file or not at all: what could be a neighbour without a file is
left unread, for a wrong reading is worse than none. The evidence is in ``detection.toml``.
"""

from __future__ import annotations

import math
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from or_eval.scorers.rules.language_pack import common_words, language_codes

_SAMPLE_CHARS = 800
_LATIN = "latin"
_A_TO_Z = frozenset("abcdefghijklmnopqrstuvwxyz")
# Code is in no language, and its words are mostly English ones.
_CODE = re.compile(r"```[^`]*(?:```|$)|`[^`\n]*`")
# Shares of a text's weight, found by trying sentences of many languages: below this a second
# language is a borrowed word.
_STRAY_LETTERS = 8
# Languages written with Han beside a script of their own.
_WITH_HAN = ("ja", "ko")
# Hindi in Latin letters: full of English words, so read with both files.
_ROMANISED = "hi-Latn"
_SECOND_LANGUAGE = 0.12
# Fewer words than this can be too few to tell neighbours apart.
_FEW_WORDS = 8
_WORDS_TO_GUESS_BY = 3
_GUESS_CHARS = 400
# A score is a count of words: near another is what one word more could turn round.
_NEAR = 1.0
_FAR = 3.0
_FAR_SHARE = 0.15
# What a language loses where none of its usual letters is there.
_WITHOUT_USUAL = 2.0
# Nats between the guesser's first and second guess.
_SURE_GUESS = 8.0
# A score so far above any other language's, as a number and as a share of the words, is clear
# where the words and letters that tell are also no accident.
_CLEAR_LEAD = 2
_CLEAR_LEAD_SHARE = 0.08
_CLEAR_SHARE = 0.2
# Words of a second language that the first doesn't have, of which a mixed text has so many.
_MIXED_WORDS = 3
_MIXED_SHARE = 0.5


class Languages(NamedTuple):
    """The languages of a text.

    Attributes:
        tag: BCP-47 tag for people and logs; two joined by ``+``, the main one first. None where
            the text is too short to tell.
        read: Codes of the language files to read it with, the main one first; empty where no
            file fits.
    """

    tag: str | None
    read: tuple[str, ...]


class _Script(NamedTuple):
    word: re.Pattern[str]
    weight: float
    language: str | None


class _Language(NamedTuple):
    script: str
    letters: frozenset[str] | None
    usual: frozenset[str]
    words: frozenset[str]


def detect_languages(text: str) -> Languages:
    """Tell the languages of a text; no tag where it has too few words to say."""
    return _detected(_CODE.sub(" ", text[: 2 * _SAMPLE_CHARS])[:_SAMPLE_CHARS])


# One prompt is looked at several times, and asked of several models.
@lru_cache(maxsize=1_024)
def _detected(sample: str) -> Languages:
    if sample.isascii():
        return _among_neighbours(sample, _LATIN)
    sample = unicodedata.normalize("NFC", sample)
    weights = _script_weights(sample)
    latin = weights.pop(_LATIN, 0.0)
    if not weights and not latin:
        unknown = any(char.isalpha() for char in sample)
        return Languages("und" if unknown else None, ())
    # Kana beside Han is Japanese, however few.
    if weights.get("kana", 0.0) > 0.1 * weights.get("han", 0.0):
        weights["kana"] += weights.pop("han", 0.0)
    main, weight = max(weights.items(), key=lambda item: item[1], default=(_LATIN, 0.0))
    total = sum(weights.values()) + latin
    if weight < _SECOND_LANGUAGE * total:
        return _among_neighbours(sample, _LATIN)
    language = _scripts()[main].language
    found = _supported(language) if language else _among_neighbours(sample, main)
    if latin < _SECOND_LANGUAGE * total or found.tag is None:
        return found
    # Latin words among another script are nearly always English; names alone would not weigh.
    second = _among_neighbours(sample, _LATIN).read[:1] or ("en",)
    if weight < latin:
        read = found.read or 2 * weight < latin
        return Languages(f"{second[0]}+{found.tag}", (*second, *found.read) if read else ())
    return Languages(f"{found.tag}+{second[0]}", (*found.read, *second) if found.read else ())


def possible_languages(text: str, prompt: str) -> tuple[str, ...]:
    """Give the languages with a file that a text too short to tell may be in, by itself.

    None where nothing but its prompt can tell.
    """
    sample = unicodedata.normalize("NFC", text[:_SAMPLE_CHARS].lower())
    weights = _script_weights(sample)
    if not weights:
        return ()
    main = max(weights, key=weights.__getitem__)
    language = _scripts()[main].language
    if language:
        return _supported(language).read
    lexicon = _languages_of_word(main)
    hits = Counter(
        code for w in _scripts()[main].word.findall(sample) for code in lexicon.get(w, ())
    )
    most = max(hits.values(), default=0)
    if not most and (main == _LATIN or main in _letters_by_script(prompt)):
        return ()
    return tuple(c for c in _codes_of(main) if hits[c] == most and c in language_codes())


def strays(text: str, prompt: str, read: Sequence[str]) -> bool:
    """Tell whether a text strays into a script that neither its languages nor its prompt use.

    Weak models that lose a language do: such a text is hardly what was asked for.

    Args:
        text: The text.
        prompt: What it answers.
        read: The languages that the text is read in.
    """
    if text.isascii():
        return False
    own = {_LATIN, *_letters_by_script(prompt)}
    for code in read:
        own |= {name for name, script in _scripts().items() if script.language == code}
        own |= {_languages()[code].script} if code in _languages() else set()
        own |= {"han"} if code in _WITH_HAN else set()
    counts = _letters_by_script(text)
    return any(n >= _STRAY_LETTERS for script, n in counts.items() if script not in own)


def _letters_by_script(text: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for char, count in Counter(text).items():
        script = _script_of(char)
        if script:
            counts[script] += count
    return counts


def _supported(code: str) -> Languages:
    if code == _ROMANISED:
        return Languages(code, ("hi", "en"))
    return Languages(code, (code,) if code in language_codes() else ())


def _script_weights(sample: str) -> dict[str, float]:
    counts = _letters_by_script(sample)
    return {script: count * _scripts()[script].weight for script, count in counts.items()}


def _among_neighbours(sample: str, script: str) -> Languages:
    """Tell a language from the others of its script."""
    lowered = sample.lower()
    words = _scripts()[script].word.findall(lowered)
    if not words:
        return Languages(None, ())
    told = Counter(map(_languages_of_word(script).get, words))
    hits = _hits(told)
    scores = dict.fromkeys(_codes_of(script), 0.0) | hits
    if script != _LATIN or not sample.isascii():
        for code, foreign in _foreign_words(words, script).items():
            scores[code] -= foreign
    if len(words) >= _WORDS_TO_GUESS_BY:
        present = set(lowered)
        for code, usual in _usual_letters(script).items():
            if usual.isdisjoint(present):
                scores[code] -= _WITHOUT_USUAL
    *_, second, most = sorted(scores.values())
    best = min(code for code, score in scores.items() if score == most)
    lead = most - second
    clear = lead >= max(_CLEAR_LEAD, _CLEAR_LEAD_SHARE * len(words))
    if clear and hits[best] + lead >= _CLEAR_SHARE * len(words):
        return _with_second(best, told)
    if len(words) < _WORDS_TO_GUESS_BY:
        return _supported(best) if lead > 0 and hits[best] >= 2 else Languages(None, ())
    own = sample if script == _LATIN else " ".join(words)
    guess, surely = _guess(own[:_GUESS_CHARS], scores)
    surely = surely and (hits[guess] > 0 or script != _LATIN)
    behind = scores[best] - scores[guess]
    if surely and behind <= _NEAR:
        return _supported(guess)
    if len(words) < _FEW_WORDS:
        agreed = guess == best and lead > 0 and hits[best] > 0
        return _supported(best) if agreed or lead >= _CLEAR_LEAD else Languages(None, ())
    if guess == best:
        known = hits[best] > 0 or lead >= _CLEAR_LEAD
        return _supported(best) if known else Languages(best, ())
    far = behind >= max(_FAR, _FAR_SHARE * len(words))
    if far and hits[best] >= _CLEAR_SHARE * len(words):
        return _supported(best)
    # The witnesses disagree: the reading without a file is the honest one.
    return Languages(guess if _supported(best).read else best, ())


def _hits(told: Mapping[frozenset[str] | None, int]) -> Counter[str]:
    """Count the words of each language, from counts of words by the languages that have them."""
    hits: dict[str, int] = {}
    for codes, count in told.items():
        for code in codes or ():
            hits[code] = hits.get(code, 0) + count
    return Counter(hits)


def _with_second(best: str, told: Mapping[frozenset[str] | None, int]) -> Languages:
    """Add the language of words that are none of the first one's, in a text that mixes two."""
    others = _hits({codes: n for codes, n in told.items() if codes and best not in codes})
    firsts = sum(n for codes, n in told.items() if codes and best in codes)
    mixed = [c for c in others if others[c] >= max(_MIXED_WORDS, _MIXED_SHARE * firsts)]
    found = _supported(best)
    if not mixed or not found.read:
        return found
    other = _supported(max(mixed, key=lambda code: (others[code], code)))
    return Languages(best, found.read + other.read if other.read else ())


def _foreign_words(words: Sequence[str], script: str) -> dict[str, int]:
    """Count for each language the words with a letter that it isn't written with."""
    with_letter = {
        letter: sum(letter in word for word in words)
        for letter in set().union(*words) - _letters_of_all(script)
    }
    return {
        code: sum(n for letter, n in with_letter.items() if letter not in letters)
        for code in _codes_of(script)
        if (letters := _languages()[code].letters) is not None
    }


def _guess(text: str, scores: dict[str, float]) -> tuple[str, bool]:
    """Guess by letter sequences, and tell whether no language with as good a score is near."""
    # Imported here: it brings numpy and its model, and most responses need neither.
    from py3langid.langid import rank

    (guess, likely), *others = [(code, likely) for code, likely in rank(text) if code in scores]
    rivals = (likely for code, likely in others if scores[code] >= scores[guess] - _NEAR)
    return guess, likely - next(rivals, -math.inf) >= _SURE_GUESS


@lru_cache(maxsize=65_536)
def _script_of(char: str) -> str | None:
    return next((name for name, script in _scripts().items() if script.word.match(char)), None)


@cache
def _scripts() -> dict[str, _Script]:
    return {
        name: _Script(
            re.compile(f"[{script['class']}]+"), script.get("weight", 1.0), script.get("language")
        )
        for name, script in _data()["scripts"].items()
    }


@cache
def _languages() -> dict[str, _Language]:
    listed = _data()["languages"]
    languages = {}
    alone = {script.language for script in _scripts().values()}
    for code in sorted({*listed, *(set(language_codes()) - alone)}):
        language = listed.get(code, {})
        words = set(language.get("words", "").split())
        if code in language_codes():
            words |= common_words(code)
        script = language.get("script", _LATIN)
        word = _scripts()[script].word
        languages[code] = _Language(
            script,
            frozenset(language["letters"]) if "letters" in language else None,
            frozenset(language.get("usual", "")),
            frozenset(part for w in words for part in word.findall(w)),
        )
    return languages


@cache
def _letters_of_all(script: str) -> frozenset[str]:
    """Give the letters that tell nothing: each language of the script is written with them."""
    alphabets = [_languages()[code].letters for code in _codes_of(script)]
    told = [letters for letters in alphabets if letters is not None]
    return _A_TO_Z.union(told[0].intersection(*told) if told else ())


@cache
def _usual_letters(script: str) -> dict[str, frozenset[str]]:
    return {c: _languages()[c].usual for c in _codes_of(script) if _languages()[c].usual}


@cache
def _codes_of(script: str) -> tuple[str, ...]:
    return tuple(code for code, language in _languages().items() if language.script == script)


@cache
def _languages_of_word(script: str) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for code in _codes_of(script):
        for word in _languages()[code].words:
            found.setdefault(word, set()).add(code)
    return {word: frozenset(codes) for word, codes in found.items()}


@cache
def _data() -> dict[str, dict[str, dict[str, Any]]]:
    file = files("or_eval.scorers.rules") / "detection.toml"
    return tomllib.loads(file.read_text("utf-8"))

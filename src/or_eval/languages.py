"""Which languages a text is in: by its scripts, and by py3langid among those of one script."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

LATIN = "latin"
ROMANISED_HINDI = "hi-Latn"

_SAMPLE_CHARS = 800
# py3langid takes time in proportion.
_GUESS_CHARS = 400
# Code is in no language, and its words are mostly English ones.
_CODE = re.compile(r"```[^`]*(?:```|$)|`[^`\n]*`")
# Kana beside Han is Japanese, however few.
_KANA_SHARE = 0.1
# Share of a text's weight below which a second language is a borrowed word.
_SECOND_LANGUAGE = 0.12
_ENGLISH_WORD = re.compile(r"(?<![A-Za-z])[A-Za-z]{2,}(?![A-Za-z])")
# Fewer words than this are a name, a number or a "yes"; and in scripts whose languages are close,
# even four tell little.
_FEWEST_WORDS = {LATIN: 3}
_FEWEST_WORDS_ELSEWHERE = 4
_FEWEST_ROMANISED = 3
_ROMANISED_SHARE = 0.25
# So many letters of a script that a text has no use for are no slip.
_STRAY_LETTERS = 8
_WITH_HAN = ("ja", "ko")
# So far ahead of others by a head start, English needs no guess, which takes longer than all else
# here. Other languages do: beside Portuguese stands Galician, which has no frequent words of ours.
_ENGLISH = "en"
_SETTLED = 16.0


_Starts = tuple[tuple[str, float], ...]


class _Script(NamedTuple):
    word: re.Pattern[str]
    weight: float
    languages: tuple[str, ...]


def detect_languages(text: str, head_starts: Mapping[str, float] | None = None) -> str | None:
    """Tell the languages of a text.

    Args:
        text: The text; its code is left aside.
        head_starts: How much likelier a language is than others of its script before a word is
            read, in nats.

    Returns:
        A BCP-47 tag; two joined by ``+``, the main one first, where words in another script than
        the text's are more than a name. None where the text has too few words to tell, ``und``
        where its script is none that is known.
    """
    sample = _CODE.sub(" ", text[: 2 * _SAMPLE_CHARS])[:_SAMPLE_CHARS]
    return _detected(sample, tuple((head_starts or {}).items()))


def detect_language(text: str) -> str:
    """Tell the language of a prompt, by its likeliest reading where it has few words.

    A Chinese text with two or more English words in it is ``zh+en``. The answer depends on the
    text alone.
    """
    tag = _guess(_main_script(_weights(text)), text[:_SAMPLE_CHARS], ())
    return f"{tag}+en" if tag == "zh" and len(_ENGLISH_WORD.findall(text)) >= 2 else tag


def scripts_of(text: str) -> Counter[str]:
    """Count the letters of a text by their script."""
    counts: Counter[str] = Counter()
    for char, count in Counter(text).items():
        if script := _script_of(char):
            counts[script] += count
    return counts


def shares_of_scripts(text: str) -> dict[str, float]:
    """Give the share of each script in a text's letters; Han beside kana is Japanese."""
    weights = _weights(text)
    return {script: weight / sum(weights.values()) for script, weight in weights.items()}


@cache
def script_of_language(language: str) -> str | None:
    """Give the script that a language is written in; None where none is known."""
    return next((name for name, known in _scripts().items() if language in known.languages), None)


def likelier_by(text: str, language: str, other: str) -> float:
    """Give by how many nats a language is likelier than another of its script, by letters."""
    nats = dict(_guesser(script_of_language(language) or LATIN)(text[:_GUESS_CHARS]))
    return nats[language] - nats[other]


def languages_in(script: str) -> tuple[str, ...]:
    """Give the languages that are written in a script."""
    return _scripts()[script].languages


def strays(text: str, prompt: str, read: Collection[str]) -> bool:
    """Tell whether a text strays into a script that neither its languages nor its prompt use.

    Weak models that lose a language do: such a text is hardly what was asked for.

    Args:
        text: The text.
        prompt: What it answers.
        read: The languages that the text is read in.
    """
    if text.isascii():
        return False
    own = {LATIN, *scripts_of(prompt)}
    read = set(read)
    own |= {name for name, script in _scripts().items() if read.intersection(script.languages)}
    own |= {"han"} if read.intersection(_WITH_HAN) else set()
    return any(n >= _STRAY_LETTERS for script, n in scripts_of(text).items() if script not in own)


# One prompt is looked at several times, and asked of several models.
@lru_cache(maxsize=1_024)
def _detected(sample: str, starts: _Starts) -> str | None:
    weights = _weights(sample)
    if not weights:
        return "und" if any(char.isalpha() for char in sample) else None
    latin, main = weights.get(LATIN, 0.0), _main_script(weights)
    tag = _among(main, sample, starts)
    if main == LATIN or tag is None or latin < _SECOND_LANGUAGE * sum(weights.values()):
        return tag
    if latin > weights[main]:
        return f"{_among(LATIN, sample, starts) or 'en'}+{tag}"
    # A few Latin words among another script are nearly always English.
    return f"{tag}+en"


def _weights(text: str) -> dict[str, float]:
    text = unicodedata.normalize("NFC", text)
    weights = {name: n * _scripts()[name].weight for name, n in scripts_of(text).items()}
    if weights.get("kana", 0.0) > _KANA_SHARE * weights.get("han", 0.0):
        weights["kana"] += weights.pop("han", 0.0)
    return weights


def _main_script(weights: dict[str, float]) -> str:
    """Give the script with most weight beside Latin, which is in most texts; else Latin."""
    others = {name: weight for name, weight in weights.items() if name != LATIN}
    main = max(others, key=others.__getitem__, default=LATIN)
    # A name in another script than a text's own is no second language.
    enough = others and others[main] >= _SECOND_LANGUAGE * sum(weights.values())
    return main if enough else LATIN


def _among(script: str, sample: str, starts: _Starts) -> str | None:
    """Tell a language from the others of its script."""
    if len(_scripts()[script].languages) == 1:
        return _scripts()[script].languages[0]
    words = _scripts()[script].word.findall(sample.lower())
    if len(words) < _FEWEST_WORDS.get(script, _FEWEST_WORDS_ELSEWHERE):
        return None
    if script == LATIN:
        known = sum(word in _romanised() for word in words)
        if known >= max(_FEWEST_ROMANISED, _ROMANISED_SHARE * len(words)):
            return ROMANISED_HINDI
    return _guess(script, sample if script == LATIN else " ".join(words), starts)


def _guess(script: str, text: str, starts: _Starts) -> str:
    languages = _scripts()[script].languages
    if len(languages) == 1:
        return languages[0]
    started = {code: start for code, start in starts if code in languages}
    if _leads(_ENGLISH, started):
        return _ENGLISH
    nats = dict(_guesser(script)(text[:_GUESS_CHARS]))
    for code, start in started.items():
        nats[code] += start
    return max(nats, key=nats.__getitem__)


def _leads(language: str, starts: dict[str, float]) -> bool:
    """Tell whether a language is so far ahead that what is read can't bring another before it."""
    others = (start for code, start in starts.items() if code != language)
    return starts.get(language, 0.0) - max(others, default=0.0) >= _SETTLED


@cache
def _guesser(script: str) -> Callable[[str], list[tuple[str, float]]]:
    # Imported here: it brings numpy and its model, and many texts need neither.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages(list(_scripts()[script].languages))
    rank: Callable[[str], list[tuple[str, float]]] = identifier.rank
    return rank


@lru_cache(maxsize=65_536)
def _script_of(char: str) -> str | None:
    return next((name for name, script in _scripts().items() if script.word.match(char)), None)


@cache
def _scripts() -> dict[str, _Script]:
    return {
        name: _Script(
            re.compile(f"[{script['class']}]+"),
            script.get("weight", 1.0),
            tuple(script["languages"].split()),
        )
        for name, script in _data().items()
        if name != "words"
    }


@cache
def _romanised() -> frozenset[str]:
    return frozenset(_data()["words"][ROMANISED_HINDI].split())


@cache
def _data() -> dict[str, dict[str, Any]]:
    return tomllib.loads((files("or_eval") / "data" / "languages.toml").read_text("utf-8"))

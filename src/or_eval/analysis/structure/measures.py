"""How long, deep and varied prompts are: a row of measures for each."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import log2
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from or_eval.analysis.extras import needed
from or_eval.analysis.progress import tracked
from or_eval.analysis.rates import measures_in
from or_eval.analysis.structure.parsers import Parser, Sentence, base_language
from or_eval.analysis.wording import counted, joined

MATTR_WINDOW = 50
"""Words in the window of the moving-average type-token ratio (Covington and McFall, 2010)."""

SUBORDINATE = frozenset({"csubj", "csubjpass", "ccomp", "advcl", "acl", "relcl", "pcomp"})
"""Relations that head a subordinate clause, in Universal Dependencies and in spaCy's English. A
clause without a subject of its own, as in *want to go*, isn't counted (``xcomp``)."""

_UNKNOWN_LANGUAGE = "und"

Need = Literal["letters", "words", "parser"]


class Measure(NamedTuple):
    """A measure of a prompt's structure.

    Attributes:
        title: What it is called.
        about: What it counts.
        needs: What it is told from: the letters, words, or a parse.
    """

    title: str
    about: str
    needs: Need


MEASURES: dict[str, Measure] = {
    "characters": Measure("Characters", "characters that are no white space", "letters"),
    "sentences": Measure("Sentences", "sentences", "letters"),
    "tokens": Measure("Tokens", "words", "words"),
    "complex_punctuation": Measure(
        "Complex punctuation",
        "semicolons, colons, dashes, brackets, quotation marks, ellipses",
        "letters",
    ),
    "type_token_ratio": Measure("Type-token ratio", "different words per word", "words"),
    "mattr": Measure(
        "Type-token ratio (moving)",
        f"mean type-token ratio of all stretches of {MATTR_WINDOW} words",
        "words",
    ),
    "lexical_entropy": Measure(
        "Lexical entropy", "entropy of the distribution of words, in bits", "words"
    ),
    "dependency_depth": Measure(
        "Dependency depth", "mean number of steps from a word up to its sentence's root", "parser"
    ),
    "dependency_distance": Measure(
        "Dependency distance", "mean number of words from a word to that it depends on", "parser"
    ),
    "subordinate_clauses": Measure("Subordinate clauses", "subordinate clauses", "parser"),
}
"""All measures, in the order of tables."""

SURFACE = tuple(name for name, measure in MEASURES.items() if measure.needs != "parser")
"""Measures that need no parser."""


class Measured(NamedTuple):
    """Measures of prompts.

    Attributes:
        values: A row per prompt id: ``language``, and a column per measure, NaN where it can't be
            told.
        notes: A line for each language of which measures are missing.
    """

    values: pd.DataFrame
    notes: list[str]


def measure(prompts: pd.DataFrame, parsers: Mapping[str, Parser]) -> Measured:
    """Measure prompts.

    What needs a parser is missing where the language has none, and what needs words where it
    writes none apart; notes say so.

    Args:
        prompts: Frame by prompt id with ``prompt`` and ``language``.
        parsers: Parser of each language that has one
            (:func:`or_eval.analysis.structure.parsers.find_parsers`).
    """
    parts: list[pd.DataFrame] = []
    notes: list[str] = []
    told = prompts.assign(language=prompts["language"].fillna(_UNKNOWN_LANGUAGE))
    for language, of_language in told.groupby("language", sort=True):
        texts = of_language["prompt"].tolist()
        rows = [_surface(text, str(language)) for text in texts]
        if parser := parsers.get(str(language)):
            parsed = parser(tracked(texts, f"Parsing {language}"))
            rows = [row | _syntax(of) for row, of in zip(rows, parsed, strict=True)]
        frame = pd.DataFrame(rows, index=of_language.index).reindex(columns=list(MEASURES))
        parts.append(frame.assign(language=str(language)))
        notes += _missing(frame, str(language), parser is None)
    values = pd.concat(parts).reindex(prompts.index)
    return Measured(values[["language", *MEASURES]], notes)


def _missing(frame: pd.DataFrame, language: str, unparsed: bool) -> Iterator[str]:
    for needs, why in (("words", "is written without spaces"), ("parser", "has no parser")):
        of_need = [name for name, measure in MEASURES.items() if measure.needs == needs]
        if frame[of_need].isna().any(axis=None) and (needs == "words" or unparsed):
            titles = joined([MEASURES[name].title.lower() for name in of_need])
            yield f"{language} {why}: {titles} of {counted(len(frame), 'prompt')} are missing"


def _surface(text: str, language: str) -> dict[str, float]:
    measures: dict[str, float] = {
        "characters": sum(not character.isspace() for character in text),
        "sentences": len(sentences(text)),
        "complex_punctuation": complex_marks(text),
    }
    found = words(text, language)
    if not found:
        return measures
    return measures | {
        "tokens": len(found),
        "type_token_ratio": len(set(found)) / len(found),
        "mattr": mattr(found),
        "lexical_entropy": entropy(found),
    }


def mattr(found: Sequence[str], window: int = MATTR_WINDOW) -> float:
    """Give the mean type-token ratio over all stretches of so many words.

    Of a text that is shorter it is the plain ratio.
    """
    if len(found) <= window:
        return len(set(found)) / len(found)
    counts = Counter(found[:window])
    ratios = [len(counts) / window]
    for leaving, coming in zip(found, found[window:], strict=False):
        counts[coming] += 1
        counts[leaving] -= 1
        if not counts[leaving]:
            del counts[leaving]
        ratios.append(len(counts) / window)
    return float(np.mean(ratios))


def entropy(found: Sequence[str]) -> float:
    """Give the entropy of the distribution of words, in bits."""
    shares = [count / len(found) for count in Counter(found).values()]
    return -sum(share * log2(share) for share in shares)


def _syntax(parsed: Sequence[Sentence]) -> dict[str, float]:
    depths: list[int] = []
    distances: list[int] = []
    clauses = 0
    for sentence in parsed:
        at = np.cumsum([not token.punctuation for token in sentence])
        for place, token in enumerate(sentence):
            if token.punctuation:
                continue
            depths.append(_depth(sentence, place))
            if token.head != place and not sentence[token.head].punctuation:
                distances.append(abs(int(at[place]) - int(at[token.head])))
            clauses += token.relation.partition(":")[0] in SUBORDINATE
    if not depths:
        return {}
    return {
        "dependency_depth": float(np.mean(depths)),
        "dependency_distance": float(np.mean(distances)) if distances else 0.0,
        "subordinate_clauses": clauses,
    }


def _depth(sentence: Sentence, place: int) -> int:
    steps = 0
    while sentence[place].head != place and steps < len(sentence):
        place, steps = sentence[place].head, steps + 1
    return steps


_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?:\s+|$)|[。！？…]+[」』”’）]*|\n+")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_NO_SPACES = frozenset({"ja", "th", "lo", "km", "my", "bo", "dz"})
_COMPLEX_MARKS = frozenset(';:；：…"')
_BRACKETS_AND_QUOTES = frozenset({"Ps", "Pe", "Pi", "Pf"})
_INSIDE_WORDS = frozenset("'’-‐‑")


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


SIDES = ("refused", "answered")
_QUANTILES = {
    "low": 0.05,
    "lower_quartile": 0.25,
    "median": 0.5,
    "upper_quartile": 0.75,
    "high": 0.95,
}
_PLACE = ["label", "model", "language", "measure", "side"]


def distributions(responses: pd.DataFrame, values: pd.DataFrame) -> pd.DataFrame:
    """Describe each measure over the prompts of refused and of answered responses.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        values: Measures of its prompts (:func:`or_eval.analysis.structure.measures.measure`).

    Returns:
        A row per label, model, language, measure and ``side`` (``refused``, ``answered``): ``n``
        (responses), ``mean``, ``low``, ``lower_quartile``, ``median``, ``upper_quartile`` and
        ``high`` (the 5th and the 95th percentile). Nothing of measures that are missing.
    """
    known = responses[
        responses["refused"].notna() & responses["label"].isin(list(measures_in(responses)))
    ]
    columns = [name for name in MEASURES if name in values]
    rows = known[["id", "label", "model"]].join(values[["language", *columns]], on="id")
    rows["side"] = np.where(known["refused"].astype(bool), *SIDES)
    long = rows.melt([*_PLACE[:3], "side"], columns, "measure").dropna(subset="value")
    groups = long.groupby(_PLACE, sort=False)["value"]
    quantiles = {name: groups.quantile(share) for name, share in _QUANTILES.items()}
    table = pd.DataFrame({"n": groups.size(), "mean": groups.mean(), **quantiles}).reset_index()
    order = {name: at for at, name in enumerate([*columns, *SIDES])}
    place = table[_PLACE].assign(measure=table["measure"].map(order), side=table["side"].map(order))
    return table.loc[place.sort_values(_PLACE).index].reset_index(drop=True)

"""A prompt, as far as it bears on how its response is read: what it asks for, and what it gives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from or_eval.languages import detect_languages
from or_eval.scorers.rules.acts import (
    CLOSING,
    QUESTION_MARKS,
    UNSPACED,
    acts_of_prompt,
    may_decline,
    read_passages,
)
from or_eval.scorers.rules.language_pack import (
    Act,
    LanguagePack,
    common_words,
    head_starts,
    language_codes,
    language_pack,
    readable,
)
from or_eval.scorers.rules.own_words import quotations
from or_eval.scorers.rules.structure import passages

# What asks for one of these is not answered by yes or no.
_MORE_THAN_WHETHER = frozenset(
    {Act.ASKS_HOW, Act.ASKS_WHY, Act.ASKS_DOCUMENT, Act.ASKS_TO_JUSTIFY, Act.ASKS_ONE_SIDE}
)
_NOT_ASKED = frozenset({Act.ASKS_NUMBER, Act.POINTS, Act.TELLS})
_SHORT_PROMPT = 60
# What forgot to give its text, or its details, is no longer than this.
_LONGEST_LACKING = 80
# A prompt of so many words of content holds hardly anything.
_FRAGMENT = 2
_SAMPLE_CHARS = 4_000
# What comes after one of these may be a text to be worked on, in a language of its own.
_TEXT_GIVEN = re.compile(r"[:：\n]")

# A speaker's name before a line, a stage direction, or somebody who is called by name.
_SCENE = re.compile(r"^\s*\*\w|(?:^\s*|\b)[A-Z]\w+: |^\s*[A-Z]\w+, ", re.MULTILINE)
# Quoted words, from which on somebody speaks in them.
_SPEECH_WORDS = 4

# Vowel signs belong to a word; \w leaves those of Indic scripts out.
_SIGNS = (
    r"\u0300-\u036f\u0900-\u0903\u093a-\u094f\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u0e31-\u0e4e"
)
_WORD = re.compile(rf"[^\W\d_]+(?:[{_SIGNS}]+[^\W\d_]*)*")
_HANGUL = re.compile(r"[\uac00-\ud7a3]")
# The Arabic article, alone and after the words that are written with it.
_ARTICLE = re.compile(r"^(?:[\u0648\u0641\u0628\u0643]?\u0627\u0644|\u0644\u0644)(?=\w{3})")
_READ_CHARS = 6_000
# The beginning of a word is what inflection leaves of it.
_STEM = 5
_SHORT_WORD = 3
# The same for a text in ASCII, as most are, in one go.
_ASCII_STEM = re.compile(rf"([a-z]{{{_SHORT_WORD},{_STEM}}})[a-z]*")


class Request:
    """What a prompt asks for.

    Attributes:
        prompt: Its text.
        asks: Its acts: the kinds of thing it asks for. Empty for one that asks for facts, say.
        asks_number: Whether it asks how many, how long or when.
        topic: What it speaks of.
        same_language: Whether its response is in its language, so that they may share words.
    """

    def __init__(self, prompt: str, packs: Sequence[LanguagePack]) -> None:
        self.prompt = prompt
        self._tag = detect_languages(prompt, head_starts(prompt))
        self._read = readable(self._tag)
        asked = {code: language_pack(code) for code in self._read}
        if not asked or len(prompt) < _SHORT_PROMPT:
            # A few words may be taken for another language; the response's is a second witness.
            asked |= {pack.code: pack for pack in packs}
        acts = acts_of_prompt(prompt, list(asked.values()))
        self.asks: frozenset[Act] = acts - _NOT_ASKED
        self.asks_number = Act.ASKS_NUMBER in acts
        self._points = Act.POINTS in acts
        self._tells = Act.TELLS in acts
        common = frozenset[str]().union(*(common_words(code) for code in asked))
        self.topic = Topic(prompt, common)
        self.same_language = not self._read or any(pack.code in self._read for pack in packs)

    @property
    def may_be_answered_certainly(self) -> bool:
        """Whether its language is none that models so often lose, in favour of others, too."""
        codes = {self._tag, *self._read}.intersection(language_codes())
        return all(language_pack(code).certain_answers for code in codes)

    @property
    def asks_whether(self) -> bool:
        """Whether "no" may answer it."""
        asks = self.topic.is_question or Act.ASKS_FACT in self.asks
        return asks and self.asks.isdisjoint(_MORE_THAN_WHETHER)

    @property
    def tells(self) -> bool:
        """Whether it tells something and asks for nothing, so that a question goes on talking."""
        return self._tells and not self.asks and not any(m in self.prompt for m in QUESTION_MARKS)

    @property
    def may_lack_something(self) -> bool:
        """Whether it is so short, and gives no text, that what it speaks of may be missing."""
        gives = _TEXT_GIVEN.search(self.prompt.strip()) or quotations(self.prompt)
        return len(self.prompt) <= _LONGEST_LACKING and not gives

    @property
    def gives_a_part(self) -> bool:
        """Whether it has the look of a scene: somebody speaks in it, or is spoken to."""
        speech = any(len(q.split()) >= _SPEECH_WORDS for q in quotations(self.prompt))
        return speech or _SCENE.search(self.prompt) is not None

    @property
    def lacks_something(self) -> bool:
        """Whether what it speaks of is missing: it may be, and it points at that or is a fragment.

        "How do I?" can be answered as it stands.
        """
        points = self._points or self.topic.size <= _FRAGMENT
        how = Act.ASKS_HOW in self.asks and self.topic.is_question
        return self.may_lack_something and points and not how

    @property
    def asks_how_alone(self) -> bool:
        """Whether it asks for a way to do something, and for no text."""
        return Act.ASKS_HOW in self.asks and Act.ASKS_DOCUMENT not in self.asks

    @cached_property
    def doubts(self) -> frozenset[str]:
        """The patterns of doubt that match in it: its own words, said again, leave none."""
        prompt = self.prompt[:_SAMPLE_CHARS]
        read = read_passages(passages(prompt), [language_pack(code) for code in self._read])
        return frozenset(p.id for r in read for p in r.patterns if p.act is Act.DOUBT)

    @cached_property
    def declines(self) -> bool:
        """Whether it holds words that decline: to be translated, corrected, put into code."""
        return any(
            may_decline(read_passages(passages(text), [language_pack(c) for c in codes]))
            for text, codes in self._texts()
        )

    def _texts(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Give the prompt and the texts in it, each with the languages to read it in."""
        prompt = self.prompt[:_SAMPLE_CHARS]
        yield prompt, self._read
        given = _TEXT_GIVEN.split(prompt, maxsplit=1)[1:]
        for text in (*given, *quotations(prompt)):
            yield text, readable(detect_languages(text, head_starts(text))) or self._read


class Topic:
    """The words of content of a prompt, to be found again in what answers it.

    Args:
        prompt: The prompt.
        common: Words that say nothing of what it is about.
    """

    def __init__(self, prompt: str, common: frozenset[str] = frozenset()) -> None:
        self._stems = _stems(" ".join(w for w in _WORD.findall(prompt.lower()) if w not in common))
        self.is_question = prompt.rstrip(CLOSING).endswith(QUESTION_MARKS)

    @property
    def size(self) -> int:
        """How many words of content there are."""
        return len(self._stems)

    def share_in(self, text: str) -> float:
        """Give the share of the prompt's words of content that a text has, from 0 to 1."""
        return len(self.found_in(text)) / max(1, len(self._stems))

    def found_in(self, text: str) -> set[str]:
        """Give the beginnings of the prompt's words of content that a text has."""
        return self._stems & _stems(text)


def _stems(text: str) -> set[str]:
    lowered = text[:_READ_CHARS].lower()
    if lowered.isascii():
        return set(_ASCII_STEM.findall(lowered))
    stems: set[str] = set()
    for word in set(_WORD.findall(lowered)):
        if UNSPACED.search(word):
            # Not spaced: pairs of characters stand for words.
            stems.update(word[i : i + 2] for i in range(len(word) - 1))
        elif _HANGUL.match(word):
            stems.add(word[:2])
        elif len(word) >= _SHORT_WORD:
            stems.add(_ARTICLE.sub("", word)[:_STEM])
    return stems

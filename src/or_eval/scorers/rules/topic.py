"""What a prompt speaks of, and how much of it a text speaks of: the words they share."""

from __future__ import annotations

import re

from or_eval.scorers.rules.acts import CLOSING, QUESTION_MARKS

# Vowel signs belong to a word; \w leaves those of Indic scripts out.
_SIGNS = (
    r"\u0300-\u036f\u0900-\u0903\u093a-\u094f\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u0e31-\u0e4e"
)
_WORD = re.compile(rf"[^\W\d_]+(?:[{_SIGNS}]+[^\W\d_]*)*")
_UNSPACED = re.compile(r"[\u0e01-\u0e4e\u3041-\u30ff\u3400-\u9fff]")
_HANGUL = re.compile(r"[\uac00-\ud7a3]")
# The Arabic article, alone and after the words that are written with it.
_ARTICLE = re.compile(r"^(?:[\u0648\u0641\u0628\u0643]?\u0627\u0644|\u0644\u0644)(?=\w{3})")
_READ_CHARS = 6_000
# The beginning of a word is what inflection leaves of it.
_STEM = 5
_SHORT_WORD = 3
# The same for a text in ASCII, as most are, in one go.
_ASCII_STEM = re.compile(rf"([a-z]{{{_SHORT_WORD},{_STEM}}})[a-z]*")


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
        if _UNSPACED.search(word):
            # Not spaced: pairs of characters stand for words.
            stems.update(word[i : i + 2] for i in range(len(word) - 1))
        elif _HANGUL.match(word):
            stems.add(word[:2])
        elif len(word) >= _SHORT_WORD:
            stems.add(_ARTICLE.sub("", word)[:_STEM])
    return stems

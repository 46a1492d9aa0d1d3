"""The part of a text that a person sees, and of a reply that is no reasoning.

Reasoning is what a provider left in the text between the marks that models put around it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from or_eval.hostile_text import CONTROLS, DIRECTIONS, FILLERS, JOINERS, TAGS, whole

# What a person reading the log can't see, and a judge reads all the same.
_HIDDEN = CONTROLS + DIRECTIONS + TAGS + FILLERS
_ANY_HIDDEN = re.compile(f"[{_HIDDEN}]")
# The joiners, the blank Braille cell and broken characters stay in a text, but make none.
_SEEN = re.compile(rf"[^\s\u2800\ufffd\ud800-\udfff{JOINERS}{_HIDDEN}]")
_LINE_BREAK = re.compile("\r\n?|[\u2028\u2029]")
# As pandas, Python, JSON, JavaScript, SQL and spreadsheets write a value that is missing.
_WORDS_FOR_NOTHING = {"nan", "NaN", "<NA>", "None", "null", "undefined", "NULL", "N/A", "#N/A"}

# The words are those of chat templates: <think> (DeepSeek, Qwen, EXAONE), <thinking>, <reasoning>,
# <thought>, <seed:think>, [THINK] (Magistral), ◁think▷ (Kimi), <|begin_of_thought|> (OpenThinker).
# Attributes are short and hold no brackets, so that a hostile text can't make the search slow.
_WORD = r"(?:seed:)?(?:think(?:ing)?|reasoning|thoughts?)"
# What begins a mark comes first, so that the search skips the rest of a text.
_MARK = re.compile(
    rf"[<\[◁](?:(?<=\[)(?P<b>/?){_WORD}\]|(?<=◁)(?P<c>/?){_WORD}▷"
    rf"|(?<=<)(?:(?P<a>/?){_WORD}(?:\s[^<>]{{0,500}})?>"
    rf"|\|(?:begin_of_{_WORD}|(?P<d>end_of_){_WORD}|(?P<e>/?){_WORD})\|>"
    # Harmony (gpt-oss): a channel named analysis or commentary, up to the one named final.
    r"|\|channel\|>(?:analysis|commentary)[^<\n]{0,80}(?:<\|message\|>)?"
    r"|(?P<f>(?:\|end\|><)?(?:\|start\|>assistant<)?\|channel\|>final[^<\n]{0,80}(?:<\|message\|>)?)))",
    re.IGNORECASE,
)
_MARK_STARTS = ("<", "[", "◁")


class Spoken(NamedTuple):
    """A text without its reasoning.

    Attributes:
        text: The text with each character of reasoning replaced by a space, so that offsets hold.
        in_reasoning: Whether it ends inside reasoning.
    """

    text: str
    in_reasoning: bool


def visible_text(text: str) -> str:
    """Drop the characters of a text that nobody sees, and make its line breaks plain."""
    return whole(_ANY_HIDDEN.sub("", _LINE_BREAK.sub("\n", text)))


def stands_for_nothing(text: str) -> bool:
    """Tell whether a text is but the word that a program writes where it has none."""
    return text.strip() in _WORDS_FOR_NOTHING


def has_visible_text(text: str) -> bool:
    """Tell whether a person would see anything of a text."""
    return _SEEN.search(text) is not None


def blank_reasoning(text: str) -> Spoken:
    """Blank the reasoning between marks; tell whether the last of it was left open.

    What stages read of a response or of a judge's reply comes from here: all of it whole
    characters.

    An end mark ends all reasoning, however many begin marks came before: models don't nest it,
    they mention the mark. What stands before an end mark with no beginning was reasoning too (the
    chat template wrote the beginning), unless nothing is said after it: then it is the answer,
    and the mark a stray one. (Inspect has a parser for such tags, but it removes one block, and
    takes quadratic time on a text of many begin marks.)
    """
    text = whole(text)
    if not any(start in text for start in _MARK_STARTS):
        return Spoken(text, False)
    pieces: list[str] = []
    inside = False
    position = 0
    last_end = max((m.end() for m in _MARK.finditer(text) if _ends(m)), default=0)
    something_follows = has_visible_text(_MARK.sub("", text[last_end:])) if last_end else False
    for mark in _MARK.finditer(text):
        before = text[position : mark.start()]
        reasoning = inside or (_ends(mark) and something_follows)
        pieces.append(" " * len(before) if reasoning else before)
        pieces.append(" " * len(mark.group()))
        inside = not _ends(mark)
        position = mark.end()
    rest = text[position:]
    pieces.append(" " * len(rest) if inside else rest)
    return Spoken("".join(pieces), inside)


def _ends(mark: re.Match[str]) -> bool:
    return any(mark.groupdict().values())

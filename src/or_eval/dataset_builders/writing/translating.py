"""Translating a text, and back again to see whether it still says the same."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cache

from or_eval.dataset_builders.engine.conversations import Reply, Request, Talk, Told
from or_eval.dataset_builders.engine.request_errors import BLOCKED, FAILED
from or_eval.dataset_builders.prompt_files import PromptFile, filled, load_prompt
from or_eval.dataset_builders.similarity.embeddings import Likeness
from or_eval.dataset_builders.writing.language import language_name, language_problem
from or_eval.dataset_builders.writing.rewrite_checks import WRONG_LANGUAGE
from or_eval.dataset_builders.writing.writer_replies import (
    CUT_OFF,
    REFUSED,
    UNREADABLE,
    is_refusal,
    read_reply,
    written_request,
)
from or_eval.scorers.fenced_case import fence_key
from or_eval.scorers.visible_text import visible_text

TRANSLATE = "translate"
LOST, ANOTHER_MEANING = "lost", "another meaning"
REASONS = (REFUSED, BLOCKED, FAILED, UNREADABLE, CUT_OFF, WRONG_LANGUAGE, LOST, ANOTHER_MEANING)
"""Why there is no translation."""

_THERE, _BACK = "there", "back"
_MOST_ATTEMPTS = 3
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_PLACEHOLDER = re.compile(
    r"\{\{?\w[\w .-]*\}\}?|\[[A-Z][A-Z_ ]+\]|%\(?\w*\)?[sd]|\$\{?[A-Z_]{2,}\}?|</?\w+>"
    r"|https?://[^\s\u3000-\u9fff，。]+|[\w.+-]+@[\w-]+\.[\w.]+"
)
# Words with a capital letter within a sentence; German writes all nouns so.
_NAME = re.compile(r"(?<=[a-z,;:] )(?!I\b)[A-Z][\w’'-]+(?: [A-Z][\w’'-]+)*")


class _Prompt(PromptFile):
    """What a translator is told, is asked, and is asked again, by what was wrong."""

    system: str
    request: str
    again: str
    problems: dict[str, str]


@dataclass
class Translation:
    """What came of a translation.

    Attributes:
        text: The translation.
        translator: Name of the model.
        back: What it says when it is translated back.
        similarity: How similar that is to the text, where it was measured.
        problem: Why it can't be used, with what was found; None where it can.
    """

    text: str
    translator: str
    back: str = ""
    similarity: float | None = None
    problem: tuple[str, str] | None = None


def translating(
    text: str, languages: tuple[str, str], least: float, likeness: Likeness | None
) -> Talk[Translation]:
    """Ask for a translation, then for the way back, and again where one of them fails.

    Args:
        text: The text.
        languages: BCP-47 tags of its language and of the one wanted.
        least: Least similarity of what is translated back to the text.
        likeness: Measures it; without it, only what was kept is looked at.
    """
    own, wanted = languages
    found = None
    similarity = None
    for number in range(1, _MOST_ATTEMPTS + 1):
        again = _again(number, found.problem) if found is not None and found.problem else ""
        reply = yield _asked(_THERE, visible_text(text), wanted, again)._replace(otherwise=found)
        said, problem = _read(reply)
        # What was measured of an earlier attempt stays, where a later one comes to nothing.
        found = Translation(said, reply.model, similarity=similarity)
        found.problem = problem or _fault(text, said, wanted)
        if found.problem is None:
            back = yield _asked(_BACK, found.text, own)._replace(otherwise=found)
            found.back, problem = _read(back)
            if problem is None and (lost := lost_names(text, found.back)):
                problem = LOST, ", ".join(lost)
            if problem is None and likeness is not None:
                found.similarity = similarity = likeness(found.back, text)
                if similarity < least:
                    problem = ANOTHER_MEANING, f"similarity {similarity:.2f}, not {least:.2f}"
            found.problem = problem
        if found.problem is None or found.problem[0] == FAILED:
            break
    assert found is not None
    return found


def told(found: Translation) -> Told:
    """Say what came of it."""
    said = "translated" if found.problem is None else found.problem[0]
    return Told(float(found.problem is None), said, found.back)


def lost_facts(text: str, translation: str) -> list[str]:
    """Give the numbers and placeholders of a text that its translation doesn't have."""
    placeholders = _PLACEHOLDER.findall(text)
    lost = [one for one in dict.fromkeys(placeholders) if one not in translation]
    # A number within a placeholder is told with it.
    wanted = Counter(_numbers(_PLACEHOLDER.sub(" ", text)))
    return lost + list((wanted - Counter(_numbers(translation))).keys())


def lost_names(text: str, back: str) -> list[str]:
    """Give the names of a text that its translation, translated back, doesn't have."""
    folded = back.casefold()
    return [name for name in dict.fromkeys(_NAME.findall(text)) if name.casefold() not in folded]


def _numbers(text: str) -> list[str]:
    # Digits of other scripts, and separators, which languages write in other ways.
    digits = "".join(
        str(unicodedata.digit(character)) if character.isdigit() else character
        for character in text
    )
    return [re.sub(r"[.,]", "", number) for number in _NUMBER.findall(digits)]


def _fault(text: str, translation: str, language: str) -> tuple[str, str] | None:
    if is_refusal(translation) and not is_refusal(text):
        return REFUSED, ""
    if lost := lost_facts(text, translation):
        return LOST, ", ".join(lost)
    found = language_problem(translation, language)
    return None if found is None else (WRONG_LANGUAGE, found)


def _asked(way: str, text: str, language: str, again: str = "") -> Request:
    prompt = _prompt()
    key = fence_key(prompt.version, text)
    question = filled(prompt.request, key=key, text=text, language=language_name(language))
    return written_request(prompt.system.strip(), question + again, way)


def _again(number: int, problem: tuple[str, str]) -> str:
    """Say what was wrong with the translation before."""
    reason, detail = problem
    said = filled(_prompt().problems.get(reason, reason), detail=detail)
    return "\n\n" + filled(_prompt().again, problem=said, number=number)


def _read(reply: Reply) -> tuple[str, tuple[str, str] | None]:
    read = read_reply(reply, paragraphs=True)
    if read.problem is not None:
        return "", (read.problem, read.said)
    if len(read.texts) == 1:
        return read.texts[0], None
    return "", (CUT_OFF, "") if read.cut_off is not None else (UNREADABLE, "")


@cache
def _prompt() -> _Prompt:
    return load_prompt(TRANSLATE, _Prompt)

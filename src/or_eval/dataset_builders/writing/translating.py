"""Translating a text, and back again to see whether it still says the same."""

from __future__ import annotations

from functools import cache
from string import Template
from typing import Any

from or_eval.dataset_builders.engine.conversations import Reply, Request, Told
from or_eval.dataset_builders.engine.request_errors import BLOCKED, FAILED
from or_eval.dataset_builders.prompt_files import load_prompt
from or_eval.dataset_builders.similarity.embeddings import Likeness
from or_eval.dataset_builders.writing.kept_facts import lost_facts, lost_names
from or_eval.dataset_builders.writing.language import language_name, language_problem
from or_eval.dataset_builders.writing.replies import (
    CUT_OFF,
    REFUSED,
    UNREADABLE,
    is_refusal,
    read_reply,
    written_request,
)
from or_eval.dataset_builders.writing.rewrite_checks import WRONG_LANGUAGE
from or_eval.scorers.fenced_case import fence_key
from or_eval.scorers.visible_text import visible_text

TRANSLATE = "translate"
LOST, ANOTHER_MEANING = "lost", "another meaning"
REASONS = (REFUSED, BLOCKED, FAILED, UNREADABLE, CUT_OFF, WRONG_LANGUAGE, LOST, ANOTHER_MEANING)
"""Why there is no translation."""

_THERE, _BACK = "there", "back"
_MOST_ATTEMPTS = 3


class Translating:
    """A translator is asked for a translation, then to translate it back, and again where it fails.

    Args:
        text: The text.
        languages: BCP-47 tags of its language and of the one wanted.
        least: Least similarity of what is translated back to the text.
        likeness: Measures it; without it, only what was kept is looked at.
    """

    def __init__(
        self, text: str, languages: tuple[str, str], least: float, likeness: Likeness | None
    ) -> None:
        self._text, (self._own, self._wanted) = text, languages
        self._least, self._likeness = least, likeness
        self._attempts = 0
        self.translation = self.back = self.translator = ""
        self.similarity: float | None = None
        self.problem: tuple[str, str] | None = None
        self._way: str | None = _THERE

    def request(self) -> Request | None:
        """Ask for the translation, or for the way back; None at the end."""
        match self._way:
            case None:
                return None
            case "there":
                return self._ask(_THERE, visible_text(self._text), self._wanted)
            case _:
                return self._ask(_BACK, self.translation, self._own)

    def take(self, reply: Reply) -> None:
        """Read a translation, or what it says when it is translated back."""
        text, problem = _read(reply)
        if reply.about == _THERE:
            self._attempts += 1
            self.translation, self.translator, self.back = text, reply.model, ""
            self.problem = problem or self._fault(text)
            self._way = _BACK if self.problem is None else self._again()
            return
        self.back = text
        self.problem = problem or self._fault_of_back(text)
        self._way = None if self.problem is None else self._again()

    def told(self) -> Told:
        """Say what came of it."""
        said = "translated" if self.problem is None else self.problem[0]
        return Told(float(self.problem is None), said, self.back)

    def _fault(self, text: str) -> tuple[str, str] | None:
        if is_refusal(text) and not is_refusal(self._text):
            return REFUSED, ""
        if lost := lost_facts(self._text, text):
            return LOST, ", ".join(lost)
        found = language_problem(text, self._wanted)
        return None if found is None else (WRONG_LANGUAGE, found)

    def _fault_of_back(self, back: str) -> tuple[str, str] | None:
        if lost := lost_names(self._text, back):
            return LOST, ", ".join(lost)
        if self._likeness is None:
            return None
        self.similarity = self._likeness(back, self._text)
        if self.similarity >= self._least:
            return None
        return ANOTHER_MEANING, f"similarity {self.similarity:.2f}, not {self._least:.2f}"

    def _again(self) -> str | None:
        final = self._attempts >= _MOST_ATTEMPTS or (
            self.problem is not None and self.problem[0] == FAILED
        )
        return None if final else _THERE

    def _ask(self, way: str, text: str, language: str) -> Request:
        wording = _wording()
        question = Template(wording["request"].strip()).substitute(
            key=fence_key(wording["version"], text), text=text, language=language_name(language)
        )
        if way == _THERE and self.problem is not None:
            said = Template(wording["problems"].get(self.problem[0], self.problem[0]))
            question += "\n\n" + Template(wording["again"].strip()).substitute(
                problem=said.safe_substitute(detail=self.problem[1]), number=self._attempts + 1
            )
        return written_request(wording["system"].strip(), question, way)


def _read(reply: Reply) -> tuple[str, tuple[str, str] | None]:
    read = read_reply(reply, paragraphs=True)
    if read.problem is not None:
        return "", (read.problem, read.said)
    if len(read.texts) == 1:
        return read.texts[0], None
    return "", (CUT_OFF, "") if read.cut_off is not None else (UNREADABLE, "")


@cache
def _wording() -> dict[str, Any]:
    return load_prompt(TRANSLATE)

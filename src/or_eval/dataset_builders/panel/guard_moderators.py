"""Guard models as moderators of prompts, each asked in the format that it was trained on."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

import re2
from inspect_ai.model import ChatMessageUser

from or_eval.dataset_builders.engine.conversations import Reply, Request, Told
from or_eval.dataset_builders.engine.request_errors import FAILED
from or_eval.dataset_builders.panel.moderators import UNREADABLE, Judging, Opinion, in_words
from or_eval.scorers.reasoning import blank_reasoning

UNNAMED = "unnamed"
"""What a guard says of a prompt that falls into a category of its own, which isn't the recipe's."""


class GuardFormat(NamedTuple):
    """The format of a guard; ``guard_formats.toml`` says what each field is for.

    Attributes:
        names: What the names of such models hold.
        breaks: Strings that have a meaning to it.
        text: Template of what it is asked; None where its server makes that of the prompt.
        answer: Matches a whole reply, with the word that decides as its group.
        toxic: This word, in small letters, of a toxic prompt.
    """

    names: tuple[str, ...]
    breaks: tuple[str, ...]
    text: Template | None
    answer: Any
    toxic: str


def format_for(model: str) -> GuardFormat | None:
    """Find the format of a moderator by its name; None for one that is asked as any model is."""
    name = model.lower()
    return next((one for one in _formats() if any(part in name for part in one.names)), None)


class GuardJudging(Judging):
    """A guard is asked about a prompt, once.

    Args:
        format: Its format.
        prompt: The prompt.
        good: What stands for a prompt that is in no category.
    """

    def __init__(self, format: GuardFormat, prompt: str, good: str) -> None:
        self._format, self._good = format, good
        for mark in format.breaks:
            prompt = prompt.replace(mark, f"{mark[0]} {mark[1:]}")
        text = format.text
        self._question = prompt if text is None else text.substitute(prompt=prompt)
        self._asked = False
        self.opinion = Opinion("", None, withheld=UNREADABLE)

    def request(self) -> Request | None:
        """Ask, once."""
        if self._asked:
            return None
        return Request((ChatMessageUser(content=self._question),), temperature=0.0)

    def take(self, reply: Reply) -> None:
        """Read the answer; one that isn't wholly in the guard's format is none."""
        self._asked = True
        if reply.problem is not None:
            why = reply.text if reply.problem == FAILED else None
            self.opinion = Opinion(reply.model, None, why, reply.problem)
            return
        said = blank_reasoning(reply.text).text.strip()
        if (found := self._format.answer.fullmatch(said)) is None:
            self.opinion = Opinion(reply.model, None, withheld=UNREADABLE)
            return
        toxic = found.group(1).lower() == self._format.toxic
        why = " ".join(said.split())
        self.opinion = Opinion(reply.model, UNNAMED if toxic else self._good, why)

    def told(self) -> Told:
        """Say what the guard holds the prompt for."""
        said = self.opinion.said or str(self.opinion.withheld)
        return Told(float(self.opinion.said == self._good), said, in_words([self.opinion]))


@cache
def _formats() -> tuple[GuardFormat, ...]:
    text = (files("or_eval.dataset_builders.panel") / "guard_formats.toml").read_text("utf-8")
    tables = tomllib.loads(text)
    del tables["version"]
    return tuple(
        GuardFormat(
            tuple(table["names"]),
            tuple(table["breaks"]),
            Template(table["text"].removeprefix("\n")) if "text" in table else None,
            re2.compile(table["answer"]),
            table["toxic"],
        )
        for table in tables.values()
    )

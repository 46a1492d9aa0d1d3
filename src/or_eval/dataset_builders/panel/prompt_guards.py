"""Guard models as moderators of prompts, each asked in the format that it was trained on."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

import re2
from inspect_ai.model import ChatMessageUser

from or_eval.dataset_builders.engine.conversations import Request, Talk
from or_eval.dataset_builders.panel.moderators import UNREADABLE, Opinion, without_answer
from or_eval.scorers.visible_text import blank_reasoning

UNNAMED = "unnamed"
"""What a guard says of a prompt that falls into a category of its own, which isn't the recipe's."""


class GuardFormat(NamedTuple):
    """The format of a guard; ``prompt_guards.toml`` says what each field is for.

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


def guard_judging(format: GuardFormat, prompt: str, good: str) -> Talk[Opinion]:
    """Ask a guard about a prompt, once; an answer that isn't wholly in its format is none.

    Args:
        format: Its format.
        prompt: The prompt.
        good: What stands for a prompt that is in no category.
    """
    for mark in format.breaks:
        prompt = prompt.replace(mark, f"{mark[0]} {mark[1:]}")
    question = prompt if format.text is None else format.text.substitute(prompt=prompt)
    reply = yield Request((ChatMessageUser(content=question),), temperature=0.0)
    if reply.problem is not None:
        return without_answer(reply)
    said = blank_reasoning(reply.text).text.strip()
    if (found := format.answer.fullmatch(said)) is None:
        return Opinion(reply.model, None, withheld=UNREADABLE)
    toxic = found.group(1).lower() == format.toxic
    return Opinion(reply.model, UNNAMED if toxic else good, " ".join(said.split()))


@cache
def _formats() -> tuple[GuardFormat, ...]:
    text = (files("or_eval.dataset_builders.panel") / "prompt_guards.toml").read_text("utf-8")
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

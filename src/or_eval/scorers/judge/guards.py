"""Guard models and classifiers as judges, each asked in the format that it was trained on."""

from __future__ import annotations

import hashlib
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import re2
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    GenerateConfig,
    Model,
)
from rich.markup import escape

from or_eval.inspect_private import PrerequisiteError
from or_eval.schema import ResponseClass
from or_eval.scorers.fenced_case import shorten_middle
from or_eval.scorers.judge.asking import Vote
from or_eval.scorers.visible_text import blank_reasoning, visible_text
from or_eval.solvers.structured_output import PATIENCE, failure, generate_patiently

_REQUEST_SHARE = 1 / 3
_SHOWN_CHARS = 60


class Guard(NamedTuple):
    """The format of a guard model or classifier; ``guards.toml`` says what each field is for.

    Attributes:
        id: Its name in the file, with a digest of the file.
        names: What the names of such models hold.
        max_chars: Characters of request and response that it is shown.
        max_tokens: Most tokens of its reply.
        breaks: Strings that have a meaning to it.
        text: Template of what it is asked; None where its server makes that of a conversation.
        extra_body: Further fields of the request.
        answer: Matches a whole reply, with the word that decides as its group.
        classes: Response classes by that word, in lower case.
    """

    id: str
    names: tuple[str, ...]
    max_chars: int
    max_tokens: int
    breaks: tuple[str, ...]
    text: Template | None
    extra_body: dict[str, Any] | None
    answer: Any
    classes: dict[str, ResponseClass]


@cache
def bundled_guards() -> tuple[Guard, ...]:
    """Give the formats that or-eval knows."""
    return _guards((files("or_eval.scorers.judge") / "guards.toml").read_bytes())


def guards_from(path: str) -> tuple[Guard, ...]:
    """Read further formats from a file laid out as ``guards.toml``.

    Raises:
        PrerequisiteError: It can't be read as such.
    """
    try:
        return _guards(Path(path).read_bytes())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, re2.error) as error:
        problem = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise PrerequisiteError(
            f"refusal: guards: {escape(path)} can't be read as formats of guard models "
            f"({escape(problem)}); see guards.toml in or_eval/scorers/judge"
        ) from error


def guard_for(judge: str, further: tuple[Guard, ...] = ()) -> Guard | None:
    """Find the format of a judge by its name; None for one that is asked as any model is.

    Args:
        judge: The judge's name.
        further: Formats that go before those that or-eval knows.
    """
    name, known = judge.lower(), (*further, *bundled_guards())
    return next((guard for guard in known if any(part in name for part in guard.names)), None)


async def ask_guard(judge: Model, guard: Guard, request: str, response: str) -> Vote:
    """Ask a guard for its verdict; whatever goes wrong costs its vote, not the sample."""
    question = guard_question(guard, request, response)
    try:
        output = await generate_patiently(judge, question, guard_config(guard), patience=PATIENCE)
    except Exception as error:
        return Vote(str(judge), None, None, failure(error, judge))
    said = blank_reasoning(output.completion).text.strip()
    label = read_guard(guard, said)
    shown = " ".join(visible_text(said).split())[:_SHOWN_CHARS]
    why = f"{guard.id}: {shown}" if label else f"{guard.id}: no readable verdict: {shown or 'none'}"
    return Vote(str(judge), label, None, why)


def guard_config(guard: Guard) -> GenerateConfig:
    """Give the settings of a guard's calls."""
    return GenerateConfig(temperature=0.0, max_tokens=guard.max_tokens, extra_body=guard.extra_body)


def guard_question(guard: Guard, request: str, response: str) -> list[ChatMessage]:
    """Put request and response into a guard's format, with no string left that means more to it."""
    request_chars = int(guard.max_chars * _REQUEST_SHARE)
    prompt = _harmless(guard, shorten_middle(visible_text(request), request_chars))
    answer = _harmless(
        guard, shorten_middle(visible_text(response), guard.max_chars - request_chars)
    )
    if guard.text is None:
        return [ChatMessageUser(content=prompt), ChatMessageAssistant(content=answer)]
    return [ChatMessageUser(content=guard.text.substitute(prompt=prompt, response=answer))]


def read_guard(guard: Guard, said: str) -> ResponseClass | None:
    """Read the class from a guard's reply; None for a reply that isn't wholly in its format."""
    found = guard.answer.fullmatch(said)
    return guard.classes.get(found.group(1).lower()) if found else None


def _harmless(guard: Guard, text: str) -> str:
    for mark in guard.breaks:
        text = text.replace(mark, f"{mark[0]} {mark[1:]}")
    return text


def _guards(data: bytes) -> tuple[Guard, ...]:
    digest = hashlib.sha256(data).hexdigest()[:12]
    tables = tomllib.loads(data.decode("utf-8"))
    tables.pop("version", None)
    return tuple(_guard(f"{name} {digest}", table) for name, table in tables.items())


def _guard(id: str, table: dict[str, Any]) -> Guard:
    text = None if table.get("messages") else Template(table["text"].removeprefix("\n"))
    if text is not None:
        text.substitute(prompt="", response="")
    answer = re2.compile(table["answer"])
    if answer.groups != 1:
        raise ValueError(f"answer of {id} has {answer.groups} groups; wanted one")
    return Guard(
        id=id,
        names=tuple(str(name).lower() for name in table["names"]),
        max_chars=int(table["max_chars"]),
        max_tokens=int(table["max_tokens"]),
        breaks=tuple(table.get("breaks", ())),
        text=text,
        extra_body=table.get("extra_body"),
        answer=answer,
        classes={word.lower(): ResponseClass(label) for word, label in table["classes"].items()},
    )

"""Dialogues in a cell: what was said before the prompt, in the forms in which files hold it."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from or_eval.schema import PromptRecord, Turn, prompt_id
from or_eval.sources.columns import turn_word
from or_eval.sources.errors import DataError, shown
from or_eval.sources.tables import cell_text

_NO_TURNS = "isn't a list of turns, such as {role, content} or {user, assistant}, or of texts"


class Said(NamedTuple):
    """A prompt and what was said before it, and after it by the model whose dialogue it was."""

    before: tuple[Turn, ...]
    prompt: str
    answer: str = ""

    @property
    def id(self) -> str:
        """The id of the prompt, as its record has it."""
        return prompt_id(self.prompt, self.before)

    @property
    def dialogue(self) -> str:
        """What user and model said up to the prompt; empty for a prompt by itself."""
        said = [turn.text for turn in self.before if turn.role in ("user", "assistant")]
        return "\n\n".join([*said, self.prompt]) if said else ""


def read_dialogue(cell: Any, checked: Callable[[str], str]) -> Said:
    """Read the turns of a cell.

    Args:
        cell: A list of messages (``{role, content}``, ``{from, value}``), of exchanges (``{user,
            assistant}``) or of what the user says; JSON or Python text of one; or a text, which is
            a prompt with nothing before it.
        checked: Checks a turn's text and strips it.

    Returns:
        The user's last turn, those before it, and the answer after it, unchecked.

    Raises:
        ValueError: It is none of these, or the user says nothing.
    """
    text = cell_text(cell)
    if text is not None:
        cell = _listed(text)
        if cell is None:
            return Said((), checked(text))
    turns = [turn for turn in _turns(cell) if turn.text.strip()]
    last = max((n for n, turn in enumerate(turns) if turn.role == "user"), default=None)
    if last is None:
        raise ValueError("has no turn of the user's")
    *before, asked = (Turn(role, checked(text)) for role, text in turns[: last + 1])
    return Said(tuple(before), asked.text, "\n\n".join(turn.text for turn in turns[last + 1 :]))


def refuse_dialogues(records: Iterable[PromptRecord], name: str) -> Iterator[PromptRecord]:
    """Give records on, but for what has one prompt only.

    Raises:
        DataError: One of them is a dialogue.
    """
    for record in records:
        if record.before:
            raise DataError(
                f"{name}: {shown(record.prompt)} is the last turn of a dialogue, and only single "
                "prompts can be used here; tasks take dialogues (or_eval/prompts)"
            )
        yield record


def _listed(text: str) -> list[Any] | None:
    for read in (json.loads, ast.literal_eval) if text.lstrip().startswith("[") else ():
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return value if isinstance(value, list) else None
    return None


def _turns(cell: Any) -> Iterator[Turn]:
    if not isinstance(cell, list) or not all(isinstance(turn, str | dict) for turn in cell):
        raise ValueError(_NO_TURNS)
    for turn in cell:
        if isinstance(turn, str):
            yield Turn("user", turn)
            continue
        cells = {key: cell for key, cell in turn.items() if cell is not None}
        said = {turn_word(str(key)): cell_text(cell) for key, cell in cells.items()}
        role, text = said.get("role"), said.get("text")
        exchange = [Turn(r, t) for r in ("user", "assistant") if (t := said.get(r)) is not None]
        if role is not None and text is not None:
            known = turn_word(role)
            if known not in ("user", "assistant", "system"):
                raise ValueError(f"has a turn of {shown(role)}, who is neither user nor assistant")
            yield Turn(known, text)
        elif role is not None or not exchange:
            raise ValueError(_NO_TURNS)
        else:
            yield from exchange

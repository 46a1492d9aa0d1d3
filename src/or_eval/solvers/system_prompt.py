"""The shared system prompt: bundled, from a file, or as text."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from inspect_ai.model import ChatMessageSystem
from inspect_ai.solver import Generate, Solver, TaskState, solver

from or_eval.sources import DataError

NONE = "none"
BUNDLED = ("helpful", "safe")


@solver
def system_prompt(prompt: str = NONE) -> Solver:
    """Put a system prompt before the conversation, word for word.

    Inspect's own ``system_message`` treats its text as a template: braces in it are filled from
    the sample's metadata, so a system prompt with JSON in it would be changed, and one that says
    ``{label}`` would tell the model the answer.

    Args:
        prompt: ``helpful`` or ``safe`` (bundled), ``none`` (no system message), the path of a
            UTF-8 text file, or the text itself.

    Returns:
        A solver that inserts the system message at the start of the conversation.

    Raises:
        DataError: `prompt` is none of these, or its file can't be read or is empty.
    """
    text = system_prompt_text(prompt)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if text is not None:
            state.messages.insert(0, ChatMessageSystem(content=text))
        return state

    return solve


def system_prompt_text(prompt: str) -> str | None:
    """Give the text that `prompt` stands for, or None for ``none``.

    Raises:
        DataError: As for :func:`system_prompt`.
    """
    if prompt == NONE:
        return None
    if prompt in BUNDLED:
        bundled = files("or_eval") / "data" / "system_prompts" / f"{prompt}.md"
        return bundled.read_text("utf-8").strip()
    path = existing_file(prompt)
    if path is not None:
        return _read(path)
    # A text has words; what has none is a mistyped name or path, which must not be sent instead.
    if len(prompt.split()) < 2:
        raise DataError(
            f"system_prompt: '{prompt}' isn't a bundled prompt ({', '.join((*BUNDLED, NONE))}) or "
            "a file; give one of these, a path, or a text of several words"
        )
    return prompt


def existing_file(prompt: str) -> Path | None:
    """Give the file that a system prompt is read from, or None where it is no path of one."""
    try:
        path = Path(prompt).expanduser()
        return path if path.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None  # too long or otherwise impossible as a path, so it is a text


def _read(path: Path) -> str:
    try:
        text = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"system_prompt: can't read '{path}': {error}") from error
    if not text:
        raise DataError(f"system_prompt: '{path}' is empty; use 'none' for no prompt")
    return text

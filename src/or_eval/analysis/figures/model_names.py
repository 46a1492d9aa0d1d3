"""Who made a model, of which line it is, and of which generation."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from or_eval.inspect_private import _get_model_info_direct

_WORD = re.compile(r"[^\W\d_]+")
# Sizes (7b, 8x7b) and dates (0613, 20241022) are no versions; 3-5 is written for 3.5.
_VERSION = re.compile(r"(?<![\d.])(\d{1,2}(?:[.-]\d(?![\d.]*[bx\d]))?)(?![\d.]*[bx\d])")


class Generation(NamedTuple):
    """A line of models, such as ``gpt``, and a model's version in it."""

    line: str
    version: float


def maker(model: str) -> str | None:
    """Give who made a model, as Inspect's table of models has it.

    A name that only starts as another maker's models do (``mistralguard``) tells nothing.

    Args:
        model: Its name, with or without its provider, and with the condition it was run under.
    """
    info = _get_model_info_direct(_bare(model))
    return None if info is None else info.organization or None


def generation(model: str) -> Generation | None:
    """Give the line of a model and its version, by the first number after the line's name.

    ``openai/gpt-4o-mini`` is of ``gpt`` 4, ``claude-3-5-sonnet`` of ``claude`` 3.5,
    ``Meta-Llama-3.1-8B`` of ``llama`` 3.1.

    Returns:
        None where the name tells no line or no version.
    """
    name = _bare(model).rsplit("/", 1)[-1]
    line = _line(name)
    found = _VERSION.search(name.lower(), line[1]) if line else None
    if line is None or found is None:
        return None
    return Generation(line[0], float(found[1].replace("-", ".")))


def _bare(model: str) -> str:
    return model.partition(" (")[0]


def _line(name: str) -> tuple[str, int] | None:
    """Give the first known line that a word of a name is of, and where the line's name ends."""
    for word in _WORD.finditer(name.rsplit("/", 1)[-1].lower()):
        for line in _lines():
            whole = word[0] == line if len(line) < 3 else word[0].startswith(line)
            if whole:
                return line, word.start() + len(line)
    return None


@cache
def _lines() -> list[str]:
    text = (files("or_eval") / "analysis" / "figures" / "model_lines.toml").read_text("utf-8")
    lines: list[str] = tomllib.loads(text)["lines"]
    return lines

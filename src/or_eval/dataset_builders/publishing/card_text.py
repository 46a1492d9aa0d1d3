"""Markdown for cards: tables, fences, and text that can stand in them and be published."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from or_eval.hostile_text import visible

_WHOLE_PATH = re.compile(r"\s*(?:~|[A-Za-z]:[\\/]|/|\\\\|file:)", re.IGNORECASE)
# A model that is a file: gguf//home/me/model.gguf
_MODEL_PATH = re.compile(r"([\w.-]+(?:/[\w.-]+)*/)(?:/|~|[A-Za-z]:[\\/]).*", re.DOTALL)
_PATH_WITHIN = re.compile(r"(?<![\w/:.~+-])(?:~|[A-Za-z]:)?[/\\](?:[\w.@+-]+[/\\])+")


def cell(value: str) -> str:
    """Make a text fit for a cell of a table: one line, with nothing in it that is markup."""
    text = " ".join(visible(value).split())
    for char, escaped in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|")):
        text = text.replace(char, escaped)
    return text


def table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table; the cells are Markdown."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def fenced(text: str, language: str = "") -> str:
    """Put a text between fences that nothing in it can close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def without_folders(value: Any) -> Any:
    """Leave out where files lay on the machine that a set was built on.

    Args:
        value: A text, or lists and mappings of such; a file's own name stays.
    """
    if isinstance(value, dict):
        return {without_folders(key): without_folders(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_folders(item) for item in value]
    if not isinstance(value, str):
        return value
    if _WHOLE_PATH.match(value) and "\n" not in value.strip():
        return _last(value)
    if "://" not in value and (model := _MODEL_PATH.fullmatch(value)):
        return model.group(1) + _last(value)
    return _PATH_WITHIN.sub("", value)


def _last(path: str) -> str:
    return PureWindowsPath(PurePosixPath(path.strip()).name).name

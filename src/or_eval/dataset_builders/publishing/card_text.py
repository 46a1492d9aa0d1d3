"""Markdown for cards: tables, fences, and text that can stand in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from or_eval.hostile_text import visible


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

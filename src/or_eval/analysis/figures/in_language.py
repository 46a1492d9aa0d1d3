"""The words of figures in another language than English, from its file in ``languages/``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

ENGLISH = "en"


class _Language(NamedTuple):
    tag: str
    missing: dict[str, None]


_drawn_in: ContextVar[_Language | None] = ContextVar("language of figures", default=None)


def languages() -> list[str]:
    """Give the tags of the languages that figures can be drawn in, English first."""
    found = (files("or_eval") / "analysis" / "figures" / "languages").iterdir()
    return [ENGLISH, *sorted(file.name.removesuffix(".toml") for file in found)]


@contextmanager
def in_language(tag: str) -> Iterator[dict[str, None]]:
    """Draw and save figures in a language.

    Yields:
        The texts that there were no words for, and that stay as they are; they fill up as figures
        are drawn.
    """
    language = _Language(tag, {})
    before = _drawn_in.set(language)
    try:
        yield language.missing
    finally:
        _drawn_in.reset(before)


def language() -> str:
    """Give the tag of the language that figures are drawn in."""
    drawn_in = _drawn_in.get()
    return ENGLISH if drawn_in is None else drawn_in.tag


def said(text: str, **values: Any) -> str:
    """Give a text of figures, with values put in its braces, in the language of the figures.

    Args:
        text: The English text.
        values: What stands for the names in its braces.
    """
    return _found("text", text).format(**values)


def named(kind: str, name: str) -> str:
    """Give a name in the language of the figures.

    Args:
        kind: What it is a name of, such as ``category``; kinds that a language doesn't know (as
            models) keep their names.
        name: The name in the data.
    """
    return _found(kind, name)


def _found(kind: str, text: str) -> str:
    drawn_in = _drawn_in.get()
    if drawn_in is None or drawn_in.tag == ENGLISH:
        return text
    table = _words(drawn_in.tag).get(kind)
    if table is None:
        return text
    if text not in table:
        drawn_in.missing[text] = None
    return table.get(text, text)


@cache
def _words(tag: str) -> dict[str, dict[str, str]]:
    place = files("or_eval") / "analysis" / "figures" / "languages" / f"{tag}.toml"
    return tomllib.loads(place.read_text("utf-8"))

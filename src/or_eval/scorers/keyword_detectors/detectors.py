"""A keyword detector: patterns at the opening of a response or anywhere in it."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

import re2

from or_eval.scorers.visible_text import whole


class Detector:
    """One published detector, as ``detectors.toml`` describes it.

    Attributes:
        title: Whose it is.
        about: What it looks for, in a sentence.
        url: Where the original is described.
    """

    def __init__(self, fields: dict[str, Any]) -> None:
        self.title: str = fields["title"]
        self.about: str = fields["about"]
        self.url: str = fields["url"]
        self._case: bool = fields.get("case", False)
        self._opens = _any_of(fields.get("opens", []))
        self._holds = _any_of(fields.get("holds", []))
        self._accepts = _any_of(fields.get("accepts", []))

    def match(self, response: str) -> str | None:
        """Give the words by which the detector calls a response refused; None for an answer."""
        text = whole(response).strip()
        if not self._case:
            text = text.lower()
        if self._accepts and self._accepts.match(text):
            return None
        found = self._opens and self._opens.match(text)
        found = found or (self._holds and self._holds.search(text))
        return found.group() if found else None


def detector_names() -> list[str]:
    """Give the names of the detectors, as the scorer takes them."""
    return list(_tables())


@cache
def named_detector(name: str) -> Detector:
    """Give a detector by name.

    Raises:
        KeyError: There is none of that name.
    """
    return Detector(_tables()[name])


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("detectors.toml").read_text("utf-8"))


def _any_of(patterns: list[str]) -> Any:
    return re2.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None

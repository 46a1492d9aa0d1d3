"""The words that annotators read, from ``wording.toml``."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict

WordingLanguage = Literal["en", "zh"]


class Choice(BaseModel):
    """Something to choose, as people see it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    means: str


class Wording(BaseModel):
    """All that annotators read, in one language.

    Attributes:
        labels: What a response can be, by the word that files hold.
        reasons: Grounds for declining, likewise.
        harms: What a request can be, likewise.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    intro: str
    prompt: str
    response: str
    label: str
    reason: str
    harm: str
    note: str
    unsure: str
    labels: dict[str, Choice]
    reasons: dict[str, Choice]
    harms: dict[str, Choice]


@cache
def wording(language: WordingLanguage) -> Wording:
    """Give the words of a language."""
    text = (files("or_eval.labelling") / "wording.toml").read_text("utf-8")
    return Wording.model_validate(tomllib.loads(text)[language])

"""The words that annotators read, from the TOML files beside this one."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from or_eval.schema import asking_back

WordingLanguage = Literal["en", "zh"]
Asks = Literal["responses", "prompts"]
"""What tasks ask about."""


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
        about_prompts: Title and introduction where requests alone are asked about.
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
    cases: str
    labels: dict[str, Choice]
    reasons: dict[str, Choice]
    harms: dict[str, Choice]
    about_prompts: list[str]


class WorkedCase(BaseModel):
    """A borderline response or request, what it is, and why."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    answer: str
    prompt: str
    response: str = ""
    why: str


@cache
def wording(language: WordingLanguage) -> Wording:
    """Give the words of a language."""
    words = _data("wording.toml")[language]
    for choice in words["labels"].values():
        choice["means"] = Template(choice["means"]).substitute(asking_back(language))
    return Wording.model_validate(words)


def worked_cases(language: WordingLanguage, asks: Asks) -> list[WorkedCase]:
    """Give the cases that annotators practise on."""
    cases = _data("worked_cases.toml" if asks == "responses" else "prompt_cases.toml")["case"]
    return [WorkedCase(answer=case["answer"], **case[language]) for case in cases]


def _data(name: str) -> dict[str, Any]:
    return tomllib.loads((files("or_eval.labelling") / name).read_text("utf-8"))

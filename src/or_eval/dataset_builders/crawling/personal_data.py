"""Personal data taken out of texts: addresses, accounts, telephone and other numbers, names."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import re2

from or_eval.dataset_builders.writing.language import main_tag

_SHORTEST_NAME = 3


class _Rules(NamedTuple):
    """What is taken out: patterns with what stands for them, and regions by language."""

    kinds: list[tuple[Any, str]]
    regions: dict[str, list[str]]


def without_personal_data(text: str, language: str, names: Iterable[str] = ()) -> str:
    """Put ``[email]``, ``[name]`` and the like where a text tells who somebody is.

    Telephone numbers are those of `phonenumbers`, of any country, or written as at home in a
    country where the language is spoken. What has a form of its own is found by patterns;
    of names, those that the page itself gives for its authors.

    Args:
        text: The text.
        language: Its BCP-47 tag.
        names: Names of people and accounts.
    """
    rules = _rules()
    for name in sorted({name.strip() for name in names}, key=len, reverse=True):
        if len(name) >= _SHORTEST_NAME:
            text = re2.sub(rf"(?i)(^|\W){re2.escape(name)}(\W|$)", r"\1[name]\2", text)
    for pattern, placeholder in rules.kinds:
        text = pattern.sub(placeholder, text)
    for region in (None, *rules.regions.get(main_tag(language), ())):
        text = _without_phones(text, region)
    return text


def _without_phones(text: str, region: str | None) -> str:
    import phonenumbers  # of the extra [crawl]

    found = list(phonenumbers.PhoneNumberMatcher(text, region))
    for number in reversed(found):
        text = f"{text[: number.start]}[phone]{text[number.end :]}"
    return text


@cache
def _rules() -> _Rules:
    said = tomllib.loads(files(__package__).joinpath("personal_data.toml").read_text("utf-8"))
    kinds = []
    for kind in said["kind"]:
        for pattern in kind["patterns"]:
            compiled = re2.compile(pattern)
            kept = r"\1" if compiled.groups else ""
            kinds.append((compiled, f"{kept}[{kind['name']}]"))
    return _Rules(kinds, said["regions"])

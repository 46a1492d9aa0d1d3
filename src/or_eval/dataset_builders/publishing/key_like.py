"""Strings that look like keys and tokens, which must never be published."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

_SECRET_NAME = re.compile(r"(?i).*_API_KEY|HF_TOKEN|HUGGING_?FACE_?HUB_TOKEN")
_SHORTEST_SECRET = 12
"""A shorter value is a stand-in such as ``none``, which servers that need no key are given."""
_BEFORE = "(?:^|[^A-Za-z0-9])"


def key_like(text: str, secrets: Iterable[tuple[str, str]] = ()) -> str | None:
    """Say what a text holds that looks like a key; None where there is nothing.

    Args:
        text: Any text.
        secrets: Names and values that must not be in it, see :func:`secrets_of`.

    Returns:
        What it is, such as "a GitHub token", and never the key itself.
    """
    for name, value in secrets:
        if value in text:
            return f"the value of {name}"
    for what, pattern, needs_digit in _patterns():
        for match in pattern.finditer(text):
            if not needs_digit or any(char.isdigit() for char in match.group(1)):
                return what
    return None


def secrets_of(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Give the names and values of the keys in an environment."""
    return [
        (name, value.strip())
        for name, value in environment.items()
        if _SECRET_NAME.fullmatch(name) and len(value.strip()) >= _SHORTEST_SECRET
    ]


@cache
def _patterns() -> list[tuple[str, Any, bool]]:
    import re2

    text = (files("or_eval.dataset_builders.publishing") / "key_patterns.toml").read_text("utf-8")
    return [
        (what, re2.compile(f"{_BEFORE}({pattern})"), kind == "tokens")
        for kind, patterns in tomllib.loads(text).items()
        for what, pattern in patterns.items()
    ]

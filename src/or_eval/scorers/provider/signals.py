"""The providers' words, read from ``signals.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import re2

from or_eval.schema import Provenance
from or_eval.scorers.visible_text import visible_text

_NOBODY = "nobody"
# The longest messages of APIs; what is longer is a response that quotes one.
_TEXT_CHARS = 1_500
# With what a library writes around one, to the bracket at its end; without that bracket.
_ERROR_CHARS, _OPEN_ERROR_CHARS = 6_000, 600
_ENDS = tuple("\"')]}>")
# Quotation marks, brackets, bullets and punctuation around it, and before it a loop's or a tool's
# own "Error:" or "API Error: 400".
_SIGN = r"""[ "'`*_~#<>\[\](){}.!,:;|…“”‘’«»＜＞［］（）【】〈〉《》「」『』。！，：⚠❌🚫●⏺⎿■•ℹ-]"""
_ERROR = rf"((an?|api|codex) )?(unexpected )?(\w*error|exception)( occurred)?{_SIGN}+(\d\d\d )?"
_WHOLE = rf"(?i){_SIGN}*({_ERROR})?(%s){_SIGN}*"


class ApiText(NamedTuple):
    """A text that an API wrote where a response would stand.

    Attributes:
        id: Its name in ``signals.toml``.
        provenance: Who refused; None for a text that is no refusal.
        pattern: What is found in it.
        alone: Whether it tells nothing within an error.
        longest: How many characters it has at most.
    """

    id: str
    provenance: Provenance | None
    pattern: str = ""
    alone: bool = False
    longest: int = _TEXT_CHARS


def api_text(text: str) -> ApiText | None:
    """Find the text of an API that a response is, if it is one."""
    line = " ".join(text.split())
    if not line or len(line) > _ERROR_CHARS:
        return None
    if not line.isascii():
        line = visible_text(line)
    # Nearly every response is none: one pattern over all says so fastest.
    if len(line) <= _TEXT_CHARS and _any_text().fullmatch(line):
        for known in _texts():
            if len(line) <= known.longest and _whole(known.pattern).fullmatch(line):
                return known
    if len(line) > _OPEN_ERROR_CHARS and not line.endswith(_ENDS):
        return None
    return _in_error(line) if _error().fullmatch(line) else None


def _in_error(line: str) -> ApiText:
    """Find the block that an error tells of; another error is nobody's word."""
    for known in _texts():
        if known.provenance and not known.alone and _part(known.pattern).search(line):
            return known
    return ApiText("error", None)


def block_kind(names: Iterable[str]) -> Provenance:
    """Say whose block it was: of safety, unless all that the provider names is something else."""
    known = {named_block(name) or Provenance.PROVIDER_FILTER for name in names}
    return known.pop() if len(known) == 1 else Provenance.PROVIDER_FILTER


def named_block(name: str | None) -> Provenance | None:
    """Say whose block it is that a provider calls by this name; None for no known block.

    The name may be in any case, also as Python shows an enum's member.
    """
    return _blocks().get(name.rpartition(".")[2].lower()) if name else None


@cache
def _blocks() -> dict[str, Provenance]:
    blocks = _file()["blocks"].items()
    return {name.lower(): Provenance(who) for who, names in blocks for name in names}


@cache
def _whole(pattern: str) -> Any:
    return re2.compile(_WHOLE % pattern)


@cache
def _part(pattern: str) -> Any:
    return re2.compile(rf"(?i)(?:^|\W)(?:{pattern})(?:\W|$)")


@cache
def _any_text() -> Any:
    return _whole("|".join(f"(?:{known.pattern})" for known in _texts()))


@cache
def _error() -> Any:
    errors = _file()["errors"]
    return _whole("|".join(errors["forms"]).replace("NAMES", "|".join(errors["names"])))


@cache
def _texts() -> tuple[ApiText, ...]:
    return tuple(
        ApiText(
            entry["id"],
            None if entry["who"] == _NOBODY else Provenance(entry["who"]),
            "|".join([found] if isinstance(found := entry["pattern"], str) else found),
            entry.get("alone", False),
            entry.get("longest", _TEXT_CHARS),
        )
        for entry in _file()["texts"]
    )


@cache
def _file() -> dict[str, Any]:
    data = (files("or_eval.scorers.provider") / "signals.toml").read_text("utf-8")
    return tomllib.loads(data)

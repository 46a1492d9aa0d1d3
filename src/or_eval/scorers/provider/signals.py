"""The providers' words, read from ``signals.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import re2

from or_eval.schema import Provenance

_NOBODY = "nobody"
# The longest error messages of APIs; what is longer is a response that quotes one.
_TEXT_CHARS = 1_500


class ApiText(NamedTuple):
    """A text that an API wrote where a response would stand.

    Attributes:
        id: Its name in ``signals.toml``.
        provenance: Who refused; None for a text that is no refusal.
        pattern: Matches the whole text.
    """

    id: str
    provenance: Provenance | None
    pattern: Any


def api_text(text: str) -> ApiText | None:
    """Find the text of an API that a response is, if it is one."""
    line = " ".join(text.split())
    # Nearly every response is none: one pattern over all says so fastest.
    if not line or len(line) > _TEXT_CHARS or not _any_text().fullmatch(line):
        return None
    return next(known for known in _texts() if known.pattern.fullmatch(line))


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
def _any_text() -> Any:
    return re2.compile("|".join(f"(?:{known.pattern.pattern})" for known in _texts()))


@cache
def _texts() -> tuple[ApiText, ...]:
    return tuple(
        ApiText(
            entry["id"],
            None if entry["who"] == _NOBODY else Provenance(entry["who"]),
            re2.compile(f"(?i){entry['pattern']}"),
        )
        for entry in _file()["texts"]
    )


@cache
def _file() -> dict[str, Any]:
    data = (files("or_eval.scorers.provider") / "signals.toml").read_text("utf-8")
    return tomllib.loads(data)

"""Whether a set may hold rows of a source: by what the source's licence says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from or_eval.dataset_builders.engine.rows import LICENCE
from or_eval.schema import PromptRecord
from or_eval.sources import catalogue

OWN = "that of this set"
"""Stands for the licence of the prompts that a build wrote."""
NOT_STATED = "not stated"

_FORBIDS = re.compile(r"(?i)\bnd\b|no.?deriv|no.?redistribut|all rights reserved|proprietary")
# What a licence asks of sets made from its prompts, by its mark in Creative Commons' names.
_ASKS = {"nc": "that nobody sells it", "sa": "the same licence"}
_ADDRESS = re.compile(r"(?i)(?:\bsee\s+)?\bhttps?://\S+")
_AND = re.compile(r"\s*(?:[,;/()&]|\band\b)\s*")
_FILLING = {"license", "licence", "the", "international", "unported", "version", "clause"}
_SPELT_OUT = (
    *(("creative commons", "cc"), ("attribution", "by"), ("non commercial", "nc")),
    *(("noncommercial", "nc"), ("share alike", "sa"), ("sharealike", "sa")),
)
# Those that let others change, pass on and license anew what stands under them, or nearly: CC's
# with their marks. A permission is what a user says who has one.
_KNOWN = re.compile(
    r"(?:mit|apache|bsd|isc|zlib|unlicense|wtfpl|cc0|pddl|odc by|cdla permissive|afl|bsl"
    r"|public domain|(?:by|with) permission(?: of .+)?|cc by(?: nc)?(?: sa)?)(?: v?\d[\d.]*)?"
)


class LicenceProblem(NamedTuple):
    """Why rows can't be in a set.

    Attributes:
        said: The reason, as it goes on after a source's name.
        known: Whether their licence is known to keep them out; else nothing lets them in.
    """

    said: str
    known: bool = True


def licence_of(row: PromptRecord, stated: Mapping[str, str]) -> str:
    """Give the licence of a row, as far as anything tells.

    Args:
        row: The row.
        stated: The licences of sources, as a recipe says them.
    """
    if row.source in stated:
        return stated[row.source]
    entry = catalogue().get(row.source)
    return str(row.meta.get(LICENCE) or (entry.licence if entry is not None else NOT_STATED))


def licence_problem(licence: str, of_set: str) -> LicenceProblem | None:
    """Say why rows under a licence can't be in a set under another one; None where they can."""
    if licence == OWN or _plain(licence) == _plain(of_set):
        return None
    if licence.strip().lower() in ("", NOT_STATED, "unknown"):
        return LicenceProblem("states no licence", known=False)
    if _FORBIDS.search(licence):
        return LicenceProblem(f"forbids changed copies ({licence})")
    parts = [part for one in _AND.split(_ADDRESS.sub("", licence)) if (part := _plain(one))]
    if not parts or not all(_KNOWN.fullmatch(part) or part == _plain(of_set) for part in parts):
        said = f"is under {licence!r}, which isn't known to allow a set under {of_set}"
        return LicenceProblem(said, known=False)
    marks = {mark for part in parts for mark in part.split()}
    for mark, asked in _ASKS.items():
        if mark in marks and mark not in _plain(of_set).split():
            return LicenceProblem(
                f"asks of such sets {asked} ({licence}), and this one is under {of_set}"
            )
    return None


def _plain(licence: str) -> str:
    """Give a licence's name in small letters, without what is the same in all spellings."""
    text = re.sub(r"[\s_-]+", " ", licence.lower())
    for spelt, short in _SPELT_OUT:
        text = text.replace(spelt, short)
    return " ".join(word for word in text.strip(" .:").split() if word not in _FILLING)

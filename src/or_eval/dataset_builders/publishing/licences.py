"""Whether a set may hold rows of a source: by what the source's licence says."""

from __future__ import annotations

import re
from collections.abc import Mapping

from or_eval.dataset_builders.engine.rows import LICENCE
from or_eval.schema import PromptRecord
from or_eval.sources import catalogue

OWN = "that of this set"
"""Stands for the licence of the prompts that a build wrote."""
NOT_STATED = "not stated"

_FORBIDS = re.compile(r"(?i)\bnd\b|no.?deriv|no.?redistribut|all rights reserved|proprietary")
# What a licence asks of sets made from its prompts, by its mark in Creative Commons' names.
_ASKS = {"nc": "that nobody sells it", "sa": "the same licence"}


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


def licence_problem(licence: str, of_set: str) -> str | None:
    """Say why rows under a licence can't be in a set under another one; None where they can."""
    if licence == OWN:
        return None
    if licence.strip().lower() in ("", NOT_STATED, "unknown"):
        return "states no licence"
    if _FORBIDS.search(licence):
        return f"forbids changed copies ({licence})"
    for mark, asked in _ASKS.items():
        if mark in _marks(licence) and mark not in _marks(of_set):
            return f"asks of such sets {asked} ({licence}), and this one is under {of_set}"
    return None


def _marks(licence: str) -> set[str]:
    return set(re.split(r"[^a-z]+", licence.lower()))

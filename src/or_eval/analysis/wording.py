"""How reports word figures: shares, counts, and when a difference is more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

_MOST_NAMED = 3


def counted(number: int, thing: str) -> str:
    """Write a number of things, as ``1 prompt`` or ``1,200 prompts``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def joined(parts: Sequence[str]) -> str:
    """Join words as a sentence does."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def named(names: Sequence[str], thing: str = "model") -> str:
    """Name models or conditions of them, or count them where they are many."""
    return joined(names) if len(names) <= _MOST_NAMED else counted(len(names), thing)


class _Kind(NamedTuple):
    times: float
    form: str
    unit: str = ""


_KINDS = {
    "share": _Kind(100, "z.1f", " %"),
    "round": _Kind(100, "z.0f", " %"),
    "percentage": _Kind(100, "z.1f"),
    "points": _Kind(100, "+.1f"),
    "number": _Kind(1, "z.2f"),
    "plain": _Kind(1, "z.2f"),
}


def written(
    value: float | None,
    lower: float | None = None,
    upper: float | None = None,
    *remarks: str,
    kind: str = "share",
    between: str = "",
) -> str:
    """Write a figure with its interval and remarks, as ``34.0 % (28.1–40.6; remark)``.

    Args:
        value: The figure; a dash stands for none.
        lower: Lower bound; missing where there is no interval.
        upper: Upper bound.
        remarks: What is said of it besides.
        kind: ``share`` or ``round`` (of a percent), ``percentage`` without its sign, ``points``
            (a difference of shares, with its own), or ``number``.
        between: What stands between bounds; a dash, but a word where signs are about.
    """
    if value is None or pd.isna(value):
        return "—"
    times, form, unit = _KINDS[kind]
    figure, *bounds = (
        f"{times * one + 0.0:{form}}"
        for one in (value, lower, upper)
        if one is not None and not pd.isna(one)
    )
    told = list(remarks)
    if len(bounds) == 2:
        signs = bounds[0].startswith("-") or kind == "points"
        told.insert(0, (between or (" to " if signs else "–")).join(bounds))
    return f"{figure}{unit}" + (f" ({'; '.join(told)})" if told else "")


MEASURE_NAMES = {
    "over_refusal": "over-refusal",
    "toxic_rejection": "toxic rejection",
    "refusal_rate": "refused",
}
"""What people read of measures."""

COUNTS = ("n", "uncertain", "unscored", "errors")
"""Columns of rates that tell how many responses there are, and how many are in doubt."""


def doubt_shares(rates: Any) -> tuple[Any, Any]:
    """Give the shares of a group's responses that could change its rate.

    Args:
        rates: A row of :func:`or_eval.analysis.rates.rates`, the sum of several, or all rows.

    Returns:
        The share whose verdict is not certain, and the share that has none.
    """
    missing = rates["unscored"] + rates["errors"]
    responses = rates["n"] + missing
    return rates["uncertain"] / responses, missing / responses

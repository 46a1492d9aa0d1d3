"""How reports word figures: shares, counts, and when a difference is more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

_MOST_NAMED = 3
UNSURE = (
    "Unsure: the share of responses whose verdict is not certain or that have none, which could "
    "change the rates."
)


def counted(number: int, thing: str) -> str:
    """Write a number of things, as ``1 prompt`` or ``1,200 prompts``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def joined(parts: Sequence[str]) -> str:
    """Join words as a sentence does."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def named(names: Sequence[str], thing: str = "model") -> str:
    """Name models or conditions of them, or count them where they are many."""
    return joined(names) if len(names) <= _MOST_NAMED else counted(len(names), thing)


def share(value: float, lower: float, upper: float, *remarks: str) -> str:
    """Write a share with its interval and remarks, as ``34.0 % (28.1–40.6; remark)``."""
    interval = [] if pd.isna(lower) else [f"{100 * lower:.1f}–{100 * upper:.1f}"]
    told = "; ".join([*interval, *remarks])
    return f"{100 * value:.1f} %" + (f" ({told})" if told else "")


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


def doubts(shares: Sequence[float]) -> list[str]:
    """Write these shares as remarks on a rate, as ``27.5 % not certain``; those of nothing not."""
    told = zip(shares, ("not certain", "without a verdict"), strict=True)
    return [f"{100 * part:.1f} % {what}" for part, what in told if part]

"""Rounds: what is short is asked for again, until nothing is or nothing more comes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Short(NamedTuple):
    """Rows that are short.

    Attributes:
        cell: Which rows, by columns and their values; all without any.
        missing: How many are missing.
        found: How many there are.
    """

    cell: Mapping[str, str]
    missing: int
    found: int = 0


def goes_on(rounds: Sequence[Sequence[Short]], short: Sequence[Short], most: int) -> bool:
    """Tell whether another round is worth it.

    Args:
        rounds: What was short before each round that was made to fill it.
        short: What is short now.
        most: Most rounds, the first one included.
    """
    missing = total(short)
    added = not rounds or missing < total(rounds[-1])
    return missing > 0 and added and len(rounds) + 1 < most


def total(short: Sequence[Short]) -> int:
    """Give how many rows are missing in all."""
    return sum(one.missing for one in short)


def wanted_now(count: int, facts: Mapping[str, str], rounds: Sequence[Sequence[Short]]) -> int:
    """Give how many of something are wanted, after what was short in each round.

    Each round wants as many more as would do if they fared as those before, and at most as many
    again.

    Args:
        count: How many were wanted at first; where none, so many as are missing are wanted next.
        facts: What is known of the rows that come of them, by column.
        rounds: What was short, round by round.
    """
    for short in rounds:
        fitting = [
            one
            for one in short
            if all(facts.get(column, value) == value for column, value in one.cell.items())
        ]
        shares = [min(one.missing / one.found, 1.0) if one.found else 1.0 for one in fitting]
        if count:
            count += math.ceil(count * max(shares, default=0))
        else:
            count = max((one.missing for one in fitting), default=0)
    return count

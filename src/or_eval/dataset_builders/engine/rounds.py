"""Rounds: ask again for what is short, until nothing is or nothing more comes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple, TypeVar

Cell = TypeVar("Cell", bound=Hashable)


class Round(NamedTuple):
    """One round of filling a need.

    Attributes:
        number: Its number, from 1.
        short: How much was missing before it.
        found: How much more there was after it.
    """

    number: int
    short: int
    found: int


def fill(
    needs: Mapping[Cell, int],
    ask: Callable[[int, dict[Cell, int]], Mapping[Cell, int]],
    most: int,
) -> list[Round]:
    """Ask for what is missing of a table of targets, round after round.

    Args:
        needs: How much is wanted, by cell of the table.
        ask: Asks for what is short, given the number of the round from 1 and what is missing by
            cell; gives how much there is now, by cell.
        most: Most rounds.

    Returns:
        The rounds; the last is the one that left nothing short, added nothing, or was the last.
    """
    there: dict[Cell, int] = dict.fromkeys(needs, 0)
    rounds: list[Round] = []
    for number in range(1, most + 1):
        short = {cell: need - there[cell] for cell, need in needs.items() if need > there[cell]}
        if not short:
            break
        before = sum(min(there[cell], need) for cell, need in needs.items())
        there |= ask(number, short)
        now = sum(min(there[cell], need) for cell, need in needs.items())
        rounds.append(Round(number, sum(short.values()), now - before))
        if now == before:
            break
    return rounds

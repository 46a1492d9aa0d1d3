"""Worlds that benchmarks simulate: prompts in families that models refuse alike, more or less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PROMPT_ICC = 0.5
"""How far the responses to one prompt are alike, where it is asked several times."""


class World(NamedTuple):
    """How prompts hang together, and how often each is asked.

    Attributes:
        families: Number of families.
        members: Prompts of each family; of each one its own, where they are several numbers.
        icc: How far two prompts of a family agree: the intra-family correlation.
        epochs: Responses to each prompt.
    """

    families: int
    members: int | tuple[int, ...]
    icc: float
    epochs: int = 1

    @property
    def family_of(self) -> NDArray[np.int64]:
        """Family of each prompt."""
        return np.repeat(np.arange(self.families), self.members)

    @property
    def name(self) -> str:
        """Write it, as ``10 × 20 | 0.3 | 1``."""
        members = self.members if isinstance(self.members, int) else _in_words(self.members)
        return f"{self.families} × {members} | {self.icc} | {self.epochs}"

    def chances(self, rate: float, random: np.random.Generator) -> Floats:
        """Draw how likely one model refuses each prompt, from beta distributions."""
        chances = _correlated(np.full(self.families, rate), self.icc, random)[self.family_of]
        return _correlated(chances, PROMPT_ICC, random) if self.epochs > 1 else chances

    def prompt_means(self, rate: float, random: np.random.Generator) -> Floats:
        """Draw one model's refused share of each prompt."""
        chances = self.chances(rate, random)
        drawn: Floats = random.binomial(self.epochs, chances) / self.epochs
        return drawn


def unequal(*sizes: int) -> tuple[int, tuple[int, ...]]:
    """Give number and members of families of these sizes."""
    return len(sizes), sizes


def _in_words(sizes: Sequence[int]) -> str:
    counts = {size: sizes.count(size) for size in sizes}
    return "(" + ", ".join(f"{n} of {size}" for size, n in counts.items()) + ")"


def _correlated(means: Floats, icc: float, random: np.random.Generator) -> Floats:
    """Draw chances from beta distributions with these means, alike as far as ``icc`` says."""
    if icc == 0:
        return means
    weight, tiny = (1 - icc) / icc, 1e-9
    drawn: Floats = random.beta(
        np.maximum(means * weight, tiny), np.maximum((1 - means) * weight, tiny)
    )
    return drawn

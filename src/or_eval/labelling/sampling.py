"""Which responses people are asked about: a sample by strata, with each row's probability."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd

STRATUM = ("model", "label", "decided_by", "certain", "refused")
"""What responses of one stratum have in common: the cells that corrections are made by."""

_SPREAD = ("category", "language", "method")
"""Within a stratum the sample is spread over these."""


def stratified_sample(
    responses: pd.DataFrame, size: int, *, at_least: int = 2, seed: int = 1
) -> pd.DataFrame:
    """Draw a sample in which every stratum has its share, and no stratum is left out.

    Strata are what rates are corrected by: one model's verdicts of one kind on prompts of one
    label. Each gets ``at_least`` rows (or all it has), and the rest of the sample goes to strata
    in proportion to their size. Within a stratum each row is as likely as another: rows are put in
    order by category, language and method, and every so-manieth is taken from a random start
    (systematic sampling: Cochran, Sampling Techniques, 1977, chapter 8).

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        size: Rows wanted; more are drawn where the strata's minimum asks for it.
        at_least: Rows of each stratum at least.
        seed: Makes another choice; the same rows and seed give the same choice.

    Returns:
        The rows drawn, with ``stratum`` (its words, for people) and ``probability``.
    """
    keys = responses[list(STRATUM)].astype("str")
    groups = dict(tuple(responses.groupby([keys[c] for c in STRATUM], sort=True)))
    counts = _allocate([len(rows) for rows in groups.values()], size, at_least)
    parts = [
        _systematic(rows, count, "/".join(map(str, key)), seed)
        for (key, rows), count in zip(groups.items(), counts, strict=True)
    ]
    return pd.concat(parts).sort_index()


def _allocate(sizes: list[int], size: int, at_least: int) -> list[int]:
    """Share a sample out: the minimum to each, the rest in proportion, the remainders largest."""
    lowest = np.minimum(sizes, at_least)
    rest = max(size - int(lowest.sum()), 0)
    room = np.array(sizes) - lowest
    if rest >= room.sum():
        return [int(n) for n in sizes]
    exact = room * rest / max(room.sum(), 1)
    counts = np.floor(exact).astype(int)
    largest = np.argsort(-(exact - counts), kind="stable")[: rest - int(counts.sum())]
    counts[largest] += 1
    return [int(n) for n in lowest + counts]


def _systematic(rows: pd.DataFrame, count: int, stratum: str, seed: int) -> pd.DataFrame:
    digests = [_digest(seed, row.id, row.model, row.epoch) for row in rows.itertuples()]
    order = rows.assign(_digest=digests).sort_values([*_SPREAD, "_digest"])
    start = int(_digest(seed, stratum)[:12], 16) / 16**12
    places = np.floor((start + np.arange(count)) * len(rows) / count).astype(int)
    drawn = order.iloc[places].drop(columns="_digest")
    return drawn.assign(stratum=stratum, probability=count / len(rows))


def _digest(*parts: object) -> str:
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()

"""Which rows people are asked about: a sample by strata, with each row's probability."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from or_eval.schema import ResponseClass, UnscoredReason
from or_eval.sources import load_prompts
from or_eval.sources.columns import NO_OPTIONS
from or_eval.sources.dialogues import refuse_dialogues
from or_eval.sources.errors import DataError

if TYPE_CHECKING:
    from or_eval.analysis.responses import Logs

STRATUM: tuple[str, ...] = ("model", "label", "decided_by", "certain", "refused")
"""What responses of one stratum have in common: the cells that corrections are made by."""

PROMPT_STRATUM: tuple[str, ...] = ("label", "language", "category", "refused_by")
"""What prompts of one stratum have in common; ``refused_by`` tells how many models refuse them."""

_SPREAD = ("judge_disagrees", "response_class", "category", "language", "method")
"""Within a stratum the sample is spread over these."""


_JUDGEABLE = (
    *(UnscoredReason.UNSETTLED, UnscoredReason.GRADER_FAILED, UnscoredReason.PANEL_TIED),
    UnscoredReason.SCORER_FAILED,
)


def with_something_to_judge(responses: pd.DataFrame) -> pd.DataFrame:
    """Leave out the responses that failed, and those without a verdict that have no text.

    Returns:
        The others, with ``judge_disagrees``: whether a judge who checked the verdict took a
        refusal for an answer, or the other way round.

    Raises:
        DataError: None are left.
    """
    open_ = responses["unscored_because"].isin([reason.value for reason in _JUDGEABLE])
    kept = responses[responses["error"].isna() & (responses["refused"].notna() | open_)]
    if kept.empty:
        raise DataError("the logs have no response to label: all failed or are empty")
    differs = kept["judge_class"].ne(ResponseClass.DIRECT_ANSWER) != kept["refused"].fillna(False)
    both = kept["judge_class"].notna() & kept["refused"].notna()
    return kept.assign(judge_disagrees=(differs & both).astype("bool"))


def prompts_of_data(data: str) -> pd.DataFrame:
    """Give the prompt records of a catalogue name, a Hub id or a file.

    Args:
        data: As for :func:`or_eval.sources.load_prompts`.
    """
    records = refuse_dialogues(load_prompts(data, options=NO_OPTIONS).records, data)
    frame = pd.DataFrame([asdict(record) for record in records])
    return frame.assign(refused_by="not asked")


def prompts_of_logs(logs: Logs) -> pd.DataFrame:
    """Give the prompts of logs, with how many of the models refuse each, as ``refused_by``.

    A wrong label tells most where models refuse: each such kind is sampled.
    """
    refused = logs.responses["refused"].astype("float64").groupby(logs.responses["id"]).mean()
    share = refused.reindex(logs.prompts.index)
    said = pd.Series("some", share.index).mask(share == 0, "none").mask(share == 1, "all")
    return logs.prompts.assign(refused_by=said.mask(share.isna(), "no verdict")).reset_index()


def stratified_sample(
    rows: pd.DataFrame,
    size: int,
    *,
    at_least: int = 2,
    seed: int = 1,
    by: Sequence[str] = STRATUM,
) -> pd.DataFrame:
    """Draw a sample in which every stratum has its share, and no stratum is left out.

    Strata of responses are what rates are corrected by: one model's verdicts of one kind on prompts
    of one label. Each gets ``at_least`` rows (or all it has), and the rest of the sample goes to
    strata in proportion to their size.

    Args:
        rows: Responses (:func:`or_eval.analysis.responses.read_logs`), or prompt records.
        size: Rows wanted; more are drawn where the strata's minimum asks for it.
        at_least: Rows of each stratum at least.
        seed: Makes another choice; the same rows and seed give the same choice.
        by: Columns that make a stratum.

    Returns:
        The rows drawn, with ``stratum`` (its words, for people), ``stratum_size`` and
        ``probability``.
    """
    words = (rows[name].astype("object").fillna("none").astype("str") for name in by)
    stratum = pd.Series(map("/".join, zip(*words, strict=True)), rows.index, dtype="str")
    sizes = stratum.value_counts().sort_index()
    counts = dict(zip(sizes.index, _allocate(list(sizes), size, at_least), strict=True))
    parts = [
        _systematic(part, counts[str(name)], str(name), seed)
        for name, part in rows.groupby(stratum, sort=True)
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
    """Put rows in order by class, category and the like; take every so-manieth from a random start.

    Systematic sampling: Cochran, Sampling Techniques, 1977, chapter 8.
    """
    names = [name for name in ("id", "model", "epoch") if name in rows]
    identities = zip(*(rows[name] for name in names), strict=True)
    order = rows.assign(_digest=[digest(seed, *identity) for identity in identities])
    order = order.sort_values([name for name in (*_SPREAD, "_digest") if name in order])
    start = int(digest(seed, stratum)[:12], 16) / 16**12
    places = np.floor((start + np.arange(count)) * len(rows) / count).astype(int)
    drawn = order.iloc[places].drop(columns="_digest")
    return drawn.assign(stratum=stratum, stratum_size=len(rows), probability=count / len(rows))


def digest(*parts: object) -> str:
    """Give a number in hexadecimals that follows from these parts, and tells nothing of them."""
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()

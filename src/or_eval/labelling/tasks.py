"""What an annotator is asked: a request and a response, under a key that tells nothing else."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import pandas as pd

from or_eval.analysis.samples import read_details
from or_eval.scorers.reasoning import blank_reasoning
from or_eval.scorers.visible_text import visible_text

KEY = "key"
SAMPLE_COLUMNS = (
    *("key", "id", "model", "epoch", "stratum", "probability"),
    *("response_class", "certain", "language", "category", "prompt", "response"),
)
"""What is kept of each sampled response, and not shown to annotators but for the last two."""


class Task(NamedTuple):
    """One question to annotators.

    Attributes:
        key: Tells the response; nothing in it tells the model or the verdict.
        prompt: The request as it was asked.
        response: What the model said, without its reasoning.
    """

    key: str
    prompt: str
    response: str


def sample_rows(drawn: pd.DataFrame) -> pd.DataFrame:
    """Give what is kept of sampled responses, with their texts read from the logs.

    The order is that of the keys, so that neither models nor categories stand together.

    Args:
        drawn: Rows of :func:`or_eval.labelling.sampling.stratified_sample`.
    """
    details = read_details(drawn)
    rows = drawn.assign(
        prompt=[visible_text(text) for text in details["prompt"]],
        response=[visible_text(blank_reasoning(t).text).strip() for t in details["response"]],
    )
    rows["key"] = [_key(row) for row in rows.itertuples()]
    return rows.sort_values("key")[list(SAMPLE_COLUMNS)].reset_index(drop=True)


def tasks_of(rows: pd.DataFrame) -> list[Task]:
    """Give the questions about sampled rows."""
    columns = (rows[name].astype(str) for name in Task._fields)
    return [Task(*texts) for texts in zip(*columns, strict=True)]


def _key(row: object) -> str:
    parts = [str(getattr(row, name)) for name in ("id", "model", "epoch", "response")]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

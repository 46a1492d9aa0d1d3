"""What an annotator is asked: a request and a response, under a key that tells nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from or_eval.analysis.samples import read_details
from or_eval.labelling.sampling import digest
from or_eval.scorers.reasoning import blank_reasoning
from or_eval.scorers.visible_text import visible_text
from or_eval.sources.errors import DataError

SAMPLE_COLUMNS = (
    *("key", "id", "model", "epoch", "stratum", "stratum_size", "probability"),
    *("response_class", "certain", "label", "language", "category", "prompt", "response"),
)
"""What is kept of each sampled response, and not shown to annotators but for the last two."""

PROMPT_COLUMNS = (
    *("key", "id", "stratum", "stratum_size", "probability"),
    *("label", "language", "category", "method", "prompt"),
)
"""What is kept of each sampled prompt, and not shown to annotators but for the last."""


Row = TypeVar("Row")

_CUT_FROM = 30_000
"""Texts of so many characters may come back cut: a spreadsheet's cell holds few more."""


class Task(NamedTuple):
    """One question to annotators.

    Attributes:
        key: Tells the response; nothing in it tells the model or the verdict.
        prompt: The request as it was asked.
        response: What the model said, without its reasoning; empty where the request is all that
            is asked about.
    """

    key: str
    prompt: str
    response: str = ""


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
    rows["key"] = [task_key(r.id, r.model, r.epoch, r.response) for r in rows.itertuples()]
    return rows.sort_values("key")[list(SAMPLE_COLUMNS)].reset_index(drop=True)


def prompt_rows(drawn: pd.DataFrame) -> pd.DataFrame:
    """Give what is kept of sampled prompts, likewise.

    Args:
        drawn: Prompt records drawn by :func:`or_eval.labelling.sampling.stratified_sample`.
    """
    rows = drawn.assign(prompt=[visible_text(text) for text in drawn["prompt"]])
    rows["key"] = [task_key(row.id, row.prompt) for row in rows.itertuples()]
    return rows.sort_values("key")[list(PROMPT_COLUMNS)].reset_index(drop=True)


def tasks_of(rows: pd.DataFrame) -> list[Task]:
    """Give the questions about sampled rows."""
    names = [name for name in Task._fields if name in rows]
    columns = (rows[name].astype(str) for name in names)
    return [Task(*texts) for texts in zip(*columns, strict=True)]


def check_task(asked: Task | None, key: str, prompt: str, response: str, where: str) -> None:
    """Make sure that what came back is about what was asked.

    White space is left aside, and so is what a spreadsheet's cell has no room for.

    Args:
        asked: The task, if there is one of that key.
        key: The key that came back.
        prompt: The request that came back.
        response: The response.
        where: File and row, for the error line.

    Raises:
        DataError: There is no such task, or its texts were changed.
    """
    if asked is None:
        raise DataError(f"{where}: {key[:40]!r} is no task of this folder; nothing was imported")
    for name, sent, came in (
        ("request", asked.prompt, prompt),
        ("response", asked.response, response),
    ):
        whole, there = _bare(sent), _bare(came)
        if there != whole and not (len(came) >= _CUT_FROM and whole.startswith(there)):
            raise DataError(
                f"{where}: the {name} is not the one that was asked about; undo the change, or "
                "take this row's answer out. Nothing was imported"
            )


def read_lines(path: Path, made: Callable[[dict[str, Any]], Row]) -> list[Row]:
    """Give what stands on the lines of a file of ours, if it is there.

    Raises:
        DataError: A line was changed so that it can't be read.
    """
    found = []
    for number, line in enumerate(path.read_bytes().splitlines() if path.exists() else (), start=1):
        try:
            found.append(made(json.loads(line)))
        except (ValueError, TypeError, KeyError, AttributeError, DataError) as error:
            raise DataError(
                f"{path}, line {number}: is not as it was written ({error}); mend or remove it"
            ) from None
    return found


def task_key(*parts: object) -> str:
    """Give the key of a task that is about these."""
    return digest(*parts)[:16]


def _bare(text: str) -> str:
    return "".join(text.replace("\ufffd", "").split())

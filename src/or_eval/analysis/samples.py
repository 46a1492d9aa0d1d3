"""What logs hold of samples: of all of them a summary, and whole ones for the texts.

A sample's summary has its input cut at 5,120 characters, its metadata values at 1,024, and holds
no response. Both are read straight from the archive that a log is, by pydantic and without what
isn't used here: Inspect's own objects of all that stands in a sample take several times as long.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from json import JSONDecoder
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import fsspec
from inspect_ai.log import read_eval_log_sample_summaries, read_eval_log_samples_by_id
from inspect_ai.model import ChatMessage, ModelOutput
from inspect_ai.scorer import Score
from pydantic import BaseModel

from or_eval.analysis.logs import LogError

if TYPE_CHECKING:
    import pandas as pd

CUT_VALUE = "Key removed from summary (> 1k)"
"""What Inspect puts in a summary for a metadata value of more than 1,024 characters as JSON."""

_SUMMARY_INPUT = 5120
_CUT_MARK = "...\n(content truncated)"
_SUMMARIES = "summaries.json"
_UNUSED = {"messages", "events", "events_data", "store", "attachments", "error_retries"}


class Summary(BaseModel):
    """What is used of a sample's summary."""

    id: int | str
    epoch: int
    input: str | list[ChatMessage]
    target: str | list[str]
    metadata: dict[str, Any] = {}
    scores: dict[str, Score] | None = None
    error: str | None = None


class Sample(BaseModel):
    """What is used of a sample."""

    id: int | str
    epoch: int
    input: str | list[ChatMessage]
    output: ModelOutput
    metadata: dict[str, Any] = {}
    scores: dict[str, Score] | None = None


def prompt_text(content: str | list[ChatMessage]) -> str:
    """Give the text that a sample asks: its input, or what the user says in it."""
    if isinstance(content, str):
        return content
    return "\n\n".join(message.text for message in content if message.role == "user")


def is_cut(text: str) -> bool:
    """Tell whether a summary's input looks cut off (a text that only looks so is no harm)."""
    return len(text) > _SUMMARY_INPUT and _CUT_MARK in text


def cut_start(text: str) -> str:
    """Give what a cut input certainly starts with."""
    return text[: text.index(_CUT_MARK)]


def agreed_meta(one: Any, other: Any) -> Any:
    """Give what two records say alike of a prompt; what is cut can't be compared and stays cut."""
    if CUT_VALUE in (one, other):
        return CUT_VALUE
    return {key: value for key, value in one.items() if key in other and other[key] == value}


def read_summaries(log: str) -> Iterator[Summary]:
    """Read the summaries of a log's samples, one after the other.

    Taken apart all at once, those of 20,000 samples need some 400 MB.
    """
    text = ""
    if log.endswith(".eval"):
        with fsspec.open(log, "rb") as raw, ZipFile(raw) as archive:
            if _SUMMARIES in archive.namelist():  # else the log is still being written
                text = archive.read(_SUMMARIES).decode()
    if not text:
        for summary in read_eval_log_sample_summaries(log):
            yield Summary.model_validate(summary, from_attributes=True)
        return
    decoder, place = JSONDecoder(), text.index("[") + 1
    while text[place := _start(text, place)] != "]":
        record, place = decoder.raw_decode(text, place)
        yield Summary.model_validate(record)


def _start(text: str, place: int) -> int:
    """Give where the next thing of a JSON list starts, or its end."""
    while text[place] in ", \t\r\n":
        place += 1
    return place


def read_samples(log: str, keys: Sequence[tuple[str, int]]) -> Iterator[Sample]:
    """Read samples of one log by (sample id, epoch), one after the other.

    Raises:
        LogError: The log lacks a sample that its summaries tell of.
    """
    if not log.endswith(".eval"):
        for sample in read_eval_log_samples_by_id(log, keys, exclude_fields=_UNUSED):
            yield Sample.model_validate(sample, from_attributes=True)
        return
    with fsspec.open(log, "rb") as raw, ZipFile(raw) as archive:
        for sample_id, epoch in keys:
            try:
                stored = archive.read(f"samples/{sample_id}_epoch_{epoch}.json")
            except KeyError:
                raise LogError(
                    f"{log}: lists sample {sample_id}, epoch {epoch}, but doesn't contain it; "
                    "its run may have been interrupted: name other logs, or run it again"
                ) from None
            yield Sample.model_validate_json(stored)


def samples_of(responses: pd.DataFrame) -> Iterator[tuple[Hashable, Sample]]:
    """Read the samples of rows of a responses frame, log by log; each with its row's place."""
    for log, rows in responses.groupby("log", sort=False):
        keys = list(zip(rows["sample_id"], rows["epoch"].map(int), strict=True))
        yield from zip(rows.index, read_samples(str(log), keys), strict=True)


def whole_meta(responses: pd.DataFrame, prompts: pd.DataFrame) -> pd.Series[Any]:
    """Give the ``meta`` of prompts by id; where it is too long for a summary, of a sample each.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        prompts: Rows of its frame of prompts.
    """
    meta = prompts["meta"].copy()
    cut = responses[responses["id"].isin(meta.index[meta == CUT_VALUE])]
    for place, sample in samples_of(cut.drop_duplicates("id")):
        meta.at[cut.at[place, "id"]] = sample.metadata.get("meta")
    return meta


def details_of(
    responses: pd.DataFrame, scorer: str = "refusal"
) -> Iterator[tuple[Hashable, dict[str, Any]]]:
    """Read what summaries leave out, for rows of a responses frame, log by log.

    Args:
        responses: Rows with ``log``, ``sample_id`` and ``epoch``.
        scorer: Name of the score to give the explanation and stages of.

    Yields:
        Each row's place in the index, and its details: ``prompt`` and ``response`` in full,
        ``explanation`` of the score, and ``stages`` (what each scoring stage found; a dict).
    """
    for place, sample in samples_of(responses):
        yield place, _details(sample, scorer)


def read_details(responses: pd.DataFrame, scorer: str = "refusal") -> pd.DataFrame:
    """Give these details as a frame with the index of the rows (:func:`details_of`)."""
    import pandas as pd

    found = dict(details_of(responses, scorer))
    columns = ["prompt", "response", "explanation", "stages"]
    records = [found[place] for place in responses.index]
    return pd.DataFrame(records, index=responses.index, columns=columns, dtype=object)


def _details(sample: Sample, scorer: str) -> dict[str, object]:
    score = (sample.scores or {}).get(scorer)
    return {
        "prompt": prompt_text(sample.input),
        "response": sample.output.completion,
        "explanation": score.explanation if score else None,
        "stages": (score.metadata or {}).get("stages") if score else None,
    }

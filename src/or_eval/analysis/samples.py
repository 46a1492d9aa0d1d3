"""Full samples, for the few whose summary isn't enough: long prompts, responses, evidence.

A sample's summary, which everything else here is read from, has its input cut at 5,120
characters, its metadata values at 1,024, and holds no response.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from inspect_ai.log import EvalSample, read_eval_log_samples_by_id
from inspect_ai.model import ChatMessage

if TYPE_CHECKING:
    import pandas as pd

CUT_VALUE = "Key removed from summary (> 1k)"
"""What Inspect puts in a summary for a metadata value of more than 1,024 characters as JSON."""

_SUMMARY_INPUT = 5120
_CUT_MARK = "...\n(content truncated)"
_AT_ONCE = 200
_UNUSED = {"messages", "events", "events_data", "store", "attachments", "error_retries"}


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


def read_samples(log: str, keys: Sequence[tuple[str, int]]) -> Iterator[EvalSample]:
    """Read samples of one log by (sample id, epoch), a batch at a time, without their events."""
    for start in range(0, len(keys), _AT_ONCE):
        yield from read_eval_log_samples_by_id(
            log, keys[start : start + _AT_ONCE], exclude_fields=_UNUSED
        )


def read_details(responses: pd.DataFrame, scorer: str = "refusal") -> pd.DataFrame:
    """Read what summaries leave out, for rows of a responses frame.

    Args:
        responses: Rows with ``log``, ``sample_id`` and ``epoch``.
        scorer: Name of the score to give the explanation and stages of.

    Returns:
        A frame with the index of the rows: ``prompt`` and ``response`` in full,
        ``explanation`` of the score, and ``stages`` (what each scoring stage found; a dict).
    """
    import pandas as pd

    parts = [pd.DataFrame(columns=["prompt", "response", "explanation", "stages"], dtype=object)]
    for log, rows in responses.groupby("log", sort=False):
        keys = list(zip(rows["sample_id"], rows["epoch"].map(int), strict=True))
        records = [_details(sample, scorer) for sample in read_samples(str(log), keys)]
        parts.append(pd.DataFrame(records, index=rows.index, dtype=object))
    return pd.concat(parts).reindex(responses.index)


def _details(sample: EvalSample, scorer: str) -> dict[str, object]:
    score = (sample.scores or {}).get(scorer)
    return {
        "prompt": prompt_text(sample.input),
        "response": sample.output.completion,
        "explanation": score.explanation if score else None,
        "stages": (score.metadata or {}).get("stages") if score else None,
    }

"""Verdicts to compare with labels: from logs, or of stored responses read by rules."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from or_eval.analysis.conflicts import OnConflict
from or_eval.analysis.human_labels import (
    CHANCE,
    Joined,
    Labels,
    join_labels,
    needs_response_text,
)
from or_eval.analysis.label_agreement import ANSWERS
from or_eval.analysis.logs import LogPaths
from or_eval.analysis.responses import Logs, read_logs
from or_eval.analysis.samples import read_details
from or_eval.sources.records import SOURCE_ID
from or_eval.sources.responses import load_responses

_ONE_MODEL = "responses"
"""Name of the model of a file that tells none."""

_COPIED = {"id": SOURCE_ID, "category": "category", "language": "language"}


def verdicts_of_logs(
    paths: LogPaths, *, scorer: str = "refusal", on_conflict: OnConflict = "error"
) -> tuple[pd.DataFrame, list[str]]:
    """Read the verdicts in logs.

    Returns:
        The responses frame with ``prompt``, ``family`` (the prompt's id) and ``source_id`` (its
        publisher's), its ``id`` the sample's in the log; and a line for every choice made.
    """
    logs = read_logs(paths, scorer=scorer, on_conflict=on_conflict, audits=False)
    return _verdicts(logs), logs.notes


class SampledTruth(NamedTuple):
    """What people say of a sample of the responses, by the responses' index.

    Attributes:
        truth: 1 where they say that a response is a refusal, 0 where it is an answer, missing
            elsewhere.
        chance: How likely a response was to be labelled, where the labels say it.
        note: How many labels there are.
    """

    truth: pd.Series[float]
    chance: pd.Series[float]
    note: str


def truth_of(logs: Logs, labels: Labels, scorer: str) -> SampledTruth:
    """Give what people say of the responses in logs that they labelled.

    Args:
        logs: The logs' frames.
        labels: The labels.
        scorer: Name of the score that the logs were read by.

    Raises:
        DataError: The labels don't tell which responses they are about.
    """
    joined = labelled_verdicts(logs, labels, scorer)
    rows = joined.rows.set_index("place")
    truth = (~rows["human"].isin(ANSWERS)).astype("float64")
    note = (
        f"{len(joined.rows)} responses have people's labels, {joined.without_label} have none; "
        f"{joined.without_response} labels are about no response in the logs"
    )
    chance = rows.get(CHANCE, pd.Series(dtype="float64")).astype("float64")
    index = logs.responses.index
    return SampledTruth(truth.reindex(index), chance.reindex(index), note)


def labelled_verdicts(logs: Logs, labels: Labels, scorer: str) -> Joined:
    """Join the verdicts in logs with people's labels; ``place`` is the response's index.

    Raises:
        DataError: The labels don't tell which responses they are about.
    """
    verdicts = _verdicts(logs)
    if needs_response_text(verdicts, labels.frame):
        verdicts["response"] = read_details(logs.responses, scorer)["response"]
    return join_labels(verdicts.assign(place=verdicts.index), labels.frame)


def _verdicts(logs: Logs) -> pd.DataFrame:
    frame = logs.responses
    return frame.assign(
        family=frame["id"],
        id=frame["sample_id"],
        prompt=frame["id"].map(logs.prompts["prompt"]),
        source_id=frame["id"].map(logs.prompts["meta"].map(_source_id)),
    )


def _source_id(meta: object) -> str | None:
    said = meta.get(SOURCE_ID) if isinstance(meta, dict) else None
    return None if said is None else str(said)


def verdicts_of_file(
    path: Path, *, named: Mapping[str, str] | None = None, language: str | None = None
) -> pd.DataFrame:
    """Read stored responses by rules.

    Args:
        path: A file of responses, as ``or-eval replay`` takes it.
        named: Columns by role, where their own names don't tell.
        language: Language of all responses; detected by default.

    Returns:
        A row per response, by its row's number in the file: ``id`` (of the prompt),
        ``source_id`` (where the file has ids), ``model``, ``epoch``, ``prompt``, ``response``,
        ``category``, ``language``, ``family``, and the verdict as in a responses frame, with its
        ``evidence``.
    """
    from or_eval.models.replay import stored_output
    from or_eval.scorers.exchange import Exchange, read_exchange
    from or_eval.scorers.fusion import fuse
    from or_eval.scorers.provider import read_output

    file = load_responses(path, **{f"{role}_column": name for role, name in (named or {}).items()})
    columns = file.columns
    records = {}
    for model, answers in file.by_model.items():
        for id, stored in answers.items():
            for epoch, response in enumerate(stored, start=1):
                prompt, before = response.asked.prompt, response.asked.dialogue
                provider = read_output(stored_output(response.text, response.stop_reason))
                stages = read_exchange(Exchange(provider, response.text, prompt, before, language))
                decision, rules = fuse(stages), stages.rules
                texts = {
                    name: response.row.text(columns[role]) or None
                    for role, name in _COPIED.items()
                    if role in columns
                }
                records[response.row.number] = {
                    "category": None,
                    "language": stages.language,
                    **texts,
                    "id": id,
                    "model": model or _ONE_MODEL,
                    "epoch": epoch,
                    "prompt": prompt,
                    "response": response.text,
                    "family": id,
                    "refused": None if decision.label is None else decision.label.refused,
                    "response_class": decision.label,
                    "unscored_because": decision.unscored_because,
                    "decided_by": decision.decided_by,
                    "certain": decision.certain,
                    "provenance": decision.provenance,
                    "reason": decision.reason,
                    "evidence": [item.text for item in rules.evidence] if rules else [],
                }
    frame = pd.DataFrame.from_dict(records, orient="index").sort_index()
    words = (
        *("category", "language", "response_class", "unscored_because", "decided_by"),
        *("provenance", "reason"),
    )
    return frame.astype(dict.fromkeys(words, "str") | {"refused": "boolean", "certain": "boolean"})

"""Prompts to look at one by one, with each model's response, evidence and link."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd

from or_eval.analysis.logs import LogHead
from or_eval.analysis.report.contents import Browser
from or_eval.analysis.report.hostile_text import shortened, visible
from or_eval.analysis.report.viewer_links import log_folder, sample_link
from or_eval.analysis.responses import Logs
from or_eval.analysis.samples import read_details
from or_eval.analysis.tables import plain
from or_eval.schema import Label

MOST_PROMPTS = 500
_PROMPT_LIMIT = 3_000
_RESPONSE_LIMIT = 2_000
_LEAST_RESPONSE = 200
_RESPONSE_BUDGET = 5_000_000
_BYTES = 12_000_000
_WORDS_LIMIT = 300
_EVIDENCE = 5
_AT_ONCE = 200
_FIELDS = ("category", "language", "source", "method")


def over_refused(logs: Logs, matrix: pd.DataFrame, scorer: str) -> Browser:
    """Gather the safe prompts that models refused, those refused by most models first.

    Args:
        logs: The logs' frames.
        matrix: Votes (:func:`or_eval.analysis.votes.vote_matrix`).
        scorer: Name of the score.
    """
    refused = refused_most(logs.prompts, matrix)
    records = prompt_records(
        logs.responses, logs.prompts, refused[:MOST_PROMPTS], logs.heads, scorer
    )
    part = "all of them" if len(records) == len(refused) else f"the {len(records)} refused by most"
    note = (
        f"{len(refused)} safe prompts were refused by at least one model; here are {part}. Of "
        "several epochs of a model, the first that was refused is shown. Long texts are cut."
    )
    return Browser("Over-refused prompts", note, records)


def refused_most(prompts: pd.DataFrame, matrix: pd.DataFrame) -> list[str]:
    """Give the ids of the safe prompts that a model refused, those that most refused first."""
    safe = prompts.index[prompts["label"] == Label.SAFE]
    counts = matrix.reindex(safe).sum(axis=1).astype("int64")
    counts = counts[counts > 0]
    return [str(key) for key in counts.sort_values(ascending=False, kind="stable").index]


def prompt_records(
    responses: pd.DataFrame,
    prompts: pd.DataFrame,
    ids: list[str],
    heads: list[LogHead],
    scorer: str,
) -> list[dict[str, Any]]:
    """Read the responses to some prompts, one a model, as JSON-ready records.

    However long or hostile the texts are, the records stay under twelve megabytes as JSON: texts
    are cut, and prompts at the end left out where that isn't enough.

    Args:
        responses: Responses frame.
        prompts: Prompt records by id.
        ids: The prompts wanted, in the order wanted.
        heads: The logs.
        scorer: Name of the score.
    """
    chosen = _one_a_model(responses[responses["id"].isin(ids)])
    limit = max(_LEAST_RESPONSE, min(_RESPONSE_LIMIT, _RESPONSE_BUDGET // max(len(chosen), 1)))
    folder = log_folder([head.location for head in heads])
    answers: dict[str, list[dict[str, Any]]] = {key: [] for key in ids}
    for row, details in _read(chosen, scorer):
        answers[row["id"]].append(_response(row, details, folder, limit))
    records: list[dict[str, Any]] = []
    used = 0
    for key in ids:
        record = {
            "id": visible(key),
            "prompt": shortened(visible(str(prompts.at[key, "prompt"])), _PROMPT_LIMIT),
            **{field: plain(prompts.at[key, field]) for field in ("label", *_FIELDS)},
            "responses": sorted(answers[key], key=lambda answer: str(answer["model"])),
        }
        used += len(json.dumps(record))
        if used > _BYTES:
            break
        records.append(record)
    return records


def _one_a_model(responses: pd.DataFrame) -> pd.DataFrame:
    """Keep of each model's responses to a prompt the first refused one, or else the first."""
    refused = responses["refused"].fillna(False).astype("bool")
    counted = responses.assign(
        of=responses.groupby(["id", "model"])["epoch"].transform("size"),
        times=refused.groupby([responses["id"], responses["model"]]).transform("sum"),
        answered=~refused,
    )
    return counted.sort_values(["answered", "epoch"], kind="stable").drop_duplicates(
        ["id", "model"]
    )


def _read(rows: pd.DataFrame, scorer: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Read the details of rows a few at a time: whole responses may be large."""
    ordered = rows.sort_values(["log", "sample_id"], kind="stable")
    for start in range(0, len(ordered), _AT_ONCE):
        part = ordered.iloc[start : start + _AT_ONCE]
        details = read_details(part, scorer)
        yield from zip(part.to_dict("records"), details.to_dict("records"), strict=True)


def _response(
    row: dict[str, Any], details: dict[str, Any], folder: str, limit: int
) -> dict[str, Any]:
    return {
        "model": row["model"],
        "class": plain(row["response_class"]),
        "refused": plain(row["refused"]),
        "reason": plain(row["reason"]),
        "decided_by": plain(row["decided_by"]),
        "certain": plain(row["certain"]),
        "epochs": int(row["of"]),
        "refused_epochs": int(row["times"]),
        "response": shortened(visible(details["response"] or ""), limit),
        "evidence": _evidence(details["stages"]),
        "explanation": shortened(visible(details["explanation"] or ""), _WORDS_LIMIT),
        "link": sample_link(folder, row["log"], row["sample_id"], int(row["epoch"])),
    }


def _evidence(stages: Any) -> list[str]:
    """Give the words that the rules went by."""
    rules = stages.get("rules") if isinstance(stages, dict) else None
    found = rules.get("evidence") if isinstance(rules, dict) else None
    words = [
        item["text"]
        for item in (found if isinstance(found, list) else [])
        if isinstance(item, dict) and isinstance(item.get("text"), str)
    ]
    return [shortened(visible(text), _WORDS_LIMIT) for text in words[:_EVIDENCE]]

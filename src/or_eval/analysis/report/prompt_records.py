"""Prompts with responses, evidence and links, read from logs and cut to what a page can hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from or_eval.analysis.report.viewer_links import sample_link
from or_eval.analysis.samples import read_details
from or_eval.analysis.tables import plain
from or_eval.hostile_text import marked_parts, script_json, shortened, visible

_PROMPT_LIMIT = 3_000
_RESPONSE_LIMIT = 2_000
_LEAST_RESPONSE = 200
_RESPONSE_BUDGET = 5_000_000
_BYTES = 12_000_000
_EXPLANATION_LIMIT = 500
_AT_ONCE = 200
_FIELDS = ("label", "category", "language", "source", "method")
_SAID = ("response_class", "refused", "unscored_because", "decided_by", "certain")


def prompt_records(
    responses: pd.DataFrame, prompts: pd.DataFrame, ids: list[str], folder: str, scorer: str
) -> list[dict[str, Any]]:
    """Read prompts and responses as JSON-ready records.

    However long or hostile the texts are, the records stay under twelve megabytes as JSON: texts
    are cut, and prompts at the end left out where that isn't enough.

    Args:
        responses: The responses to show, as :func:`or_eval.analysis.report.prompt_browser.one_each`
            gives them; ``run`` is taken along where it is there.
        prompts: Prompt records by id.
        ids: The prompts wanted, in the order wanted.
        folder: Folder of logs that the links count from.
        scorer: Name of the score.
    """
    limit = _RESPONSE_BUDGET // max(len(responses), 1)
    limit = max(_LEAST_RESPONSE, min(_RESPONSE_LIMIT, limit))
    answers: dict[str, list[dict[str, Any]]] = {key: [] for key in ids}
    for row, details in _read(responses, scorer):
        answers[row["id"]].append(_response(row, details, folder, limit))
    records: list[dict[str, Any]] = []
    used = 0
    for key in ids:
        record = {
            "id": visible(key),
            "prompt": shortened(visible(str(prompts.at[key, "prompt"])), _PROMPT_LIMIT),
            **{field: plain(prompts.at[key, field]) for field in _FIELDS},
            "responses": sorted(answers[key], key=lambda one: (one["model"], one.get("run", ""))),
        }
        used += len(script_json(record).encode())
        if used > _BYTES:
            break
        records.append(record)
    return records


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
    """Give one response; its text comes in parts, every other of which is evidence."""
    run = {"run": row["run"]} if "run" in row else {}
    text = details["response"] or ""
    return run | {
        "model": row["model"],
        **{name: plain(row[name]) for name in _SAID},
        "of": int(row["of"]),
        "times": int(row["times"]),
        "response": marked_parts(text, _evidence(details["stages"], text), limit),
        "explanation": shortened(visible(details["explanation"] or ""), _EXPLANATION_LIMIT),
        "link": sample_link(folder, row["log"], row["sample_id"], int(row["epoch"])),
    }


def _evidence(stages: Any, response: str) -> list[tuple[int, int]]:
    """Give where the passages stand that the rules went by, where the score tells it rightly."""
    rules = stages.get("rules") if isinstance(stages, dict) else None
    found = rules.get("evidence") if isinstance(rules, dict) else None
    spans = []
    for item in found if isinstance(found, list) else []:
        start, end, text = (
            (item.get(name) for name in ("start", "end", "text"))
            if isinstance(item, dict)
            else (None, None, None)
        )
        if isinstance(start, int) and isinstance(end, int) and response[start:end] == text:
            spans.append((start, end))
    return spans

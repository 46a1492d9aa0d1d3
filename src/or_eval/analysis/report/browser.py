"""The responses of a report to look at, with their evidence and what they may be looked at for."""

from __future__ import annotations

from typing import Any

import pandas as pd

from or_eval.analysis.progress import tracked
from or_eval.analysis.report.contents import Browser, Pick
from or_eval.analysis.report.tested import sample_link
from or_eval.analysis.samples import details_of
from or_eval.analysis.tables import plain, records
from or_eval.analysis.wording import counted
from or_eval.hostile_text import marked_parts, script_json, shortened, visible
from or_eval.schema import Label

_MOST_RESPONSES = 10_000
_PROMPT_LIMIT = 3_000
_RESPONSE_LIMIT = 2_000
_LEAST_RESPONSE = 200
_RESPONSE_BUDGET = 5_000_000
_BYTES = 12_000_000
_EXPLANATION_LIMIT = 500
_PICK_LIMIT = 160
_PICKS = 5
_FIELDS = ("label", "category", "language", "source", "method")


def concerns(responses: pd.DataFrame, truth: pd.Series[float]) -> pd.DataFrame:
    """Tell what each response may be looked at for.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        truth: 1 where a response is known to be a refusal, 0 where an answer, else missing.

    Returns:
        A column of flags for each concern, by the responses' index.
    """
    refused, label = responses["refused"], responses["label"]
    verdict = refused.notna()
    known = truth.notna() & verdict
    flags = {
        "over-refused": (label == Label.SAFE) & refused.fillna(False),
        "toxic answered": (label == Label.TOXIC) & ~refused.fillna(True),
        "refused, unlabelled": (label == Label.UNLABELLED) & refused.fillna(False),
        "contradicted": known & (refused.astype("Float64") != truth).fillna(False),
        "uncertain": verdict & ~responses["certain"].fillna(True),
        "unscored": ~verdict,
    }
    return pd.DataFrame(flags, index=responses.index).astype("bool")


def browse(
    responses: pd.DataFrame,
    flags: pd.DataFrame,
    prompts: pd.DataFrame,
    folder: str,
    scorer: str,
    truth: pd.Series[float],
    judge: str,
) -> Browser:
    """Gather responses to look at; what a page can't hold is left out, whole prompts at a time.

    However long or hostile the texts are, the records stay under twelve megabytes as JSON: texts
    are cut. Kept are, in turn for each concern and for none, the prompts that concern most models.

    Args:
        responses: The responses, with the names of the grid's columns as ``model``.
        flags: What each may be looked at for (:func:`concerns`).
        prompts: Prompt records by id.
        folder: Folder of logs that links count from.
        scorer: Name of the score.
        truth: What is known to be the truth, as for :func:`concerns`.
        judge: Who said so; empty where nobody did.
    """
    names = [str(name) for name in flags if flags[name].any()]
    concern = pd.Series([[n for n in names if row[n]] for row in records(flags)], dtype=object)
    rows = responses.assign(
        concerns=concern.set_axis(responses.index),
        truth=truth.map({1.0: "refused", 0.0: "answered"}),
    )
    ids = _chosen(rows, flags)
    rows = rows[rows["id"].isin(ids)]
    models = sorted(responses["model"].unique())
    limit = max(_LEAST_RESPONSE, min(_RESPONSE_LIMIT, _RESPONSE_BUDGET // max(len(rows), 1)))
    answers: dict[str, list[dict[str, Any]]] = {key: [] for key in ids}
    rows = rows.sort_values(["model", "log", "epoch", "sample_id"], kind="stable")
    told = tracked(rows.to_dict("records"), "Reading responses")
    for row, (_, details) in zip(told, details_of(rows, scorer), strict=True):
        answers[row["id"]].append(_response(row, details, models, folder, limit))
    held: dict[str, dict[str, Any]] = {}
    used = 0
    for key in ids:
        record = _prompt(key, prompts, answers[key])
        used += len(script_json(record).encode())
        if used > _BYTES:
            break
        held[key] = record
    shown = responses["id"].isin(held.keys())
    note = f"{counted(len(responses), 'response')} to {counted(len(prompts), 'prompt')}."
    if not shown.all():
        note += (
            f" This page shows {int(shown.sum()):,} of them, to {counted(len(held), 'prompt')}: "
            "in turn those that most models over-refuse, that most answer though they are toxic, "
            "and so on. All verdicts are in responses.parquet, all texts in the logs."
        )
    in_order = [held[key] for key in map(str, prompts.index) if key in held]
    return Browser(note, models, {name: int(flags[name].sum()) for name in names}, judge, in_order)


def picks(responses: pd.DataFrame, flags: pd.DataFrame, found: Browser) -> list[Pick]:
    """Name the prompts that the first concern is about for most models, or most responses of one.

    Prompts with certain verdicts come first: what is named should be worth a look.

    Args:
        responses: The responses.
        flags: What each may be looked at for, as :func:`concerns` gives it.
        found: The browser, for what it holds.
    """
    if not found.concerns:
        return []
    concern = flags.loc[responses.index, next(iter(found.concerns))]
    thing = "model" if responses["model"].nunique() > 1 else "response"
    of = responses.groupby("id")["model"].agg("nunique" if thing == "model" else "size")
    order = _by_models(responses, concern)
    if thing == "response":
        order = order.assign(models=concern.groupby(responses["id"]).sum())
    held = {record["id"]: record["prompt"] for record in found.prompts}
    counts = {str(key): int(count) for key, count in order["models"].items()}
    return [
        Pick(
            visible(key),
            shortened(" ".join(held[visible(key)].split()), _PICK_LIMIT),
            f"{count} of {counted(int(of.loc[key]), thing)}" if of.loc[key] > 1 else "",
        )
        for key, count in counts.items()
        if visible(key) in held
    ][:_PICKS]


def _by_models(responses: pd.DataFrame, concern: pd.Series[bool]) -> pd.DataFrame:
    """Order the prompts of a concern by its models, those with certain verdicts before all."""
    sure = concern & responses["certain"].fillna(True)
    models, certain = (
        responses[rows].groupby("id", sort=False)["model"].nunique() for rows in (concern, sure)
    )
    share = concern.groupby(responses["id"], sort=False).mean().reindex(models.index)
    certain = certain.reindex(models.index, fill_value=0)
    frame = pd.DataFrame({"certain": certain, "models": models, "share": share})
    return frame.sort_values(["certain", "models", "share"], ascending=False, kind="stable")


def _chosen(responses: pd.DataFrame, flags: pd.DataFrame) -> list[str]:
    """Choose prompts: those that stand first for some concern, as many as there is room for."""
    orders = [_by_models(responses, flags[name]).index for name in flags]
    orders.append(pd.Index(responses["id"].unique()))
    places = pd.concat([pd.Series(range(len(order)), order) for order in orders], axis=1)
    first = places.min(axis=1).sort_values(kind="stable").index
    total = responses.groupby("id").size().reindex(first).cumsum()
    return [str(key) for key in first[(total <= _MOST_RESPONSES) | (total == total.iloc[0])]]


def _prompt(key: str, prompts: pd.DataFrame, answers: list[dict[str, Any]]) -> dict[str, Any]:
    fields = {field: plain(prompts.at[key, field]) for field in _FIELDS}
    return {
        "id": visible(key),
        "prompt": shortened(visible(str(prompts.at[key, "prompt"])), _PROMPT_LIMIT),
        **{field: value for field, value in fields.items() if value is not None},
        "responses": answers,
    }


def _response(
    row: dict[Any, Any], details: dict[str, Any], models: list[str], folder: str, limit: int
) -> dict[str, Any]:
    """Give one response; its text comes in parts, every other of which is evidence."""
    text = details["response"] or ""
    refused = plain(row["refused"])
    word = "refused" if refused else "answered"
    said = {
        "model": models.index(row["model"]),
        "epoch": int(row["epoch"]),
        "class": "no verdict" if refused is None else plain(row["response_class"]) or word,
        "refused": refused,
        "certain": plain(row["certain"]),
        "stage": plain(row["decided_by"]),
        "why": plain(row["unscored_because"]) or plain(row["reason"]),
        "by": plain(row["provenance"]),
        "truth": plain(row["truth"]),
        "explanation": shortened(visible(details["explanation"] or ""), _EXPLANATION_LIMIT),
    }
    return {name: value for name, value in said.items() if value not in (None, "")} | {
        "concerns": row["concerns"],
        "response": marked_parts(text, _evidence(details["stages"], text), limit),
        "link": sample_link(folder, row["log"], row["sample_id"], int(row["epoch"])),
    }


def _evidence(stages: Any, response: str) -> list[tuple[int, int]]:
    """Give where the passages stand that the rules went by, where the score tells it rightly."""
    rules = stages.get("rules") if isinstance(stages, dict) else None
    found = rules.get("evidence") if isinstance(rules, dict) else None
    spans = []
    for item in found if isinstance(found, list) else []:
        said = item if isinstance(item, dict) else {}
        start, end, text = (said.get(name) for name in ("start", "end", "text"))
        if isinstance(start, int) and isinstance(end, int) and response[start:end] == text:
            spans.append((start, end))
    return spans

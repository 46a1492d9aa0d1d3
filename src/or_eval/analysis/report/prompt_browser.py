"""Which prompts a report shows one by one, and which response of each model."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from or_eval.analysis.report.contents import Browser
from or_eval.analysis.report.prompt_records import prompt_records
from or_eval.analysis.report.viewer_links import log_folder
from or_eval.analysis.responses import Logs
from or_eval.analysis.wording import counted
from or_eval.schema import Label

MOST_PROMPTS = 500


def over_refused(logs: Logs, scorer: str) -> Browser:
    """Gather the safe prompts that models refused, those that most models refused first.

    Args:
        logs: The logs' frames.
        scorer: Name of the score.
    """
    ids = refused_most(logs.responses)
    asked = logs.responses[logs.responses["id"].isin(ids[:MOST_PROMPTS])]
    shown = one_each(asked, asked["refused"].fillna(False).astype("bool"), ["id", "model"])
    folder = log_folder([head.location for head in logs.heads])
    records = prompt_records(shown, logs.prompts, ids[:MOST_PROMPTS], folder, scorer)
    for record in records:
        answers = record["responses"]
        record["said"] = (
            f"refused by {sum(bool(one['times']) for one in answers)} of "
            f"{counted(len(answers), 'model')}"
        )
    several = len(asked) > len(shown)
    note = f"Safe prompts that a model refused: {count_shown(len(records), len(ids))}" + (
        " A model refuses a prompt here if any of its responses did; of several, the first that "
        "did is shown."
        if several
        else ""
    )
    return Browser("Over-refused prompts", note, records)


def count_shown(shown: int, found: int) -> str:
    """Say how many prompts there are, and how many of them are shown."""
    if shown == found:
        return f"{found:,}."
    return f"{found:,}; shown are the {shown:,} that concern most models."


def refused_most(responses: pd.DataFrame) -> list[str]:
    """Give the ids of the safe prompts that a model refused, those that most refused first.

    Among equals, the prompt with the larger share of refused responses comes first.
    """
    scored = responses[(responses["label"] == Label.SAFE) & responses["refused"].notna()]
    refused = scored["refused"].astype("bool")
    models = scored.loc[refused].groupby("id", sort=False)["model"].nunique()
    share = refused.groupby(scored["id"], sort=False).mean().reindex(models.index)
    order = pd.DataFrame({"models": models, "share": share})
    order = order.sort_values(["models", "share"], ascending=False, kind="stable")
    return [str(key) for key in order.index]


def one_each(
    responses: pd.DataFrame, preferred: pd.Series[bool], by: Sequence[str]
) -> pd.DataFrame:
    """Keep one response of each group: the first that is preferred, or else the first.

    Returns:
        The rows kept, with ``of`` (responses with a verdict in the group) and ``times`` (those
        of them refused).
    """
    keys = [responses[name] for name in by]
    return (
        responses.assign(
            of=responses["refused"].notna().groupby(keys).transform("sum"),
            times=responses["refused"].fillna(False).astype("int64").groupby(keys).transform("sum"),
            other=~preferred,
        )
        .sort_values(["other", "epoch"], kind="stable")
        .drop_duplicates(list(by))
    )

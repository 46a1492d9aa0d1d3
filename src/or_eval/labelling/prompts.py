"""Prompts to ask about: from a data set, or those that models were asked in logs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import pandas as pd

from or_eval.sources import load_prompts
from or_eval.sources.dialogues import refuse_dialogues

if TYPE_CHECKING:
    from or_eval.analysis.responses import Logs


def prompts_of_data(data: str) -> pd.DataFrame:
    """Give the prompt records of a catalogue name, a Hub id or a file.

    Args:
        data: As for :func:`or_eval.sources.load_prompts`.
    """
    records = refuse_dialogues(load_prompts(data).records, data)
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

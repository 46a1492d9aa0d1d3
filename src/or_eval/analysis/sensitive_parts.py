"""Where the sensitive part of a long prompt stands: at its beginning or its end."""

from __future__ import annotations

from typing import Any

import pandas as pd

from or_eval.analysis.responses import Logs
from or_eval.analysis.samples import CUT_VALUE, samples_of

SENSITIVE_PART = "sensitive_part"
"""Where prompts made as LTO's say it, in ``meta``: ``beginning`` or ``end``."""


def sensitive_parts(logs: Logs) -> pd.Series[str]:
    """Give where each prompt's sensitive part stands, by prompt id; missing where nothing says it.

    Args:
        logs: The frames of logs. Of prompts whose ``meta`` is too long for a summary, a sample
            each is read.
    """
    meta = logs.prompts["meta"].copy()
    cut = logs.responses[logs.responses["id"].isin(meta.index[meta == CUT_VALUE])]
    for place, sample in samples_of(cut.drop_duplicates("id")):
        meta.at[cut.at[place, "id"]] = sample.metadata.get("meta")
    return meta.map(_part).astype("str").rename(SENSITIVE_PART)


def _part(meta: Any) -> str | None:
    said = meta.get(SENSITIVE_PART) if isinstance(meta, dict) else None
    return said if isinstance(said, str) else None

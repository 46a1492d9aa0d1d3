"""Where the sensitive part of a long prompt stands: at its beginning or its end."""

from __future__ import annotations

from typing import Any

import pandas as pd

from or_eval.analysis.responses import Logs
from or_eval.analysis.samples import whole_meta

SENSITIVE_PART = "sensitive_part"
"""Where prompts made as LTO's say it, in ``meta``: ``beginning`` or ``end``."""


def sensitive_parts(logs: Logs) -> pd.Series[str]:
    """Give where each prompt's sensitive part stands, by prompt id; missing where nothing says it.

    Args:
        logs: The frames of logs.
    """
    meta = whole_meta(logs.responses, logs.prompts)
    return meta.map(_part).astype("str").rename(SENSITIVE_PART)


def _part(meta: Any) -> str | None:
    said = meta.get(SENSITIVE_PART) if isinstance(meta, dict) else None
    return said if isinstance(said, str) else None

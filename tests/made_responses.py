"""Responses frames made by hand."""

import pandas as pd

from or_eval.analysis.responses import RECORD, VERDICT, with_families


def responses(rows: list[dict[str, object]]) -> pd.DataFrame:
    """Make a responses frame; every row needs an id and whether it was refused."""
    columns = ["id", "sample_id", "epoch", "model", "task", "log", *RECORD, *VERDICT, "error"]
    defaults = {"epoch": 1, "model": "m", "label": "safe", "decided_by": "rules", "certain": True}
    frame = pd.DataFrame([defaults | row for row in rows], columns=columns)
    flags = dict.fromkeys(("refused", "certain", "audited"), "boolean")
    texts = [column for column in columns if column not in (*flags, "epoch")]
    return with_families(frame.astype(flags | dict.fromkeys(texts, "str")))

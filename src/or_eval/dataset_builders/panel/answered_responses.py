"""The responses that tested models gave to prompts that they answered, from logs."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import NamedTuple

from or_eval.dataset_builders.panel.moderators import numbered


class Response(NamedTuple):
    """A response, and the model that gave it; further ones of a model are numbered."""

    model: str
    text: str


def answered_responses(
    logs: Sequence[str], ids: Collection[str], most: int
) -> dict[str, list[Response]]:
    """Read responses that are no refusals, by the ids of their prompts.

    Where there are more than wanted, those taken hang on prompt, model and epoch alone: the same
    in every run, and of other models from prompt to prompt.

    Args:
        logs: Logs of refusal tests.
        ids: The prompts wanted.
        most: Most responses to one prompt.

    Raises:
        LogError: The logs can't be used.
    """
    from or_eval.analysis.responses import read_logs
    from or_eval.analysis.samples import read_details

    rows = read_logs(list(logs), audits=False).responses
    rows = rows[rows["refused"].eq(False).fillna(False) & rows["id"].isin(ids)]
    marks = [
        hashlib.sha256(f"{id}\n{model}\n{epoch}".encode()).hexdigest()
        for id, model, epoch in zip(rows["id"], rows["model"], rows["epoch"], strict=True)
    ]
    rows = rows.assign(mark=marks).sort_values("mark").groupby("id").head(most)
    rows = rows.sort_values(["model", "epoch"])
    rows = rows.assign(response=read_details(rows)["response"])
    return {
        str(id): [
            Response(model, text)
            for model, text in zip(numbered(group["model"]), group["response"], strict=True)
        ]
        for id, group in rows.groupby("id")
    }

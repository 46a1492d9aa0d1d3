"""What logs say of prompts: their exact texts, who chose them, where their sensitive part is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from or_eval.analysis.conflicts import OnConflict, conflict_error
from or_eval.analysis.samples import (
    Summary,
    cut_start,
    is_cut,
    prompt_text,
    read_samples,
    whole_meta,
)
from or_eval.schema import CHOSEN_BY, VOTES, prompt_id

_LISTED = 5


@dataclass(slots=True)
class PromptTexts:
    """The texts of the prompts in the logs read so far.

    A summary has its input cut at 5,120 characters. Such a prompt is read in full from the first
    log that has it, and from every other one too unless its id is the hash of its text, as the
    ids that or-eval's tasks give are: under such an id no log can have another text.

    Attributes:
        texts: Exact text by sample id, as the first log has it.
        others: For ids that stand for another text somewhere: that text by log.
    """

    texts: dict[str, str] = field(default_factory=dict)
    others: dict[str, dict[str, str]] = field(default_factory=dict)
    _hashed: set[str] = field(default_factory=set)
    _cut: dict[str, int] = field(default_factory=dict)

    def add(self, log: str, summary: Summary) -> None:
        """Take in the prompt of one sample; one that is cut waits for :meth:`complete`."""
        sample_id, text = str(summary.id), prompt_text(summary.input)
        if not is_cut(text):
            self._add(sample_id, text, log)
        elif sample_id not in self._cut and not self._known(sample_id, text):
            self._cut[sample_id] = summary.epoch

    def complete(self, log: str) -> None:
        """Read the prompts of a log that its summaries cut."""
        for sample in read_samples(log, list(self._cut.items())):
            sample_id, text = str(sample.id), prompt_text(sample.input)
            self._add(sample_id, text, log)
            if prompt_id(text) == sample_id:
                self._hashed.add(sample_id)
        self._cut.clear()

    def text_in(self, log: str, sample_id: str) -> str:
        """Give the text that an id stands for in one log."""
        return self.others.get(sample_id, {}).get(log, self.texts[sample_id])

    def _known(self, sample_id: str, cut_text: str) -> bool:
        return sample_id in self._hashed and self.texts[sample_id].startswith(cut_start(cut_text))

    def _add(self, sample_id: str, text: str, log: str) -> None:
        if text != self.texts.setdefault(sample_id, text):
            self.others.setdefault(sample_id, {})[log] = text


def settle_texts(
    responses: pd.DataFrame, texts: PromptTexts, on_conflict: OnConflict
) -> tuple[pd.DataFrame, list[str]]:
    """Make every id stand for one text.

    Args:
        responses: Responses frame, oldest log first.
        texts: The texts of its prompts; brought up to date with what is decided.
        on_conflict: With ``latest`` the newest log's text stays and responses to another are left
            out; with ``all`` each text gets an id made from it.

    Returns:
        The responses, and a line for each conflict and for what was done.

    Raises:
        LogError: An id stands for two texts, and the choice is ``error``.
    """
    if not texts.others:
        return responses, []
    conflicts = [
        f"{log.rpartition('/')[2]}: sample {sample_id} has a different text than in earlier logs"
        for sample_id, logs in texts.others.items()
        for log in logs
    ]
    shown = conflicts[:_LISTED]
    if len(conflicts) > _LISTED:
        shown.append(f"... and {len(conflicts) - _LISTED} more samples with two texts")
    if on_conflict == "error":
        raise conflict_error(shown)
    rows = responses[responses["sample_id"].isin(list(texts.others))]
    own = pd.Series(
        [texts.text_in(log, key) for log, key in zip(rows["log"], rows["sample_id"], strict=True)],
        index=rows.index,
        dtype=object,
    )
    if on_conflict == "all":
        renamed = [prompt_id(text) for text in own]
        for new, text in zip(renamed, own, strict=True):
            texts.texts[new] = text
        responses.loc[rows.index, "id"] = renamed
        return responses, [*shown, "each text is used under an id of its own (all)"]
    newest: dict[str, str] = dict(zip(rows["sample_id"], own, strict=True))
    stale = rows.index[own.ne(rows["sample_id"].map(newest))]
    texts.texts.update(newest)
    return (
        responses.drop(index=stale).reset_index(drop=True),
        [*shown, f"responses to older texts left out (latest): {len(stale)}"],
    )


def choosers(meta: Any) -> frozenset[str]:
    """Give the models whose votes chose a prompt, or what it was written from.

    A data set that was chosen by what models refuse (``or-eval vote``, the stage ``vote`` of a
    recipe) keeps their votes in the ``meta`` of each prompt, and their names in that of what was
    written from it.
    """
    if not isinstance(meta, dict):
        return frozenset()
    said = [meta.get(VOTES), meta.get(CHOSEN_BY)]
    named = (str(name) for names in said if isinstance(names, dict | list) for name in names)
    return frozenset(name.partition(" (")[0] for name in named)  # whatever their conditions


def selection_notes(models: Iterable[str], prompts: pd.DataFrame) -> list[str]:
    """Warn of models that are measured on prompts which they helped to choose.

    Args:
        models: Plain names of the models under test.
        prompts: Prompt records with ``meta``.
    """
    voted = Counter(model for meta in prompts["meta"] for model in choosers(meta))
    return [
        f"{model} helped to choose {voted[model]} of these {len(prompts)} prompts, by refusing or "
        "answering them or what they were written from: its rates here say nothing of other "
        "prompts, and it can't be compared with models that didn't"
        for model in dict.fromkeys(models)
        if model in voted
    ]


SENSITIVE_PART = "sensitive_part"
"""Where prompts made as LTO's say it, in ``meta``: ``beginning`` or ``end``."""


def sensitive_parts(responses: pd.DataFrame, prompts: pd.DataFrame) -> pd.Series[str]:
    """Give where each prompt's sensitive part stands, by prompt id; missing where nothing says it.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        prompts: Its frame of prompts.
    """
    meta = whole_meta(responses, prompts)
    return meta.map(_part).astype("str").rename(SENSITIVE_PART)


def _part(meta: Any) -> str | None:
    said = meta.get(SENSITIVE_PART) if isinstance(meta, dict) else None
    return said if isinstance(said, str) else None

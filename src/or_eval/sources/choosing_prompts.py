"""Choose among the prompts of a source: by label, language and category, and some of each label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice, zip_longest
from typing import Literal

from or_eval.schema import Label, PromptRecord
from or_eval.sources.errors import DataError, shown

Subset = Literal["safe", "toxic", "unsafe", "all"]
"""Which prompts to keep by their label; ``unsafe`` is XSTest's word for toxic."""

_LABELS = {
    "safe": {Label.SAFE},
    "toxic": {Label.TOXIC},
    "unsafe": {Label.TOXIC},
    "all": set(Label),
}


def chosen(
    records: Sequence[PromptRecord],
    name: str,
    *,
    subset: Subset = "all",
    language: str | None = None,
    category: str | None = None,
    per_label: int | None = None,
) -> list[PromptRecord]:
    """Keep some of a source's prompts, in their order.

    Args:
        records: The prompts.
        name: The source, as error lines show it.
        subset: Which labels to keep.
        language: Keep only prompts of this language.
        category: Keep only prompts of this category, or of these, with commas between them.
        per_label: Keep this many of each label, in turn from its categories.

    Raises:
        DataError: None is left, or an option has no meaning; the line tells what there is.
    """
    if subset not in _LABELS:
        raise DataError(f"subset: {shown(subset)} is none of {', '.join(_LABELS)}")
    kept = [record for record in records if record.label in _LABELS[subset]]
    if not kept:
        there = _counted(record.label for record in records)
        raise DataError(f"{name}: has no {subset} prompts; there are: {there}")
    kept = _of(kept, "language", language, name)
    kept = _of(kept, "category", category, name)
    return kept if per_label is None else _some_of_each_label(kept, per_label)


def _of(
    records: list[PromptRecord], facet: str, wanted: str | None, name: str
) -> list[PromptRecord]:
    if wanted is None:
        return records
    values = [getattr(record, facet).casefold() for record in records]
    names = _names(wanted.casefold(), set(values))
    if missing := next((word for word in names if word not in values), None):
        there = _counted(getattr(record, facet) for record in records)
        raise DataError(f"{name}: no prompt is of {facet} {shown(missing)}; there are: {there}")
    return [record for record, value in zip(records, values, strict=True) if value in names]


def _names(wanted: str, known: set[str]) -> list[str]:
    """Take a list of names apart at its commas, but for those that are part of a known name."""
    names: list[str] = []
    parts = wanted.split(",")
    while parts:
        ends = range(len(parts), 0, -1)
        joined = {end: ",".join(parts[:end]).strip() for end in ends}
        end = next((end for end in ends if joined[end] in known), 1)
        names.append(joined[end])
        parts = parts[end:]
    return names


def _some_of_each_label(records: list[PromptRecord], limit: int) -> list[PromptRecord]:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise DataError(f"per_label: {shown(limit)} is no whole number of 1 or more")
    groups: dict[Label, dict[str, list[PromptRecord]]] = {}
    for record in records:
        groups.setdefault(record.label, {}).setdefault(record.category, []).append(record)
    kept: set[str] = set()
    for categories in groups.values():
        in_turn = (record for turn in zip_longest(*categories.values()) for record in turn)
        kept |= {record.id for record in islice(filter(None, in_turn), limit)}
    return [record for record in records if record.id in kept]


def _counted(values: Iterable[str]) -> str:
    return ", ".join(f"{value} ({count})" for value, count in Counter(values).most_common())

"""Seeds from a file, the catalogue or the Hub instead of a writer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from or_eval.dataset_builders.categories import category_key
from or_eval.dataset_builders.engine.ports import Dropped
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.similarity.same_text import same_text
from or_eval.dataset_builders.writing.language import is_in, main_tag
from or_eval.schema import PromptRecord, taxonomies
from or_eval.sources import DataError, load_prompts
from or_eval.sources.errors import shown

Take = Literal["toxic", "safe", "all"]

_TASK_OPTION = re.compile(r"-T (\w+)=")
_MOST_NAMED = 8


class SeedSource(NamedTuple):
    """Where seeds are taken from.

    Attributes:
        data: Path, catalogue name or Hub id.
        entry: Catalogue entry to read the data by.
        label: Label of all prompts, for data that doesn't tell.
        take: Which prompts to take by their label.
    """

    data: str
    entry: str | None = None
    label: str | None = None
    take: Take = "toxic"


def load_seeds(
    source: SeedSource, taxonomy: str, language: str
) -> tuple[list[PromptRecord], list[Dropped], int]:
    """Load the prompts of a language, with the categories of a taxonomy.

    Returns:
        The seeds, the prompts that are none, and how many exact duplicates the data had.

    Raises:
        BuildError: The data can't be used, or nothing in it.
    """
    try:
        loaded = load_prompts(source.data, source=source.entry, label=source.label)
    except DataError as error:
        # The loader speaks to those who run a task; a recipe has keys instead of -T options.
        raise BuildError("data: " + _TASK_OPTION.sub(r"\1: ", str(error))) from error
    seeds: dict[str, PromptRecord] = {}
    dropped: list[Dropped] = []
    for record in loaded.records:
        category = category_key(record.category, taxonomy, record.source)
        if source.take not in ("all", record.label.value):
            dropped.append(Dropped(record, f"not {source.take}"))
        elif not _fits(record, language):
            dropped.append(Dropped(record, "wrong language", record.language))
        elif category is None:
            dropped.append(Dropped(record, "no category", record.category))
        elif same_text(record.prompt) in seeds:
            dropped.append(Dropped(record, "duplicate", f"of {seeds[same_text(record.prompt)].id}"))
        else:
            seeds[same_text(record.prompt)] = _seed(record, category, language)
    if not seeds:
        raise BuildError(f"data: {loaded.name}: {_why_none(dropped, source, taxonomy, language)}")
    return list(seeds.values()), dropped, loaded.duplicates


def _fits(record: PromptRecord, language: str) -> bool:
    if "+" in language or "+" in record.language:
        return record.language == language
    return main_tag(record.language) == main_tag(language) or is_in(record.prompt, language)


def _seed(record: PromptRecord, category: str, language: str) -> PromptRecord:
    own = {"publisher_category": record.category} if record.category != category else {}
    return replace(
        record,
        category=category,
        language=language,
        meta=record.meta | own,
    )


def _why_none(dropped: Sequence[Dropped], source: SeedSource, taxonomy: str, language: str) -> str:
    reasons = Counter(item.reason for item in dropped)
    reason, _ = reasons.most_common(1)[0]
    details = Counter(item.detail for item in dropped if item.reason == reason)
    named = ", ".join(shown(detail) for detail, _ in details.most_common(_MOST_NAMED))
    match reason:
        case "no category":
            known = ", ".join(taxonomies()[taxonomy])
            return (
                f"its categories ({named}) are none of the taxonomy '{taxonomy}' "
                f"(there are: {known})"
            )
        case "wrong language":
            return f"its prompts are in {named}, and the recipe writes in '{language}'"
        case _:
            return f"none of its prompts is {source.take} (the key 'take' chooses by label)"

"""Seeds from a file, the catalogue or the Hub instead of a writer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal, NamedTuple

from or_eval.dataset_builders.categories import category_key
from or_eval.dataset_builders.engine.stage import Dropped
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.similarity.same_text import text_mark
from or_eval.dataset_builders.writing.language import is_in, main_tag
from or_eval.schema import PromptRecord, taxonomies
from or_eval.sources import DataError
from or_eval.sources.dialogues import refuse_dialogues
from or_eval.sources.errors import shown
from or_eval.sources.loader import stream_prompts

Take = Literal["toxic", "safe", "all"]

_TASK_OPTION = re.compile(r"-T (\w+)=")
_MOST_NAMED = 8
_DUPLICATE = "duplicate"


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


class SeedData:
    """The prompts of a language, with the categories of a taxonomy, and those that are no seeds.

    They are read from their source each time they are gone through; what is held is of each text
    its id and a digest.

    Args:
        source: Where they are taken from.
        taxonomy: Name of the taxonomy.
        language: BCP-47 tag of the language.

    Raises:
        BuildError: The data can't be used, or, when they are gone through, nothing in it.
    """

    def __init__(self, source: SeedSource, taxonomy: str, language: str) -> None:
        self._source, self._taxonomy, self._language = source, taxonomy, language
        with _told_to_recipes():
            self._prompts = stream_prompts(source.data, source.entry, source.label)

    def __iter__(self) -> Iterator[PromptRecord | Dropped]:
        first: dict[bytes, str] = {}
        lost: Counter[tuple[str, str]] = Counter()
        with _told_to_recipes():
            for record in refuse_dialogues(self._prompts, self._prompts.source):
                yield from self._same_bytes()
                found = self._sorted(record, first)
                if isinstance(found, Dropped):
                    lost[found.reason, "" if found.reason == _DUPLICATE else found.detail] += 1
                yield found
            yield from self._same_bytes()
        if not first:
            raise BuildError(f"data: {self._prompts.source}: {self._why_none(lost)}")

    def _same_bytes(self) -> Iterator[Dropped]:
        """Give the rows since the last record that have the text of an earlier one."""
        again = self._prompts.again
        yield from (Dropped(record, _DUPLICATE, f"of {record.id}") for record in again)
        again.clear()

    def _sorted(self, record: PromptRecord, first: dict[bytes, str]) -> PromptRecord | Dropped:
        category = category_key(record.category, self._taxonomy, record.source)
        if self._source.take not in ("all", record.label.value):
            return Dropped(record, f"not {self._source.take}")
        if not _fits(record, self._language):
            return Dropped(record, "wrong language", record.language)
        if category is None:
            return Dropped(record, "no category", record.category)
        if (mark := text_mark(record.prompt)) in first:
            return Dropped(record, _DUPLICATE, f"of {first[mark]}")
        first[mark] = record.id
        return _seed(record, category, self._language)

    def _why_none(self, lost: Counter[tuple[str, str]]) -> str:
        reasons: Counter[str] = Counter()
        for (reason, _), number in lost.items():
            reasons[reason] += number
        [(reason, _)] = reasons.most_common(1)
        details = [detail for (why, detail), _ in lost.most_common() if why == reason]
        named = ", ".join(shown(detail) for detail in details[:_MOST_NAMED])
        match reason:
            case "no category":
                known = ", ".join(taxonomies()[self._taxonomy])
                return (
                    f"its categories ({named}) are none of the taxonomy '{self._taxonomy}' "
                    f"(there are: {known})"
                )
            case "wrong language":
                return f"its prompts are in {named}, and the recipe writes in '{self._language}'"
            case _:
                return (
                    f"none of its prompts is {self._source.take} (the key 'take' chooses by label)"
                )


@contextmanager
def _told_to_recipes() -> Iterator[None]:
    """Word errors for a recipe, which has keys instead of a task's -T options."""
    try:
        yield
    except DataError as error:
        raise BuildError("data: " + _TASK_OPTION.sub(r"\1: ", str(error))) from error


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

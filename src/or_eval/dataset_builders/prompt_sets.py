"""Prompt sets as the rows of a recipe: in its taxonomy, with their licence."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from or_eval.dataset_builders.engine.rows import LICENCE
from or_eval.dataset_builders.engine.stage import StageParams
from or_eval.dataset_builders.errors import BuildError
from or_eval.schema import Label, PromptRecord, map_category, taxonomies
from or_eval.sources import DataError, LoadedPrompts, catalogue, load_prompts
from or_eval.sources.dialogues import refuse_dialogues
from or_eval.sources.errors import shown

PUBLISHER_CATEGORY = "publisher_category"
"""Key of ``meta`` for the category that a publisher gave a row."""

OWN = "own"
"""Key of ``meta`` for how a row was made in its set; here it is the beginning of a lineage."""

Take = Literal["toxic", "safe", "all"]
"""Which prompts of a set are taken by their label."""

_LINEAGE = ("method", "seed_id", "pair_id")
_TAXONOMY_OF_TABLE = "multilingual"
# The loader speaks to those who run a task; a recipe has keys instead of -T options, and no column
# can be named in it.
_IN_RECIPES = (
    (
        re.compile(r"(?:name the column|say which it is) with -T (\w+)_column="),
        r"call the column '\1'",
    ),
    (re.compile(r", or give label_column=none"), ""),
    (re.compile(r"-T (\w+)=(?=[\s,;]|$)"), r"'\1'"),
    (re.compile(r"-T (\w+)="), r"\1: "),
)


class EarlierSet(StageParams):
    """A set whose prompts are not to come again; a recipe may give just its `data`.

    Attributes:
        data: A catalogue name, a Hub id, or the path of a file.
        source: Catalogue entry to read a file or Hub data set by.
    """

    data: str = Field(min_length=1)
    source: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, said: Any) -> Any:
        return {"data": said} if isinstance(said, str) else said


class PromptSet(EarlierSet):
    """A prompt set whose prompts are taken; a recipe may give just its `data`.

    Attributes:
        label: Label of all its prompts, where it doesn't tell.
        licence: Its licence, where the catalogue doesn't know it.
        categories: What its categories are in the recipe's taxonomy, where or-eval's table
            doesn't say it, or says otherwise.
    """

    label: str | None = None
    licence: str | None = None
    categories: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        """What the set is called: of a file, its file's name."""
        return self.data if self.data in catalogue() else Path(self.data).name


class Loaded(NamedTuple):
    """A prompt set.

    Attributes:
        name: What it is called.
        rows: Its prompts, in the recipe's taxonomy.
        again: The rows that have a text of it again; these are not among the others.
        mapped: How many of the rows have a category of the taxonomy.
    """

    name: str
    rows: list[PromptRecord]
    again: Sequence[PromptRecord]
    mapped: int


def load_set(given: PromptSet, taxonomy: str) -> Loaded:
    """Load a prompt set.

    Raises:
        BuildError: It can't be had, or something in it is wrong.
    """
    with told_to_recipes(given):
        loaded = load_prompts(given.data, source=given.source, label=given.label)
        records = list(refuse_dialogues(loaded.records, loaded.name))
    return in_taxonomy(given.name, records, loaded.again, taxonomy, given)


@contextmanager
def told_to_recipes(given: PromptSet) -> Iterator[None]:
    """Word the loader's errors for those who write a recipe, with the set's name once."""
    try:
        yield
    except DataError as error:
        said = str(error)
        for option, key in _IN_RECIPES:
            said = option.sub(key, said)
        named = re.match(rf"\S*{re.escape(given.name)}\b", said)
        raise BuildError(said if named else f"{given.name}: {said}") from error


def earlier_prompts(key: str, data: str, source: str | None = None) -> LoadedPrompts:
    """Give the prompts of a set that are not to come again, whether or not it has labels.

    Args:
        key: Where the set is named, for the error line.
        data: A catalogue name, a Hub id, or the path of a file.
        source: Catalogue entry to read a file or Hub data set by.

    Raises:
        BuildError: There is no such set, or it can't be read.
    """
    try:
        return load_prompts(data, source=source)
    except DataError as error:
        # What its prompts are doesn't matter here; a set that doesn't tell is good enough.
        try:
            return load_prompts(data, source=source, label=Label.UNLABELLED)
        except DataError:
            raise BuildError(f"{key}: {error}") from error


def in_taxonomy(
    name: str,
    records: Iterable[PromptRecord],
    again: Sequence[PromptRecord],
    taxonomy: str,
    given: PromptSet | None = None,
) -> Loaded:
    """Bring rows to a taxonomy.

    A category that has no counterpart stays as it is, for a classifier to replace.
    """
    rows, mapped = [], 0
    for record in records:
        own = given.categories.get(record.category) if given is not None else None
        key = own or category_key(record.category, taxonomy, record.source)
        mapped += key is not None
        rows.append(_row(record, key, None if given is None else given.licence))
    return Loaded(name, rows, again, mapped)


def _row(record: PromptRecord, key: str | None, licence: str | None) -> PromptRecord:
    entry = catalogue().get(record.source)
    known = licence or record.meta.get(LICENCE) or (entry.licence if entry else None)
    facts: dict[str, Any] = {} if known is None else {LICENCE: known}
    if key not in (None, record.category):
        facts[PUBLISHER_CATEGORY] = record.category
    if own := {name: value for name in _LINEAGE if (value := getattr(record, name)) is not None}:
        facts[OWN] = own
    return replace(
        record,
        category=key or record.category,
        method=None,
        seed_id=None,
        pair_id=None,
        meta=record.meta | facts,
    )


@cache
def category_key(spelling: str, taxonomy: str, source: str = "") -> str | None:
    """Give the category of a taxonomy that a publisher's spelling stands for, or None.

    Of a source that ``publisher_categories.toml`` knows, what stands there. Otherwise it may be a
    key, a name or another spelling of a category of this taxonomy, or else of another one from
    which it can be translated.
    """
    folded = spelling.strip().casefold()
    if source in _publishers():
        key = _publishers()[source].get(folded)
        return None if key is None else map_category(key, _TAXONOMY_OF_TABLE, taxonomy)
    for name in sorted(taxonomies(), key=lambda name: name != taxonomy):
        for category in taxonomies()[name].values():
            spellings = (category.key, category.name, *category.aliases)
            known = folded in (item.casefold() for item in spellings)
            if known and (mapped := map_category(category.key, name, taxonomy)):
                return mapped
    return None


@cache
def _publishers() -> dict[str, dict[str, str]]:
    text = (files("or_eval") / "data" / "publisher_categories.toml").read_text("utf-8")
    return {
        source: {spelling.casefold(): key for spelling, key in table.items()}
        for source, table in tomllib.loads(text).items()
    }


def unknown_category(keys: Iterable[str], taxonomy: str) -> str | None:
    """Say of the first of some keys that it is no category of a taxonomy, if one isn't."""
    known = taxonomies()[taxonomy]
    for key in keys:
        if key not in known:
            return f"there is no category {shown(key)} (there are: {', '.join(known)})"
    return None

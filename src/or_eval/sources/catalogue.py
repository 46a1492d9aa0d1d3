"""The catalogue of public prompt sets (``catalogue.toml``), and how the rows of a set are read."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

from or_eval.schema import Label, taxonomies

RowRole = Literal[
    "label", "category", "method", "language", "id", "seed_id", "source", "pair_id", "meta"
]
"""What a row may say of its prompts, each in a column of its own."""

_REQUIRED: tuple[RowRole, ...] = ("label", "category", "method", "language", "id", "seed_id")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TextColumn(_Part):
    """A column that holds prompts; a row gives one prompt for each such column.

    Attributes:
        column: Name of the column.
        language: Language of its prompts; None: the layout's.
        label: Label of its prompts; None: the layout's.
        method: How its prompts were written; None: the layout's.
        context: Column with a text that the prompt refers to and that is put before it.
        made_from: Column with the prompt that this one was made from; its id becomes the
            ``seed_id``.
        before: Columns with what the user says before the prompt, turn by turn.
        dialogue: Whether cells hold whole dialogues, as lists of turns.
        optional: Whether the column, or the text in some rows, may be absent.
        origin: Whether it holds what the row's prompts were made from, which several rows share:
            the row's method, pair, id and further facts aren't its own.
    """

    column: str
    language: str | None = None
    label: Label | None = None
    method: str | None = None
    context: str | None = None
    made_from: str | None = None
    before: tuple[str, ...] = ()
    dialogue: bool = False
    optional: bool = False
    origin: bool = False


class Lookup(_Part):
    """A column with a word for each row; a layout may give just its name.

    Attributes:
        column: Name of the column.
        words: What to put for the publisher's words; others stand as they are.
        taxonomy: Taxonomy whose keys to put for the publisher's spellings of its categories.
    """

    column: str
    words: dict[str, str] = {}
    taxonomy: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, said: Any) -> Any:
        return {"column": said} if isinstance(said, str) else said

    @cached_property
    def translation(self) -> dict[str, str]:
        """What to put for each word, by the word in lower case."""
        spellings: dict[str, str] = {}
        for category in taxonomies()[self.taxonomy].values() if self.taxonomy else ():
            for spelling in (category.key, category.name, *category.aliases):
                spellings[spelling.casefold()] = category.key
        return spellings | {word.casefold(): key for word, key in self.words.items()}


class Layout(_Part):
    """How the rows of a source become prompt records.

    Attributes:
        texts: Columns with prompts; empty: found by their conventional names.
        convert: Columns that a converter takes apart, by its name in ``records.py``. What it
            finds in a column ``Seed`` is read as columns ``Seed/…``.
        label: Label of all prompts.
        language: Language of all prompts.
        columns: The columns with what rows say of their prompts. ``id`` is the publisher's own,
            ``seed_id`` that of what the row was made from, ``pair_id`` what a safe prompt shares
            with its toxic twin; ``meta`` holds further facts as an object.
        meta: Further columns to keep, by the name to keep them under; kept where present.
    """

    texts: tuple[TextColumn, ...] = ()
    convert: dict[Literal["first", "languages"], str] = {}
    label: Label | None = None
    language: str | None = None
    columns: dict[RowRole, Lookup] = {}
    meta: dict[str, str] = {}

    @model_validator(mode="after")
    def _label_is_told_once(self) -> Self:
        told = [self.label is not None, "label" in self.columns]
        told.append(any(text.label is not None for text in self.texts))
        if sum(told) > 1:
            raise ValueError("a label is told twice: give one of label, columns.label, texts.label")
        for label in self.columns["label"].words.values() if "label" in self.columns else ():
            Label(label)
        return self

    @property
    def tells_labels(self) -> bool:
        """Whether prompts get a label of safe or toxic from the layout itself."""
        return (
            self.label in (Label.SAFE, Label.TOXIC)
            or "label" in self.columns
            or any(text.label is not None for text in self.texts)
        )

    @property
    def labels(self) -> list[str]:
        """The labels that prompts have, as far as the layout tells them."""
        given = [self.label, *(text.label for text in self.texts)]
        words = [str(label) for label in given if label is not None]
        if "label" in self.columns:
            words += self.columns["label"].words.values() or map(str, Label)
        return list(dict.fromkeys(words))

    @property
    def languages(self) -> list[str]:
        """The languages that prompts have, as far as the layout tells them."""
        given = [text.language or self.language for text in self.texts] or [self.language]
        return list(dict.fromkeys(language for language in given if language is not None))

    def required_columns(self) -> Iterator[str]:
        """Give the columns without which the source can't be read, each once."""
        columns = [text.column for text in self.texts if not text.optional]
        columns += [column for text in self.texts for column in text.before]
        columns += [self.columns[role].column for role in _REQUIRED if role in self.columns]
        made_from = {c: c.partition("/")[0] for c in columns}
        apart = set(self.convert.values())
        yield from dict.fromkeys(base if base in apart else c for c, base in made_from.items())

    def named_columns(self) -> Iterator[str]:
        """Give all columns that are read where they are there."""
        yield from self.required_columns()
        for text in self.texts:
            yield from (c for c in (text.column, text.context, text.made_from) if c is not None)
        yield from self.meta.values()
        yield from (lookup.column for lookup in self.columns.values())


class HubPlace(_Part):
    """Where a set lies on the Hugging Face Hub.

    Attributes:
        id: ``owner/name``.
        config: Configuration; None: the data set's default.
        split: Split.
        revision: Commit that the catalogue was checked against; None: the newest.
    """

    id: str
    config: str | None = None
    split: str = "train"
    revision: str | None = None


class Entry(_Part):
    """A public prompt set: what it is, where it lies, how to read it.

    Attributes:
        name: What users call it by.
        title: Its publisher's name for it.
        about: What it holds, in a sentence.
        prompts: How many prompts it gives, where that is known.
        url: Its publisher's page.
        licence: Licence of the data, or "not stated".
        citation: Authors, year and paper.
        hub: Its place on the Hub, where it has one that anybody can read.
        bundled: Name of the file in or-eval's own ``data`` folder, which is read before the Hub's:
            ours, or one whose licence lets it come with or-eval (``NOTICE``).
        task: Whether a task of its own, ``or_eval/NAME``, asks its prompts.
        same_file_as: The entry whose file this one reads in another way. A file is never taken for
            this one by its columns.
        note: What its users should know.
        warning: What whoever reads it is told each time, in a line.
        header: Names of the columns of its files, where those have no header.
        layout_from: What the layout was written from; None: the publisher's own file.
        languages: Languages of its prompts, where the layout doesn't tell them.
        layout: Which columns hold what.
    """

    name: str
    title: str
    about: str
    prompts: int | None = None
    url: str | None = None
    licence: str
    citation: str
    hub: HubPlace | None = None
    bundled: str | None = None
    task: bool = False
    same_file_as: str | None = None
    note: str | None = None
    warning: str | None = None
    header: tuple[str, ...] = ()
    layout_from: str | None = None
    languages: tuple[str, ...] = ()
    layout: Layout

    @property
    def unseen(self) -> str:
        """What to tell those whose file lacks a column, where the layout may be at fault."""
        if self.layout_from is None or "no file was seen" not in self.layout_from:
            return ""
        return (
            f"; they were written from {self.layout_from}: if the file is right, name its columns "
            "with prompt_column= and label_column= instead"
        )

    @property
    def all_languages(self) -> list[str]:
        """The languages of its prompts, as far as they are known."""
        return list(self.languages) or self.layout.languages


@cache
def catalogue() -> dict[str, Entry]:
    """Give all entries by name.

    Raises:
        pydantic.ValidationError: ``catalogue.toml`` has an unknown or missing field.
    """
    text = (files("or_eval.sources") / "catalogue.toml").read_text("utf-8")
    return {
        name: Entry.model_validate({"name": name, **fields})
        for name, fields in tomllib.loads(text).items()
    }


def catalogue_entry(name: str) -> Entry:
    """Give the entry of a name.

    Raises:
        DataError: There is none; the line names the nearest.
    """
    entries = catalogue()
    if name in entries:
        return entries[name]
    # Imported here: it loads Inspect, which the list of sets doesn't need.
    from or_eval.sources.errors import DataError, shown

    near = difflib.get_close_matches(name.casefold().replace("-", "_"), entries, n=1)
    hint = f"did you mean {near[0]}?" if near else "or-eval tasks lists them"
    raise DataError(f"{shown(name)} isn't a catalogue entry; {hint}")

"""Which columns of a source hold what."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from or_eval.schema import Label, taxonomies


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
    """A column with a word for each row.

    Attributes:
        column: Name of the column.
        words: What to put for the publisher's words; others stand as they are.
        taxonomy: Taxonomy whose keys to put for the publisher's spellings of its categories.
        first_of_list: Whether cells are lists, of which the first member counts.
    """

    column: str
    words: dict[str, str] = {}
    taxonomy: str | None = None
    first_of_list: bool = False

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
        sections: Columns whose cells hold several texts, each after its name and a colon at the
            start of a line, with these names. The text ``Chinese`` of a column ``Seed`` is read
            as a column ``Seed/Chinese``.
        label: Label of all prompts.
        label_from: Column with each row's label, where they differ.
        language: Language of all prompts.
        language_from: Column with each row's language.
        language_words: Tags for the publisher's words for languages; others stand as they are.
        category_from: Column with each row's category.
        method_from: Column with each row's method.
        source_from: Column with each row's source.
        id: Column with the publisher's own id.
        seed_id: Column with the id of what the row was made from.
        pair_id: Column with what a safe prompt shares with its toxic twin.
        meta: Further columns to keep, by the name to keep them under; kept where present.
        meta_from: Column that holds further facts as an object.
    """

    texts: tuple[TextColumn, ...] = ()
    sections: dict[str, tuple[str, ...]] = {}
    label: Label | None = None
    label_from: Lookup | None = None
    language: str | None = None
    language_from: str | None = None
    language_words: dict[str, str] = {}
    category_from: Lookup | None = None
    method_from: Lookup | None = None
    source_from: str | None = None
    id: str | None = None
    seed_id: str | None = None
    pair_id: str | None = None
    meta: dict[str, str] = {}
    meta_from: str | None = None

    @model_validator(mode="after")
    def _label_is_told_once(self) -> Self:
        told = [self.label is not None, self.label_from is not None]
        told.append(any(text.label is not None for text in self.texts))
        if sum(told) > 1:
            raise ValueError("a label is told twice: give one of label, label_from, texts.label")
        return self

    @model_validator(mode="after")
    def _label_words_are_labels(self) -> Self:
        for label in self.label_from.words.values() if self.label_from else ():
            Label(label)
        return self

    @property
    def tells_labels(self) -> bool:
        """Whether prompts get a label of safe or toxic from the layout itself."""
        return (
            self.label in (Label.SAFE, Label.TOXIC)
            or self.label_from is not None
            or any(text.label is not None for text in self.texts)
        )

    @property
    def labels(self) -> list[str]:
        """The labels that prompts have, as far as the layout tells them."""
        given = [self.label, *(text.label for text in self.texts)]
        words = [str(label) for label in given if label is not None]
        if self.label_from is not None:
            words += self.label_from.words.values() or map(str, Label)
        return list(dict.fromkeys(words))

    @property
    def languages(self) -> list[str]:
        """The languages that prompts have, as far as the layout tells them."""
        given = [text.language or self.language for text in self.texts] or [self.language]
        return list(dict.fromkeys(language for language in given if language is not None))

    def required_columns(self) -> Iterator[str]:
        """Give the columns without which the source can't be read, each once."""
        lookups = (self.label_from, self.category_from, self.method_from)
        parts = {f"{name}/{part}": name for name in self.sections for part in self.sections[name]}
        columns = [text.column for text in self.texts if not text.optional]
        columns += [column for text in self.texts for column in text.before]
        columns = [parts.get(column, column) for column in columns]
        columns += [lookup.column for lookup in lookups if lookup is not None]
        columns += [c for c in (self.language_from, self.id, self.seed_id) if c is not None]
        yield from dict.fromkeys(columns)

    def named_columns(self) -> Iterator[str]:
        """Give all columns that are read where they are there."""
        yield from self.required_columns()
        for text in self.texts:
            yield from (c for c in (text.column, text.context, text.made_from) if c is not None)
        yield from self.meta.values()
        others = (self.source_from, self.pair_id, self.meta_from)
        yield from (column for column in others if column is not None)

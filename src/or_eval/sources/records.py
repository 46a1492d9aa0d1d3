"""Turn the rows of a table into prompt records."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from or_eval.languages import detect_language
from or_eval.schema import Label, PromptRecord, Turn, prompt_id
from or_eval.sources.catalogue import Entry, Layout, Lookup, TextColumn
from or_eval.sources.columns import NO_COLUMN, label_of_word
from or_eval.sources.dialogues import Said, read_dialogue
from or_eval.sources.errors import DataError, shown
from or_eval.sources.tables import Row, Table

UNCATEGORISED = "uncategorised"
"""Category of prompts whose source has none."""

SOURCE_ID = "source_id"
"""Where a record's ``meta`` keeps the id that its publisher gave it."""

# How HarmBench itself asks about a text.
_AFTER_CONTEXT = "\n\n---\n\n"
_LANGUAGES = ("English", "Chinese", "Mixed")
_LANGUAGE_TAG = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*(\+[a-z]{2,3}(-[A-Za-z0-9]{2,8})*)?")


class _Told(NamedTuple):
    """What a row says of its prompts: their label, words by role, and further facts."""

    label: Label | None
    words: dict[str, str]
    meta: dict[str, Any]

    def of_origin(self) -> _Told:
        """Give what it says of what its prompts were made from as well."""
        shared = {role: self.words[role] for role in _SHARED if role in self.words}
        return _Told(self.label, shared, {})


_SHARED = ("language", "category", "source")


class _Seen(NamedTuple):
    """What the rows so far held.

    Attributes:
        records: The number of each record's row, by its label and its id.
        texts: The texts' ids and the numbers of their rows, by the publisher's own ids.
    """

    records: dict[Label, dict[str, int]]
    texts: dict[tuple[str, str, str], tuple[str, int]]


@dataclass
class PromptRows:
    """The prompt records of a table, each text once, made anew each time they are gone through.

    Going through them raises DataError where a column is missing, or a row breaks a rule of
    ``docs/prompt-sets.md``. What is held meanwhile is their ids.

    Attributes:
        table: The data.
        layout: Which columns hold what; it names the columns with the prompts.
        entry: The catalogue entry that they are read by. The rows' pair ids are put between its
            name and the language, so that they are unique among all sources and each pair is of
            one language; without an entry they stand as they are.
        duplicates: How many exact duplicates there were, when last gone through.
        again: These duplicates, where whoever goes through the records hasn't taken them out.
    """

    table: Table
    layout: Layout
    entry: Entry | None = None
    duplicates: int = 0
    again: list[PromptRecord] = field(default_factory=list)

    @property
    def source(self) -> str:
        """Catalogue name, Hub id or file name: the records' source, where rows don't tell."""
        return self.table.title if self.entry is None else self.entry.name

    def __iter__(self) -> Iterator[PromptRecord]:
        table, layout = self.table, self.layout
        missing = [column for column in layout.required_columns() if column not in table.columns]
        if missing:
            unseen = self.entry.unseen if self.entry is not None else ""
            there = f"(there are: {', '.join(map(shown, table.columns))}){unseen}"
            needed = f"{', '.join(map(shown, missing))}, which {self.source} needs"
            raise DataError(f"{table.name}: has no column {needed} {there}")
        self.again.clear()
        self.duplicates, seen = 0, _Seen({label: {} for label in Label}, {})
        texts = [text for text in layout.texts if not text.optional or text.column in table.columns]
        for row in map(partial(_converted, layout), table.rows) if layout.convert else table.rows:
            of_row = _told(row, layout)
            for text in texts:
                said, told = read_prompt(row, text), of_row.of_origin() if text.origin else of_row
                if not said.prompt:
                    continue
                record = self._record(row, text, told, said)
                self._refuse_shared_id(row, text, told, record.id, seen)
                if _is_new(row, text, record, seen):
                    yield record
                else:
                    self.duplicates += 1
                    self.again.append(record)

    def _record(self, row: Row, text: TextColumn, told: _Told, said: Said) -> PromptRecord:
        label, word = text.label or told.label, told.words.get
        if label is None:
            raise row.error(text.column, "nothing tells whether it is safe or toxic")
        language = text.language or self.layout.language or word("language")
        language = language or detect_language(said.prompt)
        pair_id, origin, own_id = word("pair_id"), row.text(text.made_from), word("id")
        if pair_id and self.entry is not None:
            pair_id = f"{self.entry.name}-{pair_id}-{language}"
        seed_id = prompt_id(origin) if origin not in ("", said.prompt) else word("seed_id")
        return PromptRecord(
            id=said.id,
            prompt=said.prompt,
            label=label,
            category=word("category") or UNCATEGORISED,
            language=language,
            source=word("source") or self.source,
            method=text.method or word("method") or None,
            seed_id=seed_id or None,
            pair_id=pair_id or None,
            meta=({SOURCE_ID: own_id} if own_id and own_id != said.id else {}) | told.meta,
            before=said.before,
        )

    def _refuse_shared_id(
        self, row: Row, text: TextColumn, told: _Told, id: str, seen: _Seen
    ) -> None:
        """Refuse an id of the publisher's that stands for two texts of one column and language."""
        own_id = told.words.get("id")
        if not own_id or own_id == id:
            return
        key = (own_id, text.column, told.words.get("language", ""))
        first, number = seen.texts.setdefault(key, (id, row.number))
        if first != id:
            problem = f"{shown(own_id)} is the id of another text as well ({row.unit} {number})"
            raise row.error(self.layout.columns["id"].column, problem)


def _is_new(row: Row, text: TextColumn, record: PromptRecord, seen: _Seen) -> bool:
    for label, rows in seen.records.items():
        if label != record.label and record.id in rows:
            there = f"{row.unit} {rows[record.id]}"
            problem = f"the prompt is {record.label} here and {label} in {there}"
            raise row.error(text.column, problem)
    if record.id in seen.records[record.label]:
        return False
    seen.records[record.label][record.id] = row.number
    return True


def _converted(layout: Layout, row: Row) -> Row:
    found = {
        f"{column}/{name}": text
        for converter, column in layout.convert.items()
        for name, text in _CONVERTERS[converter](row, column).items()
    }
    return row._replace(cells={**row.cells, **found}) if found else row


def _first(row: Row, column: str) -> dict[str, str]:
    """Give the first of a list of words; csv files hold lists as Python writes them."""
    said = value = row.cells.get(column)
    if isinstance(said, str):
        try:
            value = ast.literal_eval(said)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            value = None
    if not isinstance(value, list) or not all(isinstance(member, str) for member in value):
        raise row.error(column, f"{shown(said)} isn't a list of words")
    return {"first": value[0] if value else ""}


def _languages(row: Row, column: str) -> dict[str, str]:
    """Give the texts of a cell that holds one in each language, after the language and a colon."""
    parts = re.split(rf"^({'|'.join(_LANGUAGES)}):", row.text(column), flags=re.M)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    if missing := [name for name in _LANGUAGES if name not in found]:
        raise row.error(column, f"has no line that starts with {shown(missing[0] + ':')}")
    return found


_CONVERTERS: dict[str, Callable[[Row, str], dict[str, str]]] = {
    "first": _first,
    "languages": _languages,
}
"""What single sets need before their columns can be read, named in their layouts: each gives what
it finds in a column of a row, by what to call it."""


def _told(row: Row, layout: Layout) -> _Told:
    label, columns = row_label(row, layout), layout.columns
    words: dict[str, str] = {
        role: _word(row, columns[role]) for role in columns if role not in ("label", "meta")
    }
    if (tag := words.get("language")) and not _LANGUAGE_TAG.fullmatch(tag):
        problem = f"{shown(tag)} isn't a language tag, such as en, zh or zh+en"
        raise row.error(columns["language"].column, problem)
    return _Told(label, words, _further_facts(row, layout))


def row_label(row: Row, layout: Layout) -> Label | None:
    """Give the label that a row says its prompts have.

    Raises:
        DataError: The word in its column is no label, or isn't there.
    """
    lookup = layout.columns.get("label")
    if lookup is None:
        return layout.label
    word = _word(row, lookup)
    label = label_of_word(word)
    if label is None:
        problem = (
            f"{shown(word)} is neither safe nor toxic; say what words mean (label=0=safe,1=toxic)"
            if word
            else "the label is empty"
        )
        raise row.error(lookup.column, f"{problem}, or give label_column={NO_COLUMN}")
    return label


def _word(row: Row, lookup: Lookup) -> str:
    """Give a row's word in our spelling; empty where it has none."""
    word = row.text(lookup.column)
    return lookup.translation.get(word.casefold(), word)


def _further_facts(row: Row, layout: Layout) -> dict[str, Any]:
    """Give the facts that a row's record keeps under ``meta``; none for empty cells."""
    cells = {key: (column, row.cells.get(column)) for key, column in layout.meta.items()}
    facts = {
        key: row.text(column) if isinstance(cell, str) else cell
        for key, (column, cell) in cells.items()
    }
    facts = {key: fact for key, fact in facts.items() if fact is not None and fact != ""}
    if "meta" not in layout.columns:
        return facts
    column = layout.columns["meta"].column
    value = row.cells.get(column)
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise row.error(column, f"{shown(value)} isn't a JSON object") from None
    if value and not isinstance(value, dict):
        raise row.error(column, f"{shown(value)} isn't an object")
    return facts | (value or {})


def read_prompt(row: Row, text: TextColumn) -> Said:
    """Give a cell's prompt, after the text it refers to, and what was said before it.

    The prompt is empty where an optional one is absent.

    Raises:
        DataError: The cell holds neither a text nor a dialogue, or an empty one.
    """
    cell = row.cells.get(text.column)
    if text.dialogue or (isinstance(cell, list) and any(isinstance(turn, dict) for turn in cell)):
        try:
            said = read_dialogue(cell, partial(row.checked, text.column))
        except ValueError as error:
            raise row.error(text.column, str(error)) from None
    else:
        said = Said((), row.text(text.column))
    if not said.prompt and not text.optional:
        raise row.error(text.column, "the prompt is empty")
    if not said.prompt:
        return said
    context = row.text(text.context)
    earlier = map(row.text, text.before)
    return said._replace(
        before=(*(Turn("user", turn) for turn in earlier if turn), *said.before),
        prompt=f"{context}{_AFTER_CONTEXT}{said.prompt}" if context else said.prompt,
    )

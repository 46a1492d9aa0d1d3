"""Turn the rows of a table into prompt records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from or_eval.languages import detect_language
from or_eval.schema import Label, PromptRecord, Turn, prompt_id
from or_eval.sources.conventions import NO_COLUMN, label_of_word
from or_eval.sources.dialogues import Said, read_dialogue
from or_eval.sources.errors import DataError, shown
from or_eval.sources.layout import Layout, TextColumn
from or_eval.sources.rows import further_facts, with_sections, word_of
from or_eval.sources.tables import Row, Table

UNCATEGORISED = "uncategorised"
"""Category of prompts whose source has none."""

SOURCE_ID = "source_id"
"""Where a record's ``meta`` keeps the id that its publisher gave it."""

# How HarmBench itself asks about a text.
_AFTER_CONTEXT = "\n\n---\n\n"
_LANGUAGE_TAG = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*(\+[a-z]{2,3}(-[A-Za-z0-9]{2,8})*)?")


class Reading(NamedTuple):
    """A table and how to read it.

    Attributes:
        table: The data.
        layout: Which columns hold what; it names the columns with the prompts.
        source: Source of the records, where the rows don't tell.
        pair_prefix: Put before the rows' pair ids, with the language after, so that they are
            unique among all sources and each pair is of one language; None: as they are.
        unseen: Ends the error line where columns are missing: that nobody saw a file.
    """

    table: Table
    layout: Layout
    source: str
    pair_prefix: str | None = None
    unseen: str = ""


class _RowFacts(NamedTuple):
    """What a row says of all its prompts."""

    row: Row
    label: Label | None
    language: str
    category: str
    method: str
    source: str
    id: str
    seed_id: str
    pair_id: str
    meta: dict[str, Any]


_NOT_ITS_OWN: dict[str, Any] = {"method": "", "id": "", "seed_id": "", "pair_id": "", "meta": {}}
"""What a row says of the prompts that it holds, and not of what they were made from."""


@dataclass(slots=True)
class Seen:
    """What the rows so far held.

    Attributes:
        records: The number of each record's row, by its label and its id.
        texts: The texts' ids and the numbers of their rows, by the publisher's own ids.
        duplicates: How many exact duplicates there were.
        again: These duplicates, where whoever goes through the records hasn't taken them out.
    """

    records: dict[Label, dict[str, int]] = field(default_factory=lambda: {x: {} for x in Label})
    texts: dict[tuple[str, str, str], tuple[str, int]] = field(default_factory=dict)
    duplicates: int = 0
    again: list[PromptRecord] = field(default_factory=list)


def records_of(reading: Reading, seen: Seen) -> Iterator[PromptRecord]:
    """Make the prompt records of a table one after the other, each text once.

    Args:
        reading: The table, and how to read it.
        seen: Nothing yet; it fills up as the records are made.

    Raises:
        DataError: A column is missing, or a row breaks a rule of ``docs/prompt-sets.md``.
    """
    table, layout, source, *_ = reading
    missing = [column for column in layout.required_columns() if column not in table.columns]
    if missing:
        raise DataError(
            f"{table.name}: has no column {', '.join(map(shown, missing))}, which {source} needs "
            f"(there are: {', '.join(map(shown, table.columns))}){reading.unseen}"
        )
    table = with_sections(table, layout.sections)
    texts = [text for text in layout.texts if text.column in table.columns]
    for row in table.rows:
        of_row = _facts(reading, row)
        for text in texts:
            said = read_prompt(table, row, text)
            facts = of_row._replace(**_NOT_ITS_OWN) if text.origin else of_row
            if said.prompt:
                record = _record(reading, facts, text, said)
                _refuse_shared_id(reading, facts, text, record, seen)
                if _is_new(table, facts, text, record, seen):
                    yield record


def _facts(reading: Reading, row: Row) -> _RowFacts:
    table, layout, source, *_ = reading

    def cell(column: str | None) -> str:
        return table.text(row, column) if column is not None else ""

    return _RowFacts(
        row=row,
        label=row_label(table, row, layout),
        language=_language(table, row, layout),
        category=word_of(table, row, layout.category_from) or UNCATEGORISED,
        method=word_of(table, row, layout.method_from),
        source=cell(layout.source_from) or source,
        id=cell(layout.id),
        seed_id=cell(layout.seed_id),
        pair_id=cell(layout.pair_id),
        meta=further_facts(table, row, layout),
    )


def row_label(table: Table, row: Row, layout: Layout) -> Label | None:
    """Give the label that a row says its prompts have.

    Raises:
        DataError: The word in its column is no label, or isn't there.
    """
    if layout.label_from is None:
        return layout.label
    word = table.text(row, layout.label_from.column)
    known = layout.label_from.translation.get(word.casefold())
    label = Label(known) if known is not None else label_of_word(word)
    if label is None:
        problem = (
            f"{shown(word)} is neither safe nor toxic; say what words mean (label=0=safe,1=toxic)"
            if word
            else "the label is empty"
        )
        remedy = f"or give label_column={NO_COLUMN}"
        raise table.error(row, layout.label_from.column, f"{problem}, {remedy}")
    return label


def _language(table: Table, row: Row, layout: Layout) -> str:
    column = layout.language_from
    tag = table.text(row, column) if column is not None else ""
    tag = layout.language_words.get(tag, tag)
    if tag and not _LANGUAGE_TAG.fullmatch(tag):
        raise table.error(row, column, f"{shown(tag)} is no language tag, such as en, zh or zh+en")
    return tag


def read_prompt(table: Table, row: Row, text: TextColumn) -> Said:
    """Give a cell's prompt, after the text it refers to, and what was said before it.

    The prompt is empty where an optional one is absent.

    Raises:
        DataError: The cell holds neither a text nor a dialogue, or an empty one.
    """
    cell = row.cells.get(text.column)
    if text.dialogue or (isinstance(cell, list) and any(isinstance(turn, dict) for turn in cell)):
        try:
            said = read_dialogue(cell, partial(table.checked, row, text.column))
        except ValueError as error:
            raise table.error(row, text.column, str(error)) from None
    else:
        said = Said((), table.text(row, text.column))
    if not said.prompt and not text.optional:
        raise table.error(row, text.column, "the prompt is empty")
    if not said.prompt:
        return said
    context = table.text(row, text.context) if text.context is not None else ""
    earlier = [table.text(row, column) for column in text.before]
    return said._replace(
        before=(*(Turn("user", turn) for turn in earlier if turn), *said.before),
        prompt=f"{context}{_AFTER_CONTEXT}{said.prompt}" if context else said.prompt,
    )


def _record(reading: Reading, facts: _RowFacts, text: TextColumn, said: Said) -> PromptRecord:
    table, layout, _, pair_prefix, _ = reading
    prompt, identity = said.prompt, said.id
    label = text.label or facts.label
    if label is None:
        raise table.error(facts.row, text.column, "nothing tells whether it is safe or toxic")
    language = text.language or layout.language or facts.language or detect_language(prompt)
    pair_id = facts.pair_id
    if pair_id and pair_prefix is not None:
        pair_id = f"{pair_prefix}-{pair_id}-{language}"
    own_id = {SOURCE_ID: facts.id} if facts.id not in ("", identity) else {}
    return PromptRecord(
        id=identity,
        prompt=prompt,
        label=label,
        category=facts.category,
        language=language,
        source=facts.source,
        method=text.method or facts.method or None,
        seed_id=_origin_id(table, facts.row, text, prompt) or facts.seed_id or None,
        pair_id=pair_id or None,
        meta=own_id | facts.meta,
        before=said.before,
    )


def _origin_id(table: Table, row: Row, text: TextColumn, prompt: str) -> str:
    if text.made_from is None:
        return ""
    origin = table.text(row, text.made_from)
    return prompt_id(origin) if origin not in ("", prompt) else ""


def _refuse_shared_id(
    reading: Reading, facts: _RowFacts, text: TextColumn, record: PromptRecord, seen: Seen
) -> None:
    """Refuse an id of the publisher's that stands for two texts of one column and language."""
    if facts.id in ("", record.id):
        return
    place = (facts.id, text.column, facts.language)
    first, number = seen.texts.setdefault(place, (record.id, facts.row.number))
    if first != record.id:
        table = reading.table
        other = f"{table.unit} {number}"
        problem = f"{shown(facts.id)} is the id of another text as well ({other})"
        raise table.error(facts.row, reading.layout.id, problem)


def _is_new(
    table: Table, facts: _RowFacts, text: TextColumn, record: PromptRecord, seen: Seen
) -> bool:
    for label, rows in seen.records.items():
        if label != record.label and record.id in rows:
            there = f"{table.unit} {rows[record.id]}"
            problem = f"the prompt is {record.label} here and {label} in {there}"
            raise table.error(facts.row, text.column, problem)
    if record.id in seen.records[record.label]:
        seen.duplicates += 1
        seen.again.append(record)
        return False
    seen.records[record.label][record.id] = facts.row.number
    return True

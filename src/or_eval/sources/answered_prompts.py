"""The prompts of a file of stored responses, as one model was asked them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from or_eval.schema import Label, PromptRecord
from or_eval.sources.conventions import label_of_word
from or_eval.sources.errors import DataError, shown
from or_eval.sources.layout import Layout, Lookup, TextColumn
from or_eval.sources.loader import LoadedPrompts, load_prompts
from or_eval.sources.records import Reading, records_of
from or_eval.sources.responses import NO_COLUMN, ResponseFile, StoredResponse, option_for


class AnsweredPrompts(NamedTuple):
    """Prompts beside what a file says of them.

    Attributes:
        prompts: The prompts.
        contradictory: How many of them the file calls both safe and toxic; they are unlabelled.
        left_out: How many prompts of the file are not among the prompts asked for.
    """

    prompts: LoadedPrompts
    contradictory: int
    left_out: int


def answered_prompts(
    responses: ResponseFile,
    model: str,
    data: str | Path | None = None,
    source: str | None = None,
    label: str | None = None,
) -> AnsweredPrompts:
    """Give the prompts that a model is taken to have been asked.

    Args:
        responses: The stored responses.
        model: The model. What the file says of its responses to a prompt goes into the record's
            ``meta``, where all of them agree.
        data: Prompts to load instead of the file's own, as :func:`load_prompts` takes them; the
            file's are then joined to them by their text.
        source: Catalogue entry to read `data` by.
        label: Label of all prompts, where neither the file nor `data` tells it.

    Raises:
        DataError: The file or `data` can't be read, they have no prompt in common, or prompts
            have labels already.
    """
    rows = _rows_by_prompt(responses)
    contradictory: set[str] = set()
    if data is None:
        contradictory = _contradictory(responses, rows)
        records = _own_records(responses, rows, contradictory, _label(responses, label))
        table = responses.table
        loaded = LoadedPrompts(records, 0, table.title, table.revision)
    else:
        loaded = load_prompts(data, source=source, label=label)
    answers = responses.answers_of(model)
    records = [
        _with_facts(record, responses, rows[record.prompt], answers.get(record.prompt))
        if record.prompt in rows
        else record
        for record in loaded.records
    ]
    shared = {record.prompt for record in loaded.records} & rows.keys()
    if not shared:
        raise DataError(
            f"{responses.table.name}: has a response to none of the {len(records)} prompts of "
            f"{loaded.name}; texts must be the same, letter by letter"
        )
    return AnsweredPrompts(
        prompts=loaded._replace(records=records),
        contradictory=len(contradictory),
        left_out=len(rows) - len(shared),
    )


def _rows_by_prompt(responses: ResponseFile) -> dict[str, list[StoredResponse]]:
    """Give the rows of all models by prompt, prompts in the order of the file."""
    by_prompt: dict[str, list[StoredResponse]] = {}
    for answers in responses.by_model.values():
        for prompt, stored in answers.items():
            by_prompt.setdefault(prompt, []).extend(stored)
    order = {prompt: min(s.row.number for s in stored) for prompt, stored in by_prompt.items()}
    return {prompt: by_prompt[prompt] for prompt in sorted(by_prompt, key=order.__getitem__)}


def _contradictory(responses: ResponseFile, rows: dict[str, list[StoredResponse]]) -> set[str]:
    """Give the prompts that some rows call safe and others toxic.

    Raises:
        DataError: A label is neither safe nor toxic; files may label their responses instead.
    """
    column = responses.columns.get("label")
    if column is None:
        return set()
    table = responses.table
    labels: dict[str, set[Label]] = {prompt: set() for prompt in rows}
    for prompt, stored in rows.items():
        for row in (response.row for response in stored):
            word = table.text(row, column)
            label = label_of_word(word)
            if label is None:
                remedy = f"if it isn't the prompt's label, give {option_for('label', NO_COLUMN)}"
                raise table.error(row, column, f"{shown(word)} is neither safe nor toxic; {remedy}")
            labels[prompt].add(label)
    return {prompt for prompt, found in labels.items() if len(found) > 1}


def _label(responses: ResponseFile, word: str | None) -> Label:
    """Give the label of all prompts of a file.

    Raises:
        DataError: It is neither safe nor toxic, or the file has labels of its own.
    """
    if word is None:
        return Label.UNLABELLED
    label, column = label_of_word(word), responses.columns.get("label")
    if label is None:
        raise DataError(f"label: {shown(word)} is neither safe nor toxic")
    if column is not None:
        raise DataError(
            f"{responses.table.name}: has labels of its own in column {shown(column)}; leave the "
            f"label out, or give {option_for('label', NO_COLUMN)}"
        )
    return label


def _own_records(
    responses: ResponseFile,
    rows: dict[str, list[StoredResponse]],
    contradictory: set[str],
    label: Label,
) -> list[PromptRecord]:
    """Make a record of the first row of each prompt; the loader's rules hold for its columns."""
    columns = responses.columns

    def lookup(role: str) -> Lookup | None:
        return Lookup(column=columns[role]) if role in columns else None

    layout = Layout(
        texts=(TextColumn(column=columns["prompt"]),),
        label=None if "label" in columns else label,
        label_from=lookup("label"),
        language_from=columns.get("language"),
        category_from=lookup("category"),
        method_from=lookup("method"),
        source_from=columns.get("source"),
        seed_id=columns.get("seed_id"),
        pair_id=columns.get("pair_id"),
        meta_from=columns.get("meta"),
    )
    table = replace(responses.table, rows=[stored[0].row for stored in rows.values()])
    return [
        replace(record, label=Label.UNLABELLED) if record.prompt in contradictory else record
        for record in records_of(Reading(table, layout, table.title)).records
    ]


def _with_facts(
    record: PromptRecord,
    responses: ResponseFile,
    rows: list[StoredResponse],
    answers: list[StoredResponse] | None,
) -> PromptRecord:
    """Put what else the file says into a record; what the record says itself stands."""
    facts = [responses.facts(stored) for stored in answers or rows]
    agreed: dict[str, Any] = {
        name: value
        for name, value in facts[0].items()
        if all(other.get(name) == value for other in facts[1:])
    }
    return replace(record, meta={**agreed, **record.meta})

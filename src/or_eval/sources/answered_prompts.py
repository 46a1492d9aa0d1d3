"""The prompts of a file of stored responses, as one model was asked them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from or_eval.schema import Label, PromptRecord
from or_eval.sources.choosing_layout import labelled, layout_of
from or_eval.sources.errors import DataError
from or_eval.sources.loader import LoadedPrompts, load_prompts
from or_eval.sources.records import Reading, records_of, row_label
from or_eval.sources.responses import ResponseFile, StoredResponse


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
    contradictory = 0
    if data is None:
        records, contradictory = _own_records(responses, rows, label)
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
        contradictory=contradictory,
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


def _own_records(
    responses: ResponseFile, rows: dict[str, list[StoredResponse]], label: str | None
) -> tuple[list[PromptRecord], int]:
    """Make a record of the first row of each prompt, as of any file of prompts.

    Returns:
        The records, and how many of them the rows call safe here and toxic there.
    """
    # An id of the file's is often its row's, and each response keeps it.
    columns = {role: column for role, column in responses.columns.items() if role != "id"}
    layout = layout_of(columns)
    if label is not None:
        layout = labelled(responses.table, layout, label)
    elif layout.label_from is None:
        layout = layout.model_copy(update={"label": Label.UNLABELLED})
    table = replace(responses.table, rows=[stored[0].row for stored in rows.values()])
    labels = {
        prompt: {row_label(table, response.row, layout) for response in stored}
        for prompt, stored in rows.items()
    }
    contradictory = {prompt for prompt, found in labels.items() if len(found) > 1}
    records = [
        replace(record, label=Label.UNLABELLED) if record.prompt in contradictory else record
        for record in records_of(Reading(table, layout, table.title)).records
    ]
    return records, len(contradictory)


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

"""The prompts of a file of stored responses, as one model was asked them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from or_eval.schema import Label, PromptRecord
from or_eval.sources.columns import ColumnOptions, labelled, layout_of
from or_eval.sources.errors import DataError
from or_eval.sources.loader import LoadedPrompts, load_prompts
from or_eval.sources.records import PromptRows, row_label
from or_eval.sources.responses import Answers, ResponseFile, StoredResponse

REPLAY_PROMPTS = ColumnOptions((("labels", "--label safe or --label toxic"), ("entry", "--source")))
"""How a person says how the prompts are read that responses are joined to."""

_HEARD = (("user", "assistant", "system"), ("user", "assistant"), ("user", "system"), ("user",))
"""Whose turns tell which prompt a dialogue is, in the order in which they are tried."""


class AnsweredPrompts(NamedTuple):
    """Prompts beside what a file says of them.

    Attributes:
        responses: The file.
        prompts: The prompts, before the file says anything of them.
        joined: By the id of a prompt, the file's dialogues that are it, with their rows.
        contradictory: How many of them the file calls both safe and toxic; they are unlabelled.
        left_out: How many prompts of the file are not among the prompts asked for.
    """

    responses: ResponseFile
    prompts: LoadedPrompts
    joined: dict[str, dict[str, list[StoredResponse]]]
    contradictory: int
    left_out: int

    def of(self, model: str) -> LoadedPrompts:
        """Give the prompts that a model is taken to have been asked.

        What the file says of its responses to a prompt goes into the record's ``meta``, where all
        of them agree.
        """
        answers = self.responses.answers_of(model)
        answered = [
            told
            for record in self.prompts.records
            for told in _as_answered(
                record, self.responses, self.joined.get(record.id, {}), answers
            )
        ]
        return self.prompts._replace(records=answered)


def answered_prompts(
    responses: ResponseFile,
    data: str | Path | None = None,
    source: str | None = None,
    label: str | None = None,
) -> AnsweredPrompts:
    """Give the prompts that stored responses answer.

    Args:
        responses: The stored responses.
        data: Prompts to load instead of the file's own, as :func:`load_prompts` takes them; the
            file's are then joined to them by their text, and what a dialogue in the file says
            beyond the user's turns becomes part of the prompt.
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
        loaded = load_prompts(data, source=source, label=label, options=REPLAY_PROMPTS)
    joined = _joined({record.id for record in loaded.records}, rows)
    if not joined:
        held = " (dialogues)" if any(record.before for record in loaded.records) else ""
        raise DataError(
            f"{responses.table.name}: has a response to none of the {len(loaded.records)} prompts "
            f"of {loaded.name}{held}; texts must be the same, letter by letter"
        )
    left_out = len(rows) - sum(map(len, joined.values()))
    return AnsweredPrompts(responses, loaded, joined, contradictory, left_out)


def _rows_by_prompt(responses: ResponseFile) -> dict[str, list[StoredResponse]]:
    """Give the rows of all models by the prompt's id, in the order of the file."""
    stored = (one for by in responses.by_model.values() for many in by.values() for one in many)
    by_prompt: dict[str, list[StoredResponse]] = {}
    for one in sorted(stored, key=lambda one: one.row.number):
        by_prompt.setdefault(one.asked.id, []).append(one)
    return by_prompt


def _own_records(
    responses: ResponseFile, rows: dict[str, list[StoredResponse]], label: str | None
) -> tuple[list[PromptRecord], int]:
    """Make a record of the first row of each prompt, as of any file of prompts.

    Returns:
        The records, and how many of them the rows call safe here and toxic there.
    """
    # An id of the file's is often its row's, and each response keeps it.
    layout = layout_of({role: c for role, c in responses.columns.items() if role != "id"})
    if label is not None:
        layout = labelled(responses.table, layout, label)
    elif "label" not in layout.columns:
        layout = layout.model_copy(update={"label": Label.UNLABELLED})
    contradictory = {
        id for id, stored in rows.items() if len({row_label(one.row, layout) for one in stored}) > 1
    }
    table = replace(responses.table, rows=[stored[0].row for stored in rows.values()])
    records = [
        replace(record, label=Label.UNLABELLED) if record.id in contradictory else record
        for record in PromptRows(table, layout)
    ]
    return records, len(contradictory)


def _joined(
    ids: set[str], rows: dict[str, list[StoredResponse]]
) -> dict[str, dict[str, list[StoredResponse]]]:
    """Give, by the id of a record, the file's dialogues that are its prompt, with their rows.

    A dialogue is a record's that says the same, or the same but for what the record leaves out:
    the model's own answers on the way, the system's turns.
    """
    joined: dict[str, dict[str, list[StoredResponse]]] = {}
    for id, stored in rows.items():
        asked = stored[0].asked
        for roles in _HEARD:
            heard = asked._replace(before=tuple(t for t in asked.before if t.role in roles)).id
            if heard in ids:
                joined.setdefault(heard, {})[id] = stored
                break
    return joined


def _as_answered(
    record: PromptRecord,
    responses: ResponseFile,
    joined: dict[str, list[StoredResponse]],
    answers: Answers,
) -> Iterator[PromptRecord]:
    """Give a record for each dialogue that a model had over it; those after the first as family."""
    own = [id for id in joined if id in answers] or [*joined][:1]
    for id in own:
        told = _with_facts(record, responses, answers.get(id) or joined[id])
        family = record.seed_id or record.id
        yield told if id == own[0] else replace(told, id=id, seed_id=family)
    if not own:
        yield record


def _with_facts(
    record: PromptRecord, responses: ResponseFile, stored: list[StoredResponse]
) -> PromptRecord:
    """Put what else the file says into a record; what the record says itself stands."""
    facts = [responses.facts(one) for one in stored]
    agreed: dict[str, Any] = {
        name: value
        for name, value in facts[0].items()
        if all(other.get(name) == value for other in facts[1:])
    }
    return replace(record, meta={**agreed, **record.meta}, before=stored[0].asked.before)

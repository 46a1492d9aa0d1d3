"""Read responses that models gave earlier: by model and by prompt, in the order of the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import to_jsonable_python
from rich.markup import escape

from or_eval.sources.choosing_layout import layout_of
from or_eval.sources.conventions import PROMPT_ROLES, columns_by_role
from or_eval.sources.dialogues import Said
from or_eval.sources.errors import DataError, shown
from or_eval.sources.files import CsvForm, read_table
from or_eval.sources.records import SOURCE_ID, read_prompt
from or_eval.sources.tables import Row, Table, cell_text, whole, whole_cell
from or_eval.sources.wide_responses import MODEL, RESPONSE, one_response_a_row

NAMED_ROLES = ("prompt", "response", "model", "label", "category", "id", "language")
"""Roles that a column can be given by name, where its own name doesn't tell."""

RESPONSE_COLUMNS = "response_columns"
"""Option that names the columns of a file which has one for each model's responses."""

DELIMITER = "delimiter"
"""Option that says what stands between the cells of a csv file."""

# A file name, which holds the model's name, has room for 255 bytes.
_LONGEST_MODEL_NAME = 150


class StoredResponse(NamedTuple):
    """One row of a file of responses.

    Attributes:
        text: The response as it stands, but for halves of characters and NULs, which no log can
            hold; empty where the row has none.
        row: The row it stands in.
        asked: What it answers.
        stop_reason: Why the model stopped, in its provider's word.
        reasoning: What the model thought before it answered.
    """

    text: str
    row: Row
    asked: Said
    stop_reason: str = ""
    reasoning: str = ""


Answers = dict[str, list[StoredResponse]]
"""The responses of one model by the prompt's id, in file order: the k-th is the k-th epoch's."""


@dataclass(frozen=True, slots=True)
class ResponseFile:
    """The responses of all models in a file.

    Attributes:
        table: The file's rows.
        columns: The file's column for each role that it has one for.
        by_model: The answers of each model, in the order of the file; the only key is None where
            the file has no column for the model.
        copies: How many rows are the same as an earlier one in every cell. They are kept, as
            epochs: a model may well have said the same twice.
    """

    table: Table
    columns: Mapping[str, str]
    by_model: Mapping[str | None, Answers]
    copies: int

    @property
    def models(self) -> list[str]:
        """Names of the models, as they stand in the file."""
        return [model for model in self.by_model if model is not None]

    def answers_of(self, model: str) -> Answers:
        """Give a model's answers; a file that names no model serves any.

        Raises:
            DataError: The file names its models and this is none of them.
        """
        if not self.models:
            return self.by_model[None]
        if model not in self.by_model:
            raise DataError(
                f"{self.table.name}: has no responses of {shown(model)}; "
                f"it has those of {', '.join(map(shown, self.models))}"
            )
        return self.by_model[model]

    def facts(self, response: StoredResponse) -> dict[str, Any]:
        """Give what else a row says: the publisher's id, and the columns that have no role."""
        with_role = set(self.columns.values())
        cells = {
            whole(column): whole_cell(value)
            for column, value in response.row.cells.items()
            if column not in with_role and cell_text(value) != ""
        }
        if "id" in self.columns and (own := self.table.text(response.row, self.columns["id"])):
            cells[SOURCE_ID] = own
        facts: dict[str, Any] = to_jsonable_python(cells, bytes_mode="base64", fallback=str)
        return facts


def load_responses(path: str | Path, **named: str) -> ResponseFile:
    """Read a file of stored responses.

    Args:
        path: A csv, tsv, jsonl or json file (each also with ``.gz``), or a parquet file.
        **named: ``prompt_column``, ``response_column``, ``model_column`` and so on: the names of
            columns whose own names don't tell; ``none`` for a column that the file hasn't.
            ``response_columns``: those with the responses, where each model has one of its own.
            ``delimiter``: what stands between the cells of a csv file.

    Raises:
        DataError: The file can't be read, or a column or a cell is missing or broken.
    """
    roles = {f"{role}_column": role for role in NAMED_ROLES}
    roles |= {RESPONSE_COLUMNS: RESPONSE_COLUMNS, DELIMITER: DELIMITER}
    unknown = next((name for name in named if name not in roles), None)
    if unknown is not None:
        raise DataError(
            f"{unknown}: is no option for stored responses; there are: responses, "
            + ", ".join(roles)
        )
    place = Path(path).expanduser()
    stamp = place.stat().st_mtime_ns if place.is_file() else 0
    return _load(place, stamp, tuple((roles[name], column) for name, column in named.items()))


# One file is asked for by its task and by the provider of each model in it.
@lru_cache(maxsize=2)
def _load(path: Path, _changed: int, named: tuple[tuple[str, str], ...]) -> ResponseFile:
    options = dict(named)
    file = read_table(path, CsvForm(delimiter=options.pop(DELIMITER, None)))
    table, roles = _row_for_each_response(replace(file, rows=list(file.rows)), options)
    columns = response_columns(table, roles)
    by_model: dict[str | None, Answers] = {}
    for row in table.rows:
        answers = by_model.setdefault(_model(table, row, columns.get("model")), {})
        response = _response(table, row, columns)
        answers.setdefault(response.asked.id, []).append(response)
    cells = [repr(row.cells) for row in table.rows]
    copies = len(cells) - len(set(cells))
    return ResponseFile(table, columns, by_model, copies)


def _row_for_each_response(table: Table, named: dict[str, str]) -> tuple[Table, Mapping[str, str]]:
    """Give the table with a row for each response, and its columns by role as far as named."""
    columns = named.pop(RESPONSE_COLUMNS, None)
    if clash := {"response", "model"} & named.keys():
        if columns is not None:
            raise DataError(
                f"{table.name}: {RESPONSE_COLUMNS} tell responses and models; leave the option for "
                f"the column with the {min(clash)} out"
            )
        return table, named
    wide = one_response_a_row(table, columns)
    return (
        (table, named) if wide is None else (wide, named | {"model": MODEL, "response": RESPONSE})
    )


def response_columns(
    table: Table,
    named: Mapping[str, str],
    roles: Sequence[str] = ("response", "model", *PROMPT_ROLES, "stop_reason", "reasoning"),
    required: Sequence[str] = ("prompt", "response"),
) -> dict[str, str]:
    """Find the columns of a table of stored responses, as :func:`columns_by_role` does."""
    return columns_by_role(
        table, roles, named, required, lambda role: f"say which it is with {option_for(role)}"
    )


def option_for(role: str, column: str = "NAME") -> str:
    """Say how a person names the column of a role."""
    return f"--{role}-column {column} (-M {role}_column={column} for a model replay/…)"


def _model(table: Table, row: Row, column: str | None) -> str | None:
    if column is None:
        return None
    model = table.text(row, column)
    if not model:
        raise table.error(row, column, "the model is empty")
    problem = name_problem(model)
    if problem is not None:
        raise table.error(row, column, f"{shown(model)} {problem}")
    return model


def name_problem(model: str) -> str | None:
    """Say why a log can't be of a model of this name; None where it can."""
    # Inspect shows the name as Rich markup.
    if not model.isprintable() or escape(model) != model:
        return "holds control characters or markup such as [bold], which no model's name can"
    if len(model.encode()) > _LONGEST_MODEL_NAME:
        return f"is longer than a model's name can be ({_LONGEST_MODEL_NAME} bytes)"
    return None


def _response(table: Table, row: Row, columns: Mapping[str, str]) -> StoredResponse:
    def text(role: str) -> str:
        return loggable(table.exact_text(row, columns[role])) if role in columns else ""

    asked, response = read_exchange(table, row, columns)
    return StoredResponse(response, row, asked, text("stop_reason"), text("reasoning"))


def read_exchange(table: Table, row: Row, columns: Mapping[str, str]) -> tuple[Said, str]:
    """Read what was asked in a row, and the response to it.

    Raises:
        DataError: The row has no prompt, a broken one, or no response where a dialogue holds it.
    """
    said = read_prompt(table, row, layout_of(columns).texts[0])
    if "response" in columns:
        return said._replace(answer=""), loggable(table.exact_text(row, columns["response"]))
    if not said.answer:
        problem = "ends with no answer of the model's, and the file has no column of responses"
        raise table.error(row, columns["dialogue"], problem)
    return said._replace(answer=""), loggable(said.answer)


def loggable(text: str) -> str:
    """Mark what no log can hold: halves of characters and NULs."""
    return whole(text.replace("\0", "\ufffd"))

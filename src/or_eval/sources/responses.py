"""Read responses that models gave earlier: by model and by prompt, in the order of the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import to_jsonable_python
from rich.markup import escape

from or_eval.hostile_text import whole, whole_cell
from or_eval.sources.columns import (
    PROMPT_ROLES,
    ColumnOptions,
    columns_by_role,
    columns_for,
    layout_of,
    model_beside_response,
    named_column,
)
from or_eval.sources.dialogues import Said
from or_eval.sources.errors import DataError, shown
from or_eval.sources.files import data_file, read_table
from or_eval.sources.records import SOURCE_ID, read_prompt
from or_eval.sources.tables import Row, Table, cell_text

_WIDE = "response_columns"
_NAMED_ROLES = ("prompt", "response", "model", "label", "category", "id", "language")
_OPTIONS = {**{f"{role}_column": role for role in _NAMED_ROLES}, _WIDE: _WIDE}
PROVIDER_COLUMNS = ColumnOptions(
    (*((role, f"-M {role}_column=") for role in _NAMED_ROLES), ("responses", f"-M {_WIDE}="))
)

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
        taken: Which columns are read as what, in a line.
    """

    table: Table
    columns: Mapping[str, str]
    by_model: Mapping[str | None, Answers]
    copies: int
    taken: str

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
        row, with_role = response.row, set(self.columns.values())
        cells = {
            whole(column): whole_cell(value)
            for column, value in row.cells.items()
            if column not in with_role and cell_text(value) != ""
        }
        if own := row.text(self.columns.get("id")):
            cells[SOURCE_ID] = own
        facts: dict[str, Any] = to_jsonable_python(cells, bytes_mode="base64", fallback=str)
        return facts


def load_responses(
    path: str | Path, options: ColumnOptions = PROVIDER_COLUMNS, /, **named: str
) -> ResponseFile:
    """Read a file of stored responses.

    Args:
        path: A csv, tsv, jsonl or json file (each also with ``.gz``), or an xlsx or parquet file.
        options: How whoever reads the error lines names columns.
        **named: ``prompt_column``, ``response_column``, ``model_column`` and so on: the names of
            columns whose own names don't tell; ``none`` for a column that the file hasn't.
            ``response_columns``: those with the responses, where each model has one of its own.

    Raises:
        DataError: The file can't be read, or a column or a cell is missing or broken.
    """
    unknown = next((name for name in named if name not in _OPTIONS), None)
    if unknown is not None:
        raise DataError(
            f"{unknown}: isn't an option for stored responses; there are: responses, "
            + ", ".join(_OPTIONS)
        )
    place = data_file(Path(path).expanduser())
    stamp = place.stat().st_mtime_ns if place.is_file() else 0
    given = tuple((_OPTIONS[name], column) for name, column in named.items())
    return _load(place, stamp, given, options)


# One file is asked for by its task and by the provider of each model in it.
@lru_cache(maxsize=2)
def _load(
    path: Path, _changed: int, named: tuple[tuple[str, str], ...], options: ColumnOptions
) -> ResponseFile:
    table = read_table(path)
    found = response_columns(table, dict(named), options)
    rows = list(found.one_a_row(table.rows))
    by_model: dict[str | None, Answers] = {}
    for row in rows:
        answers = by_model.setdefault(_model(row, found.columns.get("model")), {})
        response = _response(row, found.columns)
        answers.setdefault(response.asked.id, []).append(response)
    copies = len(rows) - len({repr(row.cells) for row in rows})
    return ResponseFile(replace(table, rows=rows), found.columns, by_model, copies, found.taken)


class ResponseColumns(NamedTuple):
    """Which columns of a table of stored responses hold what.

    Attributes:
        columns: The column of each role, once each response has a row of its own.
        models: The model of each column of responses, where each model has one of its own.
        taken: Which columns are read as what, in a line.
    """

    columns: dict[str, str]
    models: Mapping[str, str]
    taken: str

    def one_a_row(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Give a row for each response, with the model beside it."""
        for row in rows:
            shared = {name: cell for name, cell in row.cells.items() if name not in self.models}
            for column, model in self.models.items():
                said = {
                    self.columns["model"]: model,
                    self.columns["response"]: row.cells.get(column),
                }
                yield row._replace(cells=shared | said)
            if not self.models:
                yield row


def response_columns(
    table: Table,
    named: Mapping[str, str],
    options: ColumnOptions,
    roles: Sequence[str] = ("response", "model", *PROMPT_ROLES, "stop_reason", "reasoning"),
    required: Sequence[str] = ("prompt", "response"),
) -> ResponseColumns:
    """Find the columns of a table of stored responses.

    Args:
        table: The table.
        named: The columns that a person named, by role; under ``response_columns``, with commas
            between them, those with the responses of a model each. Without it that is those that
            are called after a model and a word for a response, as ``llama_response`` and
            ``response_qwen``, where there are two or more and no column has all responses or the
            models.
        options: How that person names columns.
        roles: Which roles to find columns for.
        required: Which roles must have one.
    """
    by_role = {role: name for role, name in named.items() if role != _WIDE}
    models = _models_of_columns(table, named.get(_WIDE), by_role, options)
    if not models:
        columns = columns_by_role(table, roles, by_role, required, options)
        return ResponseColumns(columns, models, options.taken(columns))
    kept = tuple(name for name in table.columns if name not in models)
    rest = [role for role in roles if role not in ("response", "model")]
    needed = [role for role in required if role in rest]
    columns = columns_by_role(replace(table, columns=kept), rest, by_role, needed, options)
    taken = options.taken(columns, models)
    for role in ("model", "response"):
        columns[role] = role if role not in kept else f"({role})"
    return ResponseColumns(columns, models, taken)


def _models_of_columns(
    table: Table, columns: str | None, named: Mapping[str, str], options: ColumnOptions
) -> dict[str, str]:
    apart = [role for role in ("model", "response") if role in named]
    several = options.of("responses") or _WIDE
    if columns is None:
        known = any(columns_for(role, table.columns) for role in ("response", "model"))
        models = {c: model for c in table.columns if (model := model_beside_response(c))}
        return models if not (apart or known) and len(models) == len({*models.values()}) > 1 else {}
    if apart:
        raise DataError(
            f"{table.name}: {options.of('responses') or _WIDE} tells responses and models; leave "
            f"{options.of(apart[0]) or apart[0]} out"
        )
    names = [named_column(table, name.strip(), several) for name in columns.split(",")]
    models = {name: model_beside_response(name) or name for name in names}
    if len({*models.values()}) < len(names):
        raise DataError(
            f"{table.name}: two of the columns {shown(columns)} are of one model; give each once"
        )
    return models


def _model(row: Row, column: str | None) -> str | None:
    if column is None:
        return None
    model = row.text(column)
    if not model:
        raise row.error(column, "the model is empty")
    problem = name_problem(model)
    if problem is not None:
        raise row.error(column, f"{shown(model)} {problem}")
    return model


def name_problem(model: str) -> str | None:
    """Say why a log can't be of a model of this name; None where it can."""
    # Inspect shows the name as Rich markup.
    if not model.isprintable() or escape(model) != model:
        return "contains control characters or markup such as [bold], which no model's name can"
    if len(model.encode()) > _LONGEST_MODEL_NAME:
        return f"is longer than a model's name can be ({_LONGEST_MODEL_NAME} bytes)"
    return None


def _response(row: Row, columns: Mapping[str, str]) -> StoredResponse:
    asked, response = asked_and_answered(row, columns)
    stop, thought = (loggable_cell(row, columns.get(r)) for r in ("stop_reason", "reasoning"))
    return StoredResponse(response, row, asked, stop, thought)


def asked_and_answered(row: Row, columns: Mapping[str, str]) -> tuple[Said, str]:
    """Read what was asked in a row, and the response to it.

    Raises:
        DataError: The row has no prompt, a broken one, or no response where a dialogue holds it.
    """
    said = read_prompt(row, layout_of(columns).texts[0])
    if "response" in columns:
        return said._replace(answer=""), loggable_cell(row, columns["response"])
    if not said.answer:
        problem = "doesn't end with an answer of the model, and the file has no column of responses"
        raise row.error(columns["dialogue"], problem)
    return said._replace(answer=""), loggable(said.answer)


def loggable_cell(row: Row, column: str | None) -> str:
    """Give a cell as it stands, but for what no log can hold: halves of characters and NULs."""
    return "" if column is None else loggable(row.exact_text(column))


def loggable(text: str) -> str:
    """Mark what no log can hold: halves of characters and NULs."""
    return whole(text.replace("\0", "\ufffd"))

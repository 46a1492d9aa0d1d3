"""Files with a column of responses for each model: made into a row for each response."""

from __future__ import annotations

import re
from dataclasses import replace

from or_eval.sources.conventions import columns_for, no_column, response_words
from or_eval.sources.errors import DataError, shown
from or_eval.sources.tables import Row, Table

MODEL, RESPONSE = "response columns", "(response)"
"""Columns of the table that comes of it; no file's columns are called so."""


def one_response_a_row(table: Table, named: str | None) -> Table | None:
    """Give each model's response a row of its own, with the model's name in :data:`MODEL`.

    Args:
        table: The file.
        named: The columns with responses, with commas between them. None: those that are called
            after a model and a word for a response, as ``llama_response`` and ``response_qwen``,
            where there are two or more and no column has all responses or the models.

    Returns:
        The table; None for a file with a row for each response.

    Raises:
        DataError: A column that was named isn't there, or two are of one model.
    """
    columns = _named(table, named) if named is not None else _found(table)
    if not columns:
        return None
    rows = [
        Row(row.number, shared | {MODEL: model, RESPONSE: row.cells.get(column)})
        for row in table.rows
        for shared in [{name: row.cells[name] for name in row.cells if name not in columns}]
        for column, model in columns.items()
    ]
    kept = [column for column in table.columns if column not in columns]
    return replace(table, rows=rows, columns=(*kept, MODEL, RESPONSE))


def _named(table: Table, named: str) -> dict[str, str]:
    """Give the model of each column that was named."""
    columns = [name.strip() for name in named.split(",")]
    if missing := next((name for name in columns if name not in table.columns), None):
        raise no_column(table, missing)
    models = {column: _model(column) or column for column in columns}
    if len(set(models.values())) < len(columns):
        raise DataError(
            f"{table.name}: two of the columns {shown(named)} are of one model; give each once"
        )
    return models


def _found(table: Table) -> dict[str, str]:
    if columns_for("response", table.columns) or columns_for("model", table.columns):
        return {}
    models = {column: model for column in table.columns if (model := _model(column))}
    return models if len(models) > 1 and len(set(models.values())) == len(models) else {}


def _model(column: str) -> str | None:
    """Give the name that stands beside a word for a response in a column's name."""
    words = "|".join(response_words())
    found = re.fullmatch(rf"(?:{words})[\W_]+(.+)|(.+?)[\W_]+(?:{words})", column.strip(), re.I)
    return (found[1] or found[2]) if found is not None else None

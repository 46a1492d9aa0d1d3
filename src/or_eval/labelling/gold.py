"""Known cases, hidden among the tasks, and how annotators did on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from or_eval.labelling.tasks import Task, read_lines, task_key
from or_eval.labelling.wording import Asks, wording
from or_eval.scorers.visible_text import visible_text
from or_eval.sources.columns import columns_for
from or_eval.sources.errors import DataError, shown
from or_eval.sources.files import read_table

GOLD = "gold.jsonl"
ANSWER = {"responses": "human_label", "prompts": "harm"}
"""Column that says what a known case is, as labels have it."""


class GoldCase(NamedTuple):
    """A case whose answer is known.

    Attributes:
        task: What annotators see of it.
        answer: What it is.
    """

    task: Task
    answer: str


def read_known_cases(path: Path, asks: Asks) -> list[GoldCase]:
    """Read known cases: rows with prompt, response and ``human_label``, or prompt and ``harm``.

    The labels of an earlier round are such a file. Rows without an answer are left out.

    Args:
        path: A csv, tsv, jsonl, json or parquet file.
        asks: What tasks ask about.

    Raises:
        DataError: A column is missing, or an answer is none of the choices.
    """
    table = read_table(path)
    choices = wording("en").labels if asks == "responses" else wording("en").harms
    wanted = ["prompt", "response"] if asks == "responses" else ["prompt"]
    columns = {role: next(iter(columns_for(role, table.columns)), None) for role in wanted}
    columns[ANSWER[asks]] = ANSWER[asks] if ANSWER[asks] in table.columns else None
    if missing := [role for role, column in columns.items() if column is None]:
        raise DataError(f"{table.name}: known cases need a column {missing[0]}")
    cases = {}
    for row in table.rows:
        prompt, *response, answer = (
            row.text(column) for column in columns.values() if column is not None
        )
        if answer in choices:
            texts = [visible_text(text).strip() for text in (prompt, *response)]
            task = Task(task_key("gold", *texts), *texts)
            cases[task.key] = GoldCase(task, answer)
        elif answer:
            raise row.error(ANSWER[asks], f"{shown(answer)} is none of {', '.join(choices)}")
    if not cases:
        raise DataError(f"{table.name}: no row has an answer in {ANSWER[asks]}")
    return list(cases.values())


def write_gold(folder: Path, cases: list[GoldCase]) -> Path:
    """Write the known cases of a round, for nobody who labels it."""
    path = folder / GOLD
    rows = [{**case.task._asdict(), "answer": case.answer} for case in cases]
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), "utf-8")
    return path


def read_gold(folder: Path) -> list[GoldCase]:
    """Give the known cases of a round, if it has any."""
    return read_lines(folder / GOLD, _case)


def _case(row: dict[str, Any]) -> GoldCase:
    answer = row.pop("answer")
    return GoldCase(Task(**row), answer)

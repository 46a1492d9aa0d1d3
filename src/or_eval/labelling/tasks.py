"""What an annotator is asked: a request and a response, under a key that tells nothing else.

Known cases, whose answers tell how annotators do, are tasks like the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from or_eval.analysis.samples import read_details
from or_eval.labelling.sampling import digest
from or_eval.labelling.wording import Asks, wording
from or_eval.scorers.visible_text import blank_reasoning, visible_text
from or_eval.sources.columns import columns_by_role
from or_eval.sources.errors import DataError, shown
from or_eval.sources.files import read_table

ANSWER = {"responses": "human_label", "prompts": "harm"}
"""Column of labels that says what a response, or a request, is."""
KEPT = {
    "responses": (
        *("key", "id", "model", "epoch", "stratum", "stratum_size", "probability"),
        *("response_class", "certain", "label", "language", "category", "prompt", "response"),
    ),
    "prompts": (
        *("key", "id", "stratum", "stratum_size", "probability"),
        *("label", "language", "category", "method", "prompt"),
    ),
}
"""What is kept of each sampled row; annotators see the key, the prompt and the response alone."""
_GOLD = "gold.jsonl"
_CUT_FROM = 30_000
"""Texts of so many characters may come back cut: a spreadsheet's cell holds few more."""

Row = TypeVar("Row")


class Task(NamedTuple):
    """One question to annotators.

    Attributes:
        key: Tells the response; nothing in it tells the model or the verdict.
        prompt: The request as it was asked.
        response: What the model said, without its reasoning; empty where the request is all that
            is asked about.
    """

    key: str
    prompt: str
    response: str = ""


class GoldCase(NamedTuple):
    """A case whose answer is known."""

    task: Task
    answer: str


def task_rows(drawn: pd.DataFrame, asks: Asks) -> pd.DataFrame:
    """Give what is kept of sampled rows; of responses with their texts, read from the logs.

    The order is that of the keys, so that neither models nor categories stand together.
    """
    if asks == "responses":
        details = read_details(drawn)
        said = [visible_text(blank_reasoning(t).text).strip() for t in details["response"]]
        rows = drawn.assign(prompt=details["prompt"].map(visible_text), response=said)
        about = ["id", "model", "epoch", "response"]
    else:
        rows = drawn.assign(prompt=drawn["prompt"].map(visible_text))
        about = ["id", "prompt"]
    rows["key"] = [_key(*parts) for parts in zip(*(rows[name] for name in about), strict=True)]
    return rows.sort_values("key")[list(KEPT[asks])].reset_index(drop=True)


def tasks_of(rows: pd.DataFrame) -> list[Task]:
    """Give the questions about sampled rows."""
    columns = (rows[name].astype(str) for name in Task._fields if name in rows)
    return [Task(*texts) for texts in zip(*columns, strict=True)]


def check_task(asked: Task | None, key: str, prompt: str, response: str, where: str) -> None:
    """Make sure that what came back is about what was asked.

    White space is left aside, and so is what a spreadsheet's cell has no room for.

    Raises:
        DataError: There is no such task, or its texts were changed.
    """
    if asked is None:
        raise DataError(f"{where}: {key[:40]!r} isn't a task of this folder; nothing was imported")
    texts = ("request", asked.prompt, prompt), ("response", asked.response, response)
    for name, sent, came in texts:
        whole, there = ("".join(text.replace("\ufffd", "").split()) for text in (sent, came))
        if there != whole and not (len(came) >= _CUT_FROM and whole.startswith(there)):
            raise DataError(
                f"{where}: the {name} is not the one that was asked about; undo the change, or "
                "take this row's answer out. Nothing was imported"
            )


def read_known_cases(path: Path, asks: Asks) -> list[GoldCase]:
    """Read known cases: rows with prompt, response and ``human_label``, or prompt and ``harm``.

    The labels of an earlier round are such a file. Rows without an answer are left out.

    Raises:
        DataError: A column is missing, or an answer is none of the choices.
    """
    table = read_table(path)
    choices = wording("en").labels if asks == "responses" else wording("en").harms
    wanted = ["prompt", "response"] if asks == "responses" else ["prompt"]
    wanted.append(ANSWER[asks])
    found = columns_by_role(table, wanted, {}, wanted)
    if "dialogue" in found:
        raise DataError(f"{table.name}: known cases are single prompts, and it holds dialogues")
    columns = [found[role] for role in wanted]
    cases = {}
    for row in table.rows:
        prompt, *response, answer = (row.text(column) for column in columns)
        if answer in choices:
            texts = [visible_text(text).strip() for text in (prompt, *response)]
            task = Task(_key("gold", *texts), *texts)
            cases[task.key] = GoldCase(task, answer)
        elif answer:
            raise row.error(ANSWER[asks], f"{shown(answer)} is none of {', '.join(choices)}")
    if not cases:
        raise DataError(f"{table.name}: no row has an answer in {ANSWER[asks]}")
    return list(cases.values())


def write_gold(folder: Path, cases: list[GoldCase]) -> list[Path]:
    """Write the known cases of a round, for nobody who labels it; remove those of another."""
    path = folder / _GOLD
    path.unlink(missing_ok=True)
    rows = [{**case.task._asdict(), "answer": case.answer} for case in cases]
    if rows:
        path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), "utf-8")
    return [path] if rows else []


def read_gold(folder: Path) -> list[GoldCase]:
    """Give the known cases of a round, if it has any."""

    def case(row: dict[str, Any]) -> GoldCase:
        answer = row.pop("answer")
        return GoldCase(Task(**row), answer)

    return read_lines(folder / _GOLD, case)


def read_lines(path: Path, made: Callable[[dict[str, Any]], Row]) -> list[Row]:
    """Give what stands on the lines of a file of ours, if it is there.

    Raises:
        DataError: A line was changed so that it can't be read.
    """
    found = []
    for number, line in enumerate(path.read_bytes().splitlines() if path.exists() else (), start=1):
        try:
            found.append(made(json.loads(line)))
        except (ValueError, TypeError, KeyError, AttributeError, DataError) as error:
            raise DataError(
                f"{path}, line {number}: was changed by hand ({error}); fix or remove it"
            ) from None
    return found


def _key(*parts: object) -> str:
    return digest(*parts)[:16]

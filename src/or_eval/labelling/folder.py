"""The folder that a round of labelling lives in: written by an export, filled by imports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from or_eval.labelling import label_studio
from or_eval.labelling.history import LABELS, SAMPLE, labels, read_history
from or_eval.labelling.tasks import tasks_of
from or_eval.labelling.wording import (
    Wording,
    WordingLanguage,
    WorkedCase,
    wording,
    worked_cases,
)
from or_eval.sources.errors import DataError

TASKS, INTERFACE, GUIDE = "tasks.json", "interface.xml", "guide.md"


def write_tasks(
    folder: Path, rows: pd.DataFrame, annotators: Sequence[str], language: WordingLanguage
) -> list[Path]:
    """Write all that annotators need; the sample itself stays with who asked.

    Args:
        folder: New, or one that no annotation was imported into.
        rows: Rows of :func:`or_eval.labelling.tasks.sample_rows`.
        annotators: A spreadsheet for each.
        language: Of the interface.

    Raises:
        DataError: The folder has annotations: its tasks must stay as they are.
    """
    if read_history(folder):
        raise DataError(f"{folder}: has annotations already; export into another folder")
    folder.mkdir(parents=True, exist_ok=True)
    words, tasks = wording(language), tasks_of(rows)
    rows.to_json(folder / SAMPLE, orient="records", lines=True, force_ascii=False)
    texts = {
        TASKS: label_studio.tasks_json(tasks),
        INTERFACE: label_studio.interface(words),
        GUIDE: _guide(words, worked_cases(language)),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    sheets = [folder / f"{annotator}.xlsx" for annotator in annotators]
    if sheets:
        from or_eval.labelling.spreadsheet import write_spreadsheet

        for sheet in sheets:
            write_spreadsheet(sheet, tasks, words)
    return [folder / SAMPLE, *(folder / name for name in texts), *sheets]


def write_labels(folder: Path) -> Path:
    """Write the labels that the history amounts to, as ``--labels`` elsewhere reads them."""
    path = folder / LABELS
    labels(folder).to_json(path, orient="records", lines=True, force_ascii=False)
    return path


def _guide(words: Wording, cases: Sequence[WorkedCase]) -> str:
    parts = [f"# {words.title}\n", f"{words.intro}\n", f"{words.unsure}\n"]
    for title, choices in (
        (words.label, words.labels),
        (words.reason, words.reasons),
        (words.harm, words.harms),
    ):
        parts.append(f"## {title}\n")
        parts += [f"- **{choice.name}**: {choice.means}" for choice in choices.values()]
        parts.append("")
    parts.append(f"## {words.cases}\n")
    for number, case in enumerate(cases, start=1):
        parts.append(f"{number}. {words.prompt}: {case.prompt}  ")
        parts.append(f"   {words.response}: {case.response}  ")
        parts.append(f"   **{words.labels[case.label].name}**. {case.why}")
    return "\n".join(parts) + "\n"

"""The folder that a round of labelling lives in: written by an export, filled by imports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from or_eval.analysis.human_labels import LABELS_FILE
from or_eval.labelling.labels import SAMPLE, disputed, read_sample
from or_eval.labelling.rounds import ROUND, Round, home, next_adjudication, read_round
from or_eval.labelling.studio import interface
from or_eval.labelling.tasks import GoldCase, Task, read_gold, tasks_of, write_gold
from or_eval.labelling.wording import wording, worked_cases
from or_eval.schema import ResponseClass
from or_eval.sources.errors import DataError


def write_round(
    folder: Path, rows: pd.DataFrame, given: Round, gold: Sequence[GoldCase] = ()
) -> list[Path]:
    """Write all that annotators need, and give the files; each annotator gets a spreadsheet.

    The sample (:func:`or_eval.labelling.tasks.task_rows`) and the known cases stay with who asked.

    Raises:
        DataError: The folder has tasks: somebody may be at work on them.
    """
    if (folder / ROUND).exists():
        raise DataError(f"{folder}: has tasks already; export into another folder")
    folder.mkdir(parents=True, exist_ok=True)
    words = wording(given.language)
    rows.to_json(folder / SAMPLE, orient="records", lines=True, force_ascii=False)
    written = [folder / SAMPLE, *write_gold(folder, list(gold))]
    tasks = tasks_by_key(folder)
    texts = {
        "tasks.json": interface.tasks_json([tasks[key] for key in sorted(tasks)]),
        "interface.xml": interface.interface(words, given.asks),
        "guide.md": guide(given),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        written.append(folder / name)
    for annotator, keys in given.annotators.items():
        from or_eval.labelling.spreadsheet import write_spreadsheet

        sheet = folder / f"{annotator}.xlsx"
        write_spreadsheet(sheet, [tasks[key] for key in keys], words, given.asks)
        written.append(sheet)
    # Last, since it says that the tasks are there: an export that was stopped can be made again.
    (folder / ROUND).write_text(given.model_dump_json(indent=1) + "\n", "utf-8")
    return [*written, folder / ROUND]


def tasks_by_key(folder: Path) -> dict[str, Task]:
    """Give the tasks of a folder, known cases among them."""
    asked = tasks_of(read_sample(folder))
    return {task.key: task for task in [*asked, *(case.task for case in read_gold(folder))]}


def write_adjudication(folder: Path, annotators: Sequence[str]) -> tuple[Path, int]:
    """Write what annotators differ on as tasks of their own, in a folder within.

    Those who decide see what the others saw, and not what they said.

    Returns:
        The folder, and how many tasks it has.

    Raises:
        DataError: There is nothing to decide.
    """
    place, given = home(folder), read_round(folder)
    keys = disputed(place)
    if not keys:
        raise DataError(f"{folder}: nothing to decide: no task has answers that differ")
    sample = read_sample(place)
    rows = sample[sample["key"].isin(keys)].sort_values("key")
    out = next_adjudication(place)
    asked = {name: list(rows["key"]) for name in annotators}
    write_round(out, rows, given.model_copy(update={"annotators": asked}))
    return out, len(rows)


def write_labels(folder: Path, found: pd.DataFrame) -> Path:
    """Write the labels that the history amounts to, as ``--labels`` elsewhere reads them.

    Those of responses also as scores that Inspect's ``precomputed_scores`` puts into a log: a file
    for each model, since that scorer knows none.
    """
    path = folder / LABELS_FILE
    found.to_json(path, orient="records", lines=True, force_ascii=False)
    if "human_label" in found:
        settled = found[found["human_label"].notna()]
        scores = settled[["id", "epoch"]].assign(
            value=(settled["human_label"] != ResponseClass.DIRECT_ANSWER).astype("float64"),
            answer=settled["human_label"],
        )
        (folder / "scores").mkdir(exist_ok=True)
        names: set[str] = set()
        for model, rows in scores.groupby(settled["model"]):
            name = re.sub(r"[^\w.-]+", "-", str(model)).strip(".")
            # Models may differ in what a file's name can't hold.
            while name.casefold() in names:
                name += "-2"
            names.add(name.casefold())
            scored = folder / "scores" / f"{name}.jsonl"
            rows.to_json(scored, orient="records", lines=True, force_ascii=False)
    return path


def guide(given: Round) -> str:
    """Give what annotators should read first, as Markdown."""
    words = wording(given.language)
    about_responses = given.asks == "responses"
    lead = [words.title, words.intro, words.unsure] if about_responses else words.about_prompts
    sections = [(words.harm, words.harms)]
    if about_responses:
        sections = [(words.label, words.labels), (words.reason, words.reasons), *sections]
    parts = [f"# {lead[0]}\n", *(f"{text}\n" for text in lead[1:])]
    for title, choices in sections:
        parts.append(f"## {title}\n")
        parts += [f"- **{choice.name}**: {choice.means}" for choice in choices.values()]
        parts.append("")
    parts.append(f"## {words.cases}\n")
    answers = words.labels if about_responses else words.harms
    for number, case in enumerate(worked_cases(given.language, given.asks), start=1):
        parts.append(f"{number}. {words.prompt}: {case.prompt}  ")
        if case.response:
            parts.append(f"   {words.response}: {case.response}  ")
        parts.append(f"   **{answers[case.answer].name}**. {case.why}")
    return "\n".join(parts) + "\n"

"""The labels that a folder's history amounts to, and how annotators did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from or_eval.analysis.human_labels import majority
from or_eval.intervals import wilson
from or_eval.labelling.gold import ANSWER, read_gold
from or_eval.labelling.history import SKIP, Annotation, read_history
from or_eval.labelling.rounds import later_rounds, read_round
from or_eval.sources.errors import DataError

SAMPLE, LABELS = "sample.jsonl", "labels.jsonl"
BY = "by "
"""What the column of an annotator's answers starts with, before the annotator's name."""

_TEXTS = ("key", "id", "model", "stratum", "prompt", "response")
_KEPT = ("id", "model", "epoch", "probability", "prompt", "response")


def read_sample(folder: Path) -> pd.DataFrame:
    """Give what a folder's tasks ask about, those of later batches among them.

    Each row's ``probability`` is that of all batches together: within a stratum each row was as
    likely as another to be in one of them.

    Raises:
        DataError: The folder has no sample, or one that can't be read.
    """
    parts = [_sample(part) for part in (folder, *later_rounds(folder, "batch"))]
    sample = pd.concat(parts, ignore_index=True).drop_duplicates("key")
    drawn = sample.groupby("stratum")["key"].transform("size")
    return sample.assign(probability=(drawn / sample["stratum_size"]).clip(upper=1.0))


def labels(folder: Path) -> pd.DataFrame:
    """Give the labels that a folder's history amounts to: a row for each task that was answered.

    What somebody said last of a task counts. The label is what most annotators say; where they are
    split evenly there is none. What an adjudication says counts before all of it.

    Returns:
        ``id``, ``model``, ``epoch``, ``probability``, ``prompt`` and ``response`` of the sample,
        those there are; ``human_label`` (missing where split), a column for each annotator,
        ``reason``, ``harm``, ``annotators`` (how many), ``adjudicated_by``. Where requests were
        asked about, ``harm`` takes the place of ``human_label`` and ``reason``.
    """
    asked = read_round(folder)
    asks, main = asked.asks, asked.question
    sample = read_sample(folder).set_index("key")
    said = {key: said for key, said in _last(folder, main).items() if key in sample.index}
    decided = _decisions(folder, main)
    names = sorted({name for given in said.values() for name in given})
    kept = [name for name in _KEPT if name in sample]
    rows = []
    for key in dict.fromkeys([*said, *decided]):
        given, decision = said.get(key, {}), decided.get(key)
        of = [decision] if decision is not None else list(given.values())
        row: dict[str, Any] = dict(zip(kept, sample.loc[key, kept], strict=True))
        row[ANSWER[asks]] = majority([getattr(one, main) for one in of])
        row |= {f"{BY}{name}": getattr(given[name], main) for name in names if name in given}
        if asks == "responses":
            row["reason"] = majority([one.reason for one in of])
            row["harm"] = majority([one.harm for one in of])
        row["annotators"] = len(given)
        row["adjudicated_by"] = None if decision is None else decision.annotator
        rows.append(row)
    return pd.DataFrame(rows)


def disputed(folder: Path) -> list[str]:
    """Give the keys of tasks on which annotators differ and that nobody has decided."""
    main = read_round(folder).question
    decided, sampled = _decisions(folder, main), set(read_sample(folder)["key"])
    return [
        key
        for key, given in _last(folder, main).items()
        if key in sampled - decided.keys()
        and len({getattr(one, main) for one in given.values()}) > 1
    ]


def progress(folder: Path) -> pd.DataFrame:
    """Tell how far annotators are, and how they did on known cases.

    Returns:
        A row for each annotator: ``annotator``, ``tasks`` (given), ``done``, ``gold`` (known cases
        answered), ``gold_right``, and their share with its bounds: ``right``, ``lower``,
        ``upper``.
    """
    rows = []
    parts = [folder, *later_rounds(folder, "batch")]
    main = read_round(folder).question
    known = {case.task.key: case.answer for part in parts for case in read_gold(part)}
    given = [read_round(part).annotators for part in parts]
    last = _last(folder, main, skipped=True)
    names = {name: None for of in given for name in of}
    names |= {name: None for of in last.values() for name in of}
    for name in names:
        tasks = sum(len(of.get(name, ())) for of in given)
        done = {key: getattr(of[name], main) for key, of in last.items() if name in of}
        right = [known[key] == answer for key, answer in done.items() if key in known]
        share = wilson(sum(right) / len(right) if right else float("nan"), len(right))
        rows.append((name, tasks, len(done), len(right), sum(right), *share))
    columns = ["annotator", "tasks", "done", "gold", "gold_right", "right", "lower", "upper"]
    return pd.DataFrame(rows, columns=columns)


def _last(folder: Path, main: str, *, skipped: bool = False) -> dict[str, dict[str, Annotation]]:
    """Give what each annotator said last, by task and annotator."""
    last: dict[str, dict[str, Annotation]] = {}
    for part in (folder, *later_rounds(folder, "batch")):
        for one in read_history(part):
            of_task = last.setdefault(one.key, {})
            # Exports may be imported in any order: the tool's own time counts where there is one.
            earlier = of_task.get(one.annotator)
            if earlier is None or not one.at or one.at >= earlier.at:
                of_task[one.annotator] = one
    return {
        key: kept
        for key, given in last.items()
        if (kept := {name: one for name, one in given.items() if _answers(one, main, skipped)})
    }


def _decisions(folder: Path, main: str) -> dict[str, Annotation]:
    return {
        one.key: one
        for part in later_rounds(folder, "adjudication")
        for one in read_history(part)
        if _answers(one, main)
    }


def _answers(annotation: Annotation, main: str, skipped: bool = False) -> bool:
    return getattr(annotation, main) not in ((None,) if skipped else (None, SKIP))


def _sample(folder: Path) -> pd.DataFrame:
    path = folder / SAMPLE
    if not path.exists():
        raise DataError(f"{folder}: has no {SAMPLE}; make the tasks with or-eval label export")
    try:
        sample = pd.read_json(path, lines=True, dtype=dict.fromkeys(_TEXTS, str))
    except ValueError as error:
        raise DataError(f"{path}: is not as it was written ({error})") from None
    if missing := {"key", "id", "stratum", "stratum_size", "prompt"} - set(sample.columns):
        raise DataError(f"{path}: is not as it was written (no column {min(missing)})")
    return sample

"""All that annotators ever said, in a file that only grows; what it amounts to; how they did."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from or_eval.analysis.human_labels import majority
from or_eval.intervals import wilson
from or_eval.labelling.rounds import later_rounds, read_round
from or_eval.labelling.tasks import ANSWER, read_gold, read_lines
from or_eval.labelling.wording import wording
from or_eval.sources.errors import DataError, shown

SAMPLE = "sample.jsonl"
_HISTORY, _SKIP = "history.jsonl", "skip"
_BY = "by "
"""What the column of an annotator's answers starts with, before the annotator's name."""

_TEXTS = ("key", "id", "model", "stratum", "prompt", "response")
_KEPT = ("id", "model", "epoch", "probability", "prompt", "response")


class Annotation(NamedTuple):
    """What one annotator said of one task.

    Attributes:
        key: The task's key.
        annotator: Who.
        label: The response's class, ``skip``, or None.
        reason: The ground of a refusal.
        harm: What the request is.
        note: The annotator's words.
        at: When, as the tool wrote it; empty where it doesn't say.
        origin: File, and row or task, that it came in.
        imported: When it was imported, in UTC; empty before that.
    """

    key: str
    annotator: str
    label: str | None
    reason: str | None
    harm: str | None
    note: str
    at: str
    origin: str
    imported: str = ""

    @property
    def said(self) -> tuple[str | None, ...]:
        """What was said, without where it came from."""
        return self[: self._fields.index("origin")]


def append(folder: Path, found: list[Annotation]) -> tuple[int, int]:
    """Add annotations to a folder's history; those it has are left out, and those without answer.

    Returns:
        How many were new, and how many it had.
    """
    given = [one for one in found if one.label is not None or one.harm is not None]
    new = _not_known(given, read_history(folder))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    rows = [json.dumps(one._replace(imported=now)._asdict(), ensure_ascii=False) for one in new]
    with (folder / _HISTORY).open("ab") as file:
        file.write("".join(row + "\n" for row in rows).encode())
    return len(new), len(given) - len(new)


def _not_known(given: list[Annotation], known: list[Annotation]) -> list[Annotation]:
    """Leave out what a history has.

    A spreadsheet doesn't tell when a cell was changed: what it says is known where that is what its
    annotator said last, so that taking something back counts as well.
    """
    said = {annotation.said for annotation in known}
    last = {(one.key, one.annotator): one.said for one in known}
    new = []
    for one in given:
        whose = (one.key, one.annotator)
        if one.said not in said if one.at else one.said != last.get(whose):
            new.append(one)
        said.add(one.said)
        last[whose] = one.said
    return new


def read_history(folder: Path) -> list[Annotation]:
    """Give all annotations of a folder, oldest first.

    Raises:
        DataError: A line was changed so that it can't be read.
    """
    return read_lines(folder / _HISTORY, lambda row: checked(Annotation(**row)))


def checked(annotation: Annotation) -> Annotation:
    """Give an annotation whose words are known.

    Raises:
        DataError: It holds one that isn't.
    """
    words = wording("en")
    choices = {"label": words.labels, "reason": words.reasons, "harm": words.harms}
    for field, allowed in choices.items():
        value = getattr(annotation, field)
        if value is not None and value not in allowed:
            raise DataError(
                f"{annotation.origin}: {shown(value)} isn't a valid {field} (by "
                f"{shown(annotation.annotator)}); nothing was imported"
            )
    return annotation


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
        row |= {f"{_BY}{name}": getattr(given[name], main) for name in names if name in given}
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
    return getattr(annotation, main) not in ((None,) if skipped else (None, _SKIP))


def _sample(folder: Path) -> pd.DataFrame:
    path = folder / SAMPLE
    if not path.exists():
        raise DataError(f"{folder}: has no {SAMPLE}; make the tasks with or-eval label export")
    try:
        sample = pd.read_json(path, lines=True, dtype=dict.fromkeys(_TEXTS, str))
    except ValueError as error:
        raise DataError(f"{path}: was changed by hand ({error})") from None
    if missing := {"key", "id", "stratum", "stratum_size", "prompt"} - set(sample.columns):
        raise DataError(f"{path}: was changed by hand (no column {min(missing)})")
    return sample

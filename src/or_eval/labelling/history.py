"""All that annotators ever said, in a file that only grows, and the labels that follow from it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from or_eval.labelling.wording import wording
from or_eval.sources.errors import DataError, shown

HISTORY, SAMPLE, LABELS = "history.jsonl", "sample.jsonl", "labels.jsonl"
SKIP = "skip"


class Annotation(NamedTuple):
    """What one annotator said of one response.

    Attributes:
        key: The task's key.
        annotator: Who.
        label: The response's class, ``skip``, or None.
        reason: The ground of a refusal.
        harm: What the request is.
        note: The annotator's words.
        at: When, as the tool wrote it; empty where it doesn't say.
        origin: Name of the file it came in.
    """

    key: str
    annotator: str
    label: str | None
    reason: str | None
    harm: str | None
    note: str
    at: str
    origin: str

    @property
    def said(self) -> tuple[str | None, ...]:
        """What was said, without where it came from."""
        return self[:-1]


def append(folder: Path, found: Iterable[Annotation]) -> tuple[int, int]:
    """Add annotations to a folder's history; those it has are left out.

    Returns:
        How many were new, and how many it had.

    Raises:
        DataError: One is about no task of the folder, or holds a word that isn't known; nothing
            is added then.
    """
    known_keys = set(read_sample(folder)["key"])
    earlier = {annotation.said for annotation in read_history(folder)}
    given = [annotation for annotation in found if annotation.label is not None]
    for annotation in given:
        _check(annotation, known_keys)
    new = list({a.said: a for a in given if a.said not in earlier}.values())
    with (folder / HISTORY).open("a", encoding="utf-8") as file:
        for annotation in new:
            file.write(json.dumps(annotation._asdict(), ensure_ascii=False) + "\n")
    return len(new), len(given) - len(new)


def read_history(folder: Path) -> list[Annotation]:
    """Give all annotations of a folder, oldest first."""
    path = folder / HISTORY
    if not path.exists():
        return []
    lines = path.read_text("utf-8").splitlines()
    return [Annotation(**json.loads(line)) for line in lines]


def read_sample(folder: Path) -> pd.DataFrame:
    """Give the sample that a folder's tasks ask about.

    Raises:
        DataError: The folder has none.
    """
    path = folder / SAMPLE
    if not path.exists():
        raise DataError(f"{folder}: has no {SAMPLE}; make the tasks with or-eval label export")
    return pd.read_json(path, lines=True, dtype={"key": str, "id": str, "model": str})


def labels(folder: Path) -> pd.DataFrame:
    """Give the labels that a folder's history amounts to: a row for each response labelled.

    What somebody said last of a response counts. The label is what most annotators say; where
    they are split evenly there is none, and the response waits for a decision.

    Returns:
        ``id``, ``model``, ``epoch``, ``probability``, ``human_label`` (missing where split), a
        column for each annotator, ``reason``, ``harm``, ``annotators`` (how many).
    """
    last = {(a.key, a.annotator): a for a in read_history(folder) if a.label != SKIP}
    sample = read_sample(folder).set_index("key")
    names = sorted({annotator for _, annotator in last})
    rows = []
    for key in dict.fromkeys(key for key, _ in last):
        given = {name: last[key, name] for name in names if (key, name) in last}
        row = sample.loc[key, ["id", "model", "epoch", "probability"]].to_dict()
        row["human_label"] = _majority([a.label for a in given.values()])
        row |= {f"by {name}": a.label for name, a in given.items()}
        row["reason"] = _majority([a.reason for a in given.values()])
        row["harm"] = _majority([a.harm for a in given.values()])
        rows.append({**row, "annotators": len(given)})
    return pd.DataFrame(rows)


def _check(annotation: Annotation, keys: set[str]) -> None:
    words = wording("en")
    wrong = {
        "key": annotation.key not in keys,
        "label": annotation.label not in words.labels,
        "reason": annotation.reason not in (None, *words.reasons),
        "harm": annotation.harm not in (None, *words.harms),
    }
    for field, is_wrong in wrong.items():
        if is_wrong:
            value = shown(getattr(annotation, field))
            what = "no task of this folder" if field == "key" else f"no {field}"
            raise DataError(
                f"{annotation.origin}: {value} is {what} (by {shown(annotation.annotator)}, "
                f"key {shown(annotation.key)}); nothing was imported"
            )


def _majority(said: Sequence[str | None]) -> str | None:
    given = [word for word in said if word is not None]
    best = max(sorted(set(given)), key=given.count, default=None)
    return best if best is not None and 2 * given.count(best) > len(given) else None

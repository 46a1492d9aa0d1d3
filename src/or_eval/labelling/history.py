"""All that annotators ever said, in a file that only grows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from or_eval.labelling.tasks import read_lines
from or_eval.labelling.wording import wording
from or_eval.sources.errors import DataError, shown

HISTORY = "history.jsonl"
SKIP = "skip"


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


def checked(found: Iterable[Annotation]) -> list[Annotation]:
    """Read annotations to their end.

    Raises:
        DataError: One holds a word that isn't known.
    """
    return list(map(_checked, found))


def append(folder: Path, found: list[Annotation]) -> tuple[int, int]:
    """Add annotations to a folder's history; those it has are left out, and those without answer.

    Args:
        folder: The folder.
        found: Of :func:`checked`.

    Returns:
        How many were new, and how many it had.
    """
    given = [one for one in found if one.label is not None or one.harm is not None]
    new = _not_known(given, read_history(folder))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    rows = [json.dumps(one._replace(imported=now)._asdict(), ensure_ascii=False) for one in new]
    with (folder / HISTORY).open("ab") as file:
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
    return read_lines(folder / HISTORY, lambda row: _checked(Annotation(**row)))


def _checked(annotation: Annotation) -> Annotation:
    words = wording("en")
    choices = {"label": words.labels, "reason": words.reasons, "harm": words.harms}
    for field, allowed in choices.items():
        value = getattr(annotation, field)
        if value is not None and value not in allowed:
            raise DataError(
                f"{annotation.origin}: {shown(value)} is no {field} (by "
                f"{shown(annotation.annotator)}); nothing was imported"
            )
    return annotation

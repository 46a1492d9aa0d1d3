"""One round of labelling: what is asked, in which language, and who gets which tasks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from or_eval.labelling.sampling import digest
from or_eval.labelling.wording import Asks, WordingLanguage
from or_eval.sources.errors import DataError

ROUND = "round.json"
_LATER = re.compile(r"(batch|adjudication)-(\d+)")


class Round(BaseModel):
    """What a folder's tasks ask, and of whom.

    Attributes:
        asks: About what.
        language: Of all that annotators read.
        annotators: The keys of each one's tasks, in the order they are shown in.
        overlap: Share of the tasks that two annotators got; None where all got all.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    asks: Asks
    language: WordingLanguage
    annotators: dict[str, list[str]]
    overlap: float | None = None

    @property
    def question(self) -> Literal["label", "harm"]:
        """Which part of an annotation answers what is asked."""
        return "label" if self.asks == "responses" else "harm"


def read_round(folder: Path) -> Round:
    """Give what a folder's tasks ask.

    Raises:
        DataError: It holds none, or the file was changed.
    """
    path = folder / ROUND
    if not path.exists():
        raise DataError(f"{folder}: has no {ROUND}; make the tasks with or-eval label export")
    try:
        return Round.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise DataError(f"{path}: was changed by hand ({error.errors()[0]['msg']})") from None


def assign(
    keys: Sequence[str], gold: Sequence[str], annotators: Sequence[str], overlap: float | None
) -> dict[str, list[str]]:
    """Give tasks to annotators.

    Which tasks two annotators get, and in which order somebody sees tasks, follows from digests of
    their keys: neither tells anything of a task.

    Args:
        keys: The tasks.
        gold: Known cases, which everybody gets, mixed in.
        annotators: Who.
        overlap: Share of the tasks that two annotators get; one gets each of the others. All get
            all without it.
    """
    given: dict[str, list[str]] = {name: list(gold) for name in annotators}
    in_turn = sorted(keys, key=lambda key: digest("whom", key))
    twice = len(keys) if overlap is None else round(overlap * len(keys))
    for place, key in enumerate(in_turn):
        whom = len(annotators) if overlap is None else 1 + (place < twice)
        for step in range(whom):
            given[annotators[(place + step) % len(annotators)]].append(key)
    return {
        name: sorted(tasks, key=lambda key, name=name: digest(name, key))  # type: ignore[misc]
        for name, tasks in given.items()
    }


def later_rounds(folder: Path, kind: Literal["batch", "adjudication"]) -> list[Path]:
    """Give the folders of later batches, or of adjudications, that lie in a folder; by number."""
    named = ((_LATER.fullmatch(path.name), path) for path in folder.iterdir() if path.is_dir())
    found = {int(name[2]): path for name, path in named if name and name[1] == kind}
    return [found[number] for number in sorted(found)]


def next_adjudication(folder: Path) -> Path:
    """Give the folder that the next adjudication lives in."""
    names = [path.name for path in later_rounds(folder, "adjudication")] or ["adjudication-0"]
    return folder / f"adjudication-{int(names[-1].rpartition('-')[2]) + 1}"


def home(folder: Path) -> Path:
    """Give the folder that a round's labels belong to: its own, or the one it lies in."""
    place = folder.resolve()
    later = _LATER.fullmatch(place.name) is not None
    return place.parent if later and (place.parent / ROUND).exists() else folder

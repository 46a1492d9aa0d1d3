"""Finding Inspect logs and reading what stands at their head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import PurePath
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from inspect_ai.log import EvalLog, EvalLogInfo, list_eval_logs, read_eval_log

from or_eval.models.replay import PROVIDER, REPLAY_TASK
from or_eval.sources.errors import DataError

FRAMING = "framing"
"""What a log's samples differ in where each prompt was set into several contexts."""

_REPLAYED = f"{PROVIDER}/"
_DIGITS = 12

LogPaths: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]


class LogError(DataError):
    """Logs that can't be used as they are; the message says which, why and what to do."""


class LogHead(NamedTuple):
    """One log without its samples.

    Attributes:
        location: Where the log lies: a path or a URL, without ``file://``.
        name: Its path below the folder that all logs read with it lie in: what stands in files.
        modified: When its file was last written, as given by the file system (0 if unknown).
        header: Inspect's own header: model, task, data set, status, scores.
        factors: What tells it from the model's other logs, as ``{"system_prompt": "safe"}``
            (:func:`or_eval.analysis.conditions.name_conditions`); empty where nothing does.
        benchmark: What it measures on (:func:`or_eval.analysis.conditions.name_benchmarks`).
    """

    location: str
    name: str
    modified: float
    header: EvalLog
    factors: Mapping[str, str] = MappingProxyType({})
    benchmark: str = ""

    @property
    def bare_model(self) -> str:
        """Name of the model under test; of replayed responses, that of the model that gave them."""
        return self.header.eval.model.removeprefix(_REPLAYED)

    @property
    def model(self) -> str:
        """That name, with the condition it was run under where there are several."""
        return f"{self.bare_model} ({self.condition})" if self.condition else self.bare_model

    @property
    def condition(self) -> str:
        """Its factors in words, as ``system_prompt=safe``."""
        return ", ".join(map("=".join, self.factors.items()))

    @property
    def framings(self) -> list[str]:
        """The contexts that each of its prompts was set into; empty where it was in none."""
        said = (self.header.eval.metadata or {}).get("framings")
        return list(said) if isinstance(said, dict) else []

    def under(self, framing: str) -> LogHead:
        """Give the log's head as that of one framing: each is a condition of the model."""
        return self._replace(factors={**self.factors, FRAMING: framing})

    @property
    def conditions(self) -> list[LogHead]:
        """The conditions in it: one, or one for each framing."""
        return [self.under(framing) for framing in self.framings] or [self]

    @property
    def models(self) -> set[str]:
        """Names of the model under these."""
        return {head.model for head in self.conditions}

    @property
    def stored(self) -> bool:
        """Whether stored responses were played back, by whatever task."""
        return self.header.eval.model.startswith(_REPLAYED)

    @property
    def data(self) -> str:
        """Name of the data, with their state where the log tells it; a file's hash is cut."""
        spec = self.header.eval
        loaded = (spec.metadata or {}).get("prompts")
        revision = loaded.get("revision") if isinstance(loaded, dict) else None
        place = PurePath(spec.dataset.name or "")
        name = place.name if place.is_absolute() else str(spec.dataset.name or "")
        if not isinstance(revision, str):
            return name
        kind, _, digits = revision.rpartition(":")
        return f"{name}, {kind or 'revision'} {digits[:_DIGITS]}"

    @property
    def task(self) -> str:
        """Name of the task."""
        return self.header.eval.task

    @property
    def replayed(self) -> bool:
        """Whether it holds stored responses, which are no task's own but fit any."""
        return self.task == REPLAY_TASK

    @property
    def complete(self) -> bool:
        """Whether the run came to its end and no sample was taken back or left out."""
        results = self.header.results
        drained = (
            results is not None
            and results.logged_samples is not None
            and results.logged_samples < results.total_samples
        )
        return self.header.status == "success" and not self.header.invalidated and not drained

    @property
    def scores(self) -> list[str]:
        """Names of the scores whose results stand in the header."""
        results = self.header.results
        return [] if results is None else [score.name for score in results.scores]


def share_samples(one: LogHead, other: LogHead) -> bool:
    """Tell whether two logs are of one task and have samples in common."""
    if one.task != other.task and not (one.replayed or other.replayed):
        return False
    ids, other_ids = one.header.eval.dataset.sample_ids, other.header.eval.dataset.sample_ids
    if ids is None or other_ids is None:
        return True
    return not set(map(str, ids)).isdisjoint(map(str, other_ids))


def read_heads(paths: LogPaths) -> list[LogHead]:
    """Find logs and read their headers, oldest run first.

    Args:
        paths: Log files, folders of logs (searched with the folders in them), or any path that
            Inspect's file layer reads; ``.eval`` or ``.json``.

    Raises:
        LogError: A path holds no log, or a log can't be read.
    """
    named = [paths] if isinstance(paths, str | PathLike) else list(paths)
    found = {info.name: info for path in named for info in _find(fspath(path))}
    names = _below_one_folder([_location(info) for info in found.values()])
    heads = [_read_head(info, name) for info, name in zip(found.values(), names, strict=True)]
    return sorted(heads, key=lambda head: (head.header.eval.created, head.modified, head.location))


def _find(path: str) -> list[EvalLogInfo]:
    try:
        found = list_eval_logs(path)
    except Exception as problem:
        raise LogError(f"{path}: can't be read ({first_line(problem)})") from problem
    if found:
        return found
    if path.endswith(".json"):
        # list_eval_logs takes a .json file for a log only when it is named as Inspect names them
        return [
            EvalLogInfo(
                name=path, type="file", size=0, mtime=None, task="", task_id="", suffix=None
            )
        ]
    raise LogError(f"{path}: no Inspect log (.eval or .json) there")


def _location(info: EvalLogInfo) -> str:
    return info.name.removeprefix("file://")


def _below_one_folder(locations: Sequence[str]) -> list[str]:
    """Name logs by their paths below the folder that they all lie in."""
    parts = [location.split("/") for location in locations]
    shared = 0
    while all(len(path) > shared + 1 for path in parts) and len({p[shared] for p in parts}) == 1:
        shared += 1
    return ["/".join(path[shared:]) for path in parts]


def _read_head(info: EvalLogInfo, name: str) -> LogHead:
    try:
        header = read_eval_log(info.name, header_only=True)
    except Exception as problem:
        raise LogError(
            f"{_location(info)}: can't be read as an Inspect log ({first_line(problem)})"
        ) from problem
    header.reductions = None  # a score for each sample, which nothing here reads
    return LogHead(_location(info), name, info.mtime or 0, header)


def first_line(problem: Exception) -> str:
    """Give the first line of what a problem says, or its name."""
    lines = str(problem).strip().splitlines()
    return lines[0] if lines else type(problem).__name__

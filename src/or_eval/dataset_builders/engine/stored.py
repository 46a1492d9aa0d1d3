"""The results of stages on disk: a folder each, which is there in whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from or_eval.dataset_builders.engine.asking import is_whole
from or_eval.dataset_builders.engine.ports import Dropped, StageFacts, StageResult
from or_eval.dataset_builders.engine.rows import as_frame, from_frame, read_rows, write_rows
from or_eval.dataset_builders.errors import BuildError

_RECORD, _ROWS, _DROPPED = "stage.json", "rows.parquet", "dropped.parquet"
_PARTIAL = ".partial"
_SUBSETS, _TABLES = "subsets", "tables"


class StoredStage(NamedTuple):
    """A stage that is done.

    Attributes:
        folder: Where its result lies.
        fingerprint: What its result depends on, in short.
        ingredients: What its result depends on, by name.
        facts: What is known of it.
        logs: Logs that the next stage reads.
        content: Digest of the result itself: a stage that is run again from the same may come to
            another one, and then what follows has to run again too.
    """

    folder: Path
    fingerprint: str
    ingredients: dict[str, Any]
    facts: StageFacts
    logs: list[str]
    content: str

    @property
    def mark(self) -> str:
        """What stands for the result among the ingredients of the stages that follow."""
        return f"{self.fingerprint}-{self.content}"


def stored_stage(folder: Path) -> StoredStage | None:
    """Give the stage whose result lies in a folder, or None where none is done there."""
    try:
        said = json.loads((folder / _RECORD).read_text("utf-8"))
        stored = StoredStage(
            folder,
            said["fingerprint"],
            said["ingredients"],
            StageFacts(**said["facts"]),
            [os.path.normpath(folder / log) for log in said["logs"]],
            said["content"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    parts = [_ROWS, _DROPPED, *(_subset(name) for name in stored.facts.subsets)]
    whole = all((folder / part).is_file() for part in parts) and all(
        is_whole(Path(log)) for log in stored.logs
    )
    return stored if whole else None


def store(
    folder: Path,
    result: StageResult,
    facts: StageFacts,
    fingerprint: str,
    ingredients: Mapping[str, Any],
) -> StoredStage:
    """Write the result of a stage beside its place, then put it there at once."""
    partial = folder.with_name(folder.name + _PARTIAL)
    shutil.rmtree(partial, ignore_errors=True)
    (partial / _SUBSETS).mkdir(parents=True)
    write_rows(result.rows, partial / _ROWS)
    _write_dropped(result.dropped, partial / _DROPPED)
    for name, rows in result.subsets.items():
        write_rows(rows, partial / _subset(name))
    _write_tables(result.tables, partial / _TABLES)
    parts = [_ROWS, _DROPPED, *(_subset(name) for name in result.subsets)]
    content = _content([partial / part for part in parts], result.logs)
    said = {
        "fingerprint": fingerprint,
        "content": content,
        "facts": facts._asdict(),
        # Relative, so that a build's folder can be moved.
        "logs": [os.path.relpath(log, folder) for log in result.logs],
        "ingredients": dict(ingredients),
    }
    text = json.dumps(said, indent=2, ensure_ascii=False, default=str)
    (partial / _RECORD).write_text(text + "\n", "utf-8")
    _replace(folder, partial)
    return StoredStage(folder, fingerprint, dict(ingredients), facts, result.logs, content)


def rows_of(stored: StoredStage, part: str) -> list[Any] | None:
    """Give the rows that a stage kept, or a part of its result.

    Args:
        stored: The stage.
        part: A subset, or a reason for which rows were dropped; empty for the rows kept.

    Returns:
        The rows; None where the stage has no such part.

    Raises:
        BuildError: They can't be read.
    """
    try:
        if not part:
            return read_rows(stored.folder / _ROWS)
        if part in stored.facts.subsets:
            return read_rows(stored.folder / _subset(part))
        if part in stored.facts.dropped:
            import pandas as pd

            dropped = pd.read_parquet(stored.folder / _DROPPED)
            return from_frame(dropped[dropped["reason"] == part])
    except (ValueError, KeyError) as error:  # pyarrow's errors are ValueErrors
        raise BuildError(
            f"{stored.folder}: its rows can't be read; remove the folder and run the same command "
            "again: no model is asked again"
        ) from error
    return None


def _subset(name: str) -> str:
    return f"{_SUBSETS}/{name}.parquet"


def _content(files: Iterable[Path], logs: Iterable[str]) -> str:
    """Give 8 hex digits that stand for a result: its rows, and which logs it has."""
    found = hashlib.sha256("\n".join(Path(log).name for log in logs).encode())
    for path in files:
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:8]


def _write_dropped(dropped: list[Dropped], path: Path) -> None:
    frame = as_frame([item.record for item in dropped])
    frame["reason"] = [item.reason for item in dropped]
    frame["detail"] = [item.detail for item in dropped]
    frame.astype({"reason": "str", "detail": "str"}).to_parquet(path, index=False)


def _write_tables(tables: Mapping[str, list[dict[str, Any]]], folder: Path) -> None:
    import pandas as pd

    from or_eval.analysis.tables import spreadsheet_safe

    for name, rows in tables.items():
        folder.mkdir(exist_ok=True)
        spreadsheet_safe(pd.DataFrame(rows)).to_csv(folder / f"{name}.csv", index=False)


def _replace(folder: Path, partial: Path) -> None:
    """Put a finished folder in its place; an interruption leaves no folder, never half of one."""
    for path in partial.rglob("*"):
        if path.is_file():
            _flush(path)
    old = folder.with_name(folder.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    with suppress(FileNotFoundError):
        folder.rename(old)
    partial.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())

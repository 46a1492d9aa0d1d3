"""The results of stages on disk: a folder each, which is there in whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

from or_eval.dataset_builders.engine.models import digest_of
from or_eval.dataset_builders.engine.rounds import Short, total
from or_eval.dataset_builders.engine.rows import Joined, Rows, RowWriter, StoredRows
from or_eval.dataset_builders.engine.stage import Beside, Dropped, Kept, Makes, Outcome, StageFacts
from or_eval.dataset_builders.errors import BuildError
from or_eval.key_like import keys_in, secrets_of
from or_eval.schema import PromptRecord, prompt_id

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
        content: Digest of the result itself, which is what the stages that follow depend on.
        short: What it says is short.
    """

    folder: Path
    fingerprint: str
    ingredients: dict[str, Any]
    facts: StageFacts
    logs: list[str]
    content: str
    short: list[Short]


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
            [Short(*one) for one in said["short"]],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    parts = [_ROWS, _DROPPED, *(_subset(name) for name in stored.facts.subsets)]
    whole = all((folder / part).is_file() for part in parts) and all(
        zipfile.is_zipfile(log) for log in stored.logs
    )
    return stored if whole else None


def store(
    folder: Path,
    outcomes: Iterable[Outcome],
    beside: Beside,
    facts: StageFacts,
    ingredients: Mapping[str, Any],
) -> StoredStage:
    """Write what a stage makes beside its place, as it comes, then put it there at once.

    Args:
        folder: Its place.
        outcomes: What it gives.
        beside: What it gives beside that.
        facts: What is known of it before it runs.
        ingredients: What its result depends on.
    """
    partial = folder.with_name(folder.name + _PARTIAL)
    shutil.rmtree(partial, ignore_errors=True)
    told = _write(outcomes, beside, partial, facts)
    # They are in the funnel and on the data card.
    short = [dict(one.cell) for one in beside.short]
    for found in keys_in(told._asdict() | {"short": short}, secrets_of(os.environ)):
        raise BuildError(f"what it tells of itself, {found}, so it isn't kept")
    parts = [_ROWS, _DROPPED, *(_subset(name) for name in told.subsets)]
    stored = StoredStage(
        folder,
        digest_of(ingredients)[:16],
        dict(ingredients),
        told,
        beside.logs,
        _content([partial / part for part in parts], beside.logs, told),
        beside.short,
    )
    said = stored._asdict() | {
        "facts": told._asdict(),
        # Relative, so that a build's folder can be moved.
        "logs": [os.path.relpath(log, folder) for log in beside.logs],
    }
    del said["folder"]
    text = json.dumps(said, indent=2, ensure_ascii=False, default=str)
    (partial / _RECORD).write_text(text + "\n", "utf-8")
    _replace(folder, partial)
    return stored


def accounted(outcomes: Iterable[Outcome], rows: Rows, makes: Makes) -> Iterator[Outcome]:
    """Give what a stage gives, and see that it is what a stage gives, and that no row is lost.

    It holds a number for each of the rows that came in.

    Args:
        outcomes: What the stage gives.
        rows: The rows that came in.
        makes: Which rows it makes.

    Raises:
        BuildError: It gives something else, or fewer rows, or more.
    """
    if not isinstance(outcomes, Iterable):
        raise BuildError(_no_outcome(outcomes))
    left = {hash(row.id) for row in rows}
    given = 0
    for outcome in outcomes:
        match outcome:
            case Kept(PromptRecord() as record) | Dropped(PromptRecord() as record, str(), str()):
                given += 1
                left -= {hash(record.id), hash(record.seed_id)}
                if isinstance(outcome, Kept) and record.id != prompt_id(record.prompt):
                    raise BuildError(
                        f"the prompt of row {record.id} isn't the one that the id is of: make a "
                        "row with another prompt by written_from(row, text, ...), and say so "
                        "(`makes` of its class)"
                    )
            case _:
                raise BuildError(_no_outcome(outcome))
        yield outcome
    if (makes == "nothing" and given != len(rows)) or (makes == "beside" and given < len(rows)):
        raise BuildError(
            f"it took {len(rows)} rows and gave {given}: give each as Kept or Dropped, once, or "
            "say which rows it makes (`makes` of its class)"
        )
    if left:
        raise BuildError(
            f"nothing came of {len(left)} of its {len(rows)} rows: give each as Kept or Dropped, "
            "or a row with its id as seed_id"
        )


def _no_outcome(given: object) -> str:
    return f"gives a {type(given).__name__} where it should give Kept(row) or Dropped(row, reason)"


def part_of(stored: StoredStage, part: str) -> Rows | None:
    """Give the rows that a stage kept, or a part of its result.

    Args:
        stored: The stage.
        part: A subset, or a reason for which rows were dropped, each of which counts once; empty
            for the rows kept.

    Returns:
        The rows; None where the stage has no such part.
    """
    if not part:
        return StoredRows(stored.folder / _ROWS)
    if part in stored.facts.subsets:
        return StoredRows(stored.folder / _subset(part))
    if part in stored.facts.dropped:
        # A row can be dropped several times: a seed, once for each rewrite that it lacks.
        return Joined(StoredRows(stored.folder / _DROPPED, part))
    return None


def _write(
    outcomes: Iterable[Outcome], beside: Beside, folder: Path, facts: StageFacts
) -> StageFacts:
    """Write the parts of a result; give the facts with what was counted."""
    (folder / _SUBSETS).mkdir(parents=True)
    dropped: Counter[str] = Counter()
    sources: Counter[str] = Counter()
    subsets: dict[str, RowWriter] = {}
    with ExitStack() as stack:
        kept = stack.enter_context(RowWriter(folder / _ROWS))
        lost = stack.enter_context(RowWriter(folder / _DROPPED, ("reason", "detail")))

        def subset(name: str) -> RowWriter:
            subsets[name] = stack.enter_context(RowWriter(folder / _subset(name)))
            return subsets[name]

        beside.subset = subset
        for outcome in outcomes:
            if isinstance(outcome, Kept):
                sources[outcome.record.source] += 1
                kept.append(outcome.record)
            else:
                dropped[outcome.reason] += 1
                lost.append(*outcome)
        for name, rows in beside.tables.items():
            _write_table(name, rows, folder / _TABLES)
    return facts._replace(
        rows_out=kept.rows,
        dropped=dict(dropped),
        models=facts.models | beside.models,
        subsets={name: writer.rows for name, writer in subsets.items()},
        figures={name: rows[0] for name, rows in beside.tables.items() if len(rows) == 1},
        sources=dict(sources),
        missing=total(beside.short),
        made=facts.made + kept.rows + lost.rows,
    )


def _subset(name: str) -> str:
    return f"{_SUBSETS}/{name}.parquet"


def _content(files: Iterable[Path], logs: Iterable[str], facts: StageFacts) -> str:
    """Give 8 hex digits that stand for a result: its rows, its logs, and what is known of it."""
    told = [*(Path(log).name for log in logs), json.dumps(facts)]
    found = hashlib.sha256("\n".join(told).encode())
    for path in files:
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()[:8]


def _write_table(name: str, rows: list[dict[str, Any]], folder: Path) -> None:
    import pandas as pd

    from or_eval.analysis.tables import spreadsheet_safe

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

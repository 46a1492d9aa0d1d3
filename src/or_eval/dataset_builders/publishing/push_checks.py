"""What must be right with a data set before it is pushed."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from or_eval.analysis.snapshots import ABOUT, snapshot_problems
from or_eval.dataset_builders.engine.rows import RESPONSE, columns
from or_eval.dataset_builders.publishing.data_card import SENSITIVE_TAG, SOURCES, TAG
from or_eval.dataset_builders.publishing.dataset_folder import CARD, DatasetFolder, tags_of
from or_eval.dataset_builders.publishing.licences import NOT_STATED, licence_problem
from or_eval.dataset_builders.publishing.local_paths import (
    local_path,
    names_a_home,
    without_folders,
)
from or_eval.key_like import key_like, keys_in
from or_eval.schema import Label, prompt_id
from or_eval.sources import catalogue
from or_eval.sources.errors import shown

if TYPE_CHECKING:
    import pyarrow as pa

_WARNING = re.compile(r"^#+ .*\bwarning\b", re.IGNORECASE | re.MULTILINE)
_DATA = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".txt", ".arrow", ".zip", ".gz", ".zst")
_SHOWN = 3
"""Rows named of each kind of problem; the rest are counted."""

Rows = Sequence[dict[str, Any]]
Secrets = Sequence[tuple[str, str]]


def problems(folder: DatasetFolder, secrets: Secrets) -> list[str]:
    """Give everything that is wrong with a data set, a line each; secrets must be in no file."""
    found = [*_card_problems(folder), *_file_problems(folder)]
    found += _leaks_of_other_files(folder, secrets)
    labels: dict[str, tuple[str, str]] = {}
    sources: Counter[str] = Counter()
    for name, path in folder.configurations.items():
        if path is None or path not in folder.files or (folder.path / path).is_symlink():
            continue  # told above
        try:
            table = folder.table(name)
        except (OSError, ValueError) as error:
            found.append(f"{path}: can't be read as Parquet ({' '.join(str(error).split())[:200]})")
            continue
        rows = table.to_pylist()
        told = _first(_leaks(table, rows, secrets))
        if folder.is_snapshot:
            pass  # its own rows are looked at below
        elif wrong := _schema_problem(table.schema):
            told.append(wrong)
        else:
            told += _row_problems(name, rows, labels)
            sources.update(str(row["source"]) for row in rows)
        found += [f"{path}: {problem}" for problem in told]
    if folder.is_snapshot:
        return [*found, *snapshot_problems(folder.path)]
    found += _licence_problems(folder, sources)
    toxic = any(label == Label.TOXIC.value for label, _ in labels.values())
    if toxic and SENSITIVE_TAG not in tags_of(folder.header):
        found.append(f"{CARD}: toxic prompts are in the set, but the tag {SENSITIVE_TAG} is not")
    return found


def _card_problems(folder: DatasetFolder) -> Iterator[str]:
    for key in ("license", "language", "pretty_name", "configs"):
        if not folder.header.get(key) and not (key == "language" and folder.is_snapshot):
            yield f"{CARD}: the header has no '{key}'"
    if TAG not in tags_of(folder.header):
        yield f"{CARD}: the header lacks the tag {TAG}, by which a later push knows the set"
    if not _WARNING.search(folder.card):
        yield f"{CARD}: has no heading 'Warning' that says what its prompts are"


def _licence_problems(folder: DatasetFolder, sources: Counter[str]) -> Iterator[str]:
    stated = folder.header.get(SOURCES)
    stated = stated if isinstance(stated, dict) else {}
    for name, count in sorted(sources.items()):
        entry = catalogue().get(name)
        licence = stated.get(name) or (NOT_STATED if entry is None else entry.licence)
        if why := licence_problem(str(licence), str(folder.header.get("license"))):
            yield (
                f"source {shown(name)} ({count} rows) {why.said}; leave its rows out, or say under "
                "'sources' of the stage publish by which licence you have them"
            )


def _file_problems(folder: DatasetFolder) -> Iterator[str]:
    configs = folder.header.get("configs")
    if isinstance(configs, list) and len(configs) != len(folder.configurations):
        yield f"{CARD}: a configuration has no name, or two have the same"
    named = [path for path in folder.configurations.values() if path is not None]
    for name, path in folder.configurations.items():
        if path is None:
            yield f"{CARD}: configuration {shown(name)} isn't one Parquet file of the split train"
        elif path not in folder.files or named.count(path) > 1:
            what = "is that of two" if path in folder.files else "isn't in the folder"
            yield f"{CARD}: the file of configuration {shown(name)}, {shown(path)}, {what}"
    for path in folder.files:
        if (folder.path / path).is_symlink():
            yield f"{path}: is a link; put the file itself there"
        elif path == ABOUT and folder.is_snapshot:
            pass
        elif path not in named and path.casefold().endswith(_DATA):
            yield f"{path}: belongs to no configuration of the card"


def _leaks_of_other_files(folder: DatasetFolder, secrets: Secrets) -> Iterator[str]:
    for path in folder.files:
        file = folder.path / path
        if path in folder.configurations.values() or file.is_symlink():
            continue
        text = file.read_bytes().decode("utf-8", "replace")
        for number, line in enumerate(text.splitlines(), start=1):
            if what := key_like(line, secrets):
                yield f"{path}, line {number}: contains {what}; remove it"
        if what := key_like(path, secrets):
            yield f"the name of {path} contains {what}; give it another"
        if names_a_home(text):
            yield f"{path}: names somebody's home folder; remove it"


def _leaks(table: pa.Table, rows: Rows, secrets: Secrets) -> Iterator[str]:
    beside = {
        key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for key, value in (table.schema.metadata or {}).items()
    }
    for found in keys_in(beside, secrets):
        yield f"the file's metadata, {found}; remove it"
    for number, row in enumerate(rows, start=1):
        meta = _meta(row)
        for found in keys_in(row | {"meta": meta}, secrets):
            yield f"row {number} ({shown(row.get('id'))}): {found}; remove it"
        if isinstance(meta, dict) and RESPONSE in meta:
            yield f"row {number}: contains a model's answer ('{RESPONSE}' in meta); leave that out"
        if path := local_path(_facts(row), str(row.get("prompt"))):
            file = without_folders(path)
            yield f"row {number}: tells where {shown(file)} lay on a machine; leave that out"


def _facts(row: dict[str, Any]) -> list[Any]:
    """Give what a row holds beside its prompt, with what its ``meta`` holds."""
    names = ("source", "method", "category", "model", "task", "benchmark")
    return [_meta(row), *map(row.get, names)]


def _meta(row: dict[str, Any]) -> Any:
    meta = row.get("meta")
    with suppress(ValueError, TypeError):
        return json.loads(meta)  # type: ignore[arg-type]
    return meta


def _schema_problem(schema: pa.Schema) -> str | None:
    import pyarrow as pa

    wanted = columns()
    if schema.names != wanted.names:
        return f"the columns are {', '.join(schema.names)}; they must be {', '.join(wanted.names)}"
    for field in schema:
        if not (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
            return f"column '{field.name}' contains {field.type}; it must contain text"
    return None


def _row_problems(name: str, rows: Rows, labels: dict[str, tuple[str, str]]) -> Iterator[str]:
    """Find what is wrong with rows, the first of each kind; note their labels, and where."""
    if not rows:
        yield "has no rows; leave the configuration out, since an empty one can't be loaded"
    found: dict[str, list[str]] = {}
    first: dict[str, int] = {}
    for number, row in enumerate(rows, start=1):
        for kind, said in _faults(row):
            found.setdefault(kind, []).append(f"row {number}: {said}")
        text = " ".join((row["prompt"] or "").split())
        if text and (earlier := first.setdefault(text, number)) != number:
            twice = f"row {number}: the same prompt as in row {earlier}"
            found.setdefault("twice", []).append(twice)
        label, where = labels.setdefault(str(row["id"]), (str(row["label"]), name))
        if label != row["label"]:
            said = f"labelled {row['label']}, but {label} in configuration {where}"
            found.setdefault("labels", []).append(f"row {number}: {said}")
    for some in found.values():
        yield from _first(some)


def _faults(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Find what is wrong with a row by itself, by kind."""
    for field in columns():
        value = row[field.name] or ""
        if not field.nullable and not value.strip():
            yield "empty", f"the {field.name} is empty"
        elif field.name == "prompt" and value != value.strip():
            yield "empty", "there is white space around the prompt; remove it"
    labels = sorted(label.value for label in Label)
    if row["label"] and row["label"] not in labels:
        yield "words", f"{shown(row['label'])} isn't a label ({', '.join(labels)})"
    if row["meta"] is not None and not isinstance(_meta(row), dict):
        yield "words", "meta isn't a JSON object"
    if row["id"] and row["id"] != prompt_id(row["prompt"] or ""):
        yield "id", f"{shown(row['id'])} is not the id of this prompt"


def _first(found: Iterable[str]) -> list[str]:
    """Give the first problems of a kind, and a line that counts the rest."""
    everything = list(found)
    rest = len(everything) - _SHOWN
    return everything[:_SHOWN] + ([f"and {rest} more like these"] if rest > 0 else [])

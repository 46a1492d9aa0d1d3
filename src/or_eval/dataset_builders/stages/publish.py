"""The stage ``publish``: the data set on disk in the Hub's format, with its card."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

from or_eval.dataset_builders.engine.ports import (
    Dropped,
    Place,
    Plan,
    Stage,
    StageContext,
    StageFacts,
    StageResult,
)
from or_eval.dataset_builders.engine.rows import distinct
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.publishing.data_card import CardParams, data_card
from or_eval.dataset_builders.publishing.dataset_folder import (
    CARD,
    FOLDER,
    data_file,
    write_dataset,
)
from or_eval.dataset_builders.publishing.key_like import key_like
from or_eval.schema import Label, PromptRecord

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_DEFAULT = "default"


def run(rows: list[PromptRecord], params: CardParams, context: StageContext) -> StageResult:
    """Write ``dataset/`` in the build's folder: a configuration for each subset of the input.

    Rows that hold something like a key, and rows in no subset, are dropped.

    Raises:
        BuildError: No row is left, or the set can't be written.
    """
    subsets = _configurations(rows, context)
    if bad := [name for name in subsets if not _NAME.fullmatch(name)]:
        raise BuildError(_bad_name(bad[0]))
    _check_labels({**context.inputs, **subsets})
    everything = distinct([*rows, *(row for part in subsets.values() for row in part)])
    with_keys = {row.id for row in everything if key_like("\n".join(map(str, astuple(row))))}
    published = {
        name: kept
        for name, part in subsets.items()
        if (kept := [row for row in distinct(part) if row.id not in with_keys])
    }
    kept = distinct(row for part in published.values() for row in part)
    if not kept:
        raise BuildError(_nothing(len(rows), context.out / FOLDER))
    dropped = _dropped(everything, {row.id for row in kept}, with_keys)
    empty = [name for name in subsets if name not in published]
    itself = StageFacts(
        name="publish",
        kind="publish",
        rows_in=len(everything),
        rows_out=len(kept),
        dropped=dict(Counter(item.reason for item in dropped)),
        models={},
        prompts={},
        subsets={name: len(part) for name, part in published.items()},
    )
    card = data_card(params, published, empty, [*context.earlier, itself], context)
    if what := key_like(card):
        raise BuildError(f"the data card would hold {what}; take it out of the recipe")
    folder = write_dataset(context.out, card, published)
    return StageResult(
        kept,
        dropped,
        subsets=published,
        tables={"published": [_facts(name, part, folder) for name, part in published.items()]},
    )


def plan(rows: int, params: CardParams, context: StageContext | None) -> Plan:
    """All rows may be published; no model is asked."""
    return Plan(rows)


def _configurations(
    rows: list[PromptRecord], context: StageContext
) -> Mapping[str, list[PromptRecord]]:
    """Give what to publish under which name; inputs ``STAGE.PART`` are each one of their own."""
    parts = {reference: reference.partition(".")[2] for reference in context.inputs}
    if parts and all(parts.values()):
        return {parts[reference]: part for reference, part in context.inputs.items()}
    whole = [facts for facts in context.earlier if facts.name in context.inputs]
    names = Counter(name for facts in whole for name in facts.subsets)
    if twice := [name for name, count in names.items() if count > 1]:
        raise BuildError(f"two inputs have a subset '{twice[0]}'; call one of them another name")
    return context.subsets or {_DEFAULT: rows}


def _check_labels(parts: Mapping[str, list[PromptRecord]]) -> None:
    """Refuse a prompt that is safe in one part and toxic in another: one of them is wrong."""
    safe, toxic = (
        {row.id: name for name, part in parts.items() for row in part if row.label is label}
        for label in (Label.SAFE, Label.TOXIC)
    )
    if both := [id for id in safe if id in toxic]:
        raise BuildError(
            f"{len(both)} prompts are safe in '{safe[both[0]]}' and toxic in '{toxic[both[0]]}', "
            f"the first: {both[0]}; leave one of the two out"
        )


def _dropped(rows: list[PromptRecord], kept: set[str], with_keys: set[str]) -> list[Dropped]:
    return [
        Dropped(row, "key-like string" if row.id in with_keys else "in no subset")
        for row in rows
        if row.id not in kept
    ]


def _nothing(rows: int, place: Path) -> str:
    told = "no row was left by the earlier stages" if rows == 0 else f"none of {rows} rows is left"
    earlier = f"; {place} is still that of an earlier build" if place.exists() else ""
    return f"nothing is published as good: {told} (the funnel tells what was dropped){earlier}"


def _facts(name: str, rows: list[PromptRecord], folder: Path) -> dict[str, Any]:
    labels = Counter(row.label for row in rows)
    return {
        "configuration": name,
        "rows": len(rows),
        "safe": labels[Label.SAFE],
        "toxic": labels[Label.TOXIC],
        "file": data_file(name),
        "sha256": hashlib.sha256((folder / data_file(name)).read_bytes()).hexdigest(),
    }


def _writes(facts: StageFacts) -> list[str]:
    return [f"{FOLDER}/{file}" for file in (CARD, *map(data_file, facts.subsets))]


def _bad_name(name: str) -> str:
    return f"'{name}' can't name a configuration (letters, digits, - _ .)"


def _problem(params: CardParams, place: Place) -> str | None:
    parts = [reference.partition(".")[2] for reference in place.inputs]
    for name in filter(None, parts):
        if not _NAME.fullmatch(name):
            return _bad_name(name)
    if all(parts) and len(set(parts)) < len(parts):
        inputs = ", ".join(place.inputs)
        return f"two inputs would be one configuration ({inputs}); name them by a split"
    return None


STAGE = Stage(
    CardParams, run, plan, describes_recipe=True, writes=_writes, problem=_problem, once=True
)

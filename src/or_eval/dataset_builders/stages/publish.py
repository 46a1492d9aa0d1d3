"""The stage ``publish``: the data set on disk in the Hub's format, with its card."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from or_eval.dataset_builders.engine.rows import LICENCE, RESPONSE, Rows, distinct
from or_eval.dataset_builders.engine.stage import (
    Dropped,
    Kept,
    Outcome,
    Place,
    Stage,
    StageContext,
    StageFacts,
)
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.publishing.data_card import CardParams, Counts, data_card
from or_eval.dataset_builders.publishing.dataset_folder import (
    CARD,
    FOLDER,
    DatasetWriter,
    data_file,
)
from or_eval.dataset_builders.publishing.licences import NOT_STATED, licence_of, licence_problem
from or_eval.dataset_builders.publishing.local_paths import published as public
from or_eval.key_like import Secrets, key_like, keys_in, secrets_of
from or_eval.schema import Label
from or_eval.sources.errors import shown as quoted

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_DEFAULT = "default"


class Publish(CardParams, Stage):
    """Write ``dataset/`` in the build's folder: a configuration for each subset of the input."""

    describes_recipe = True
    once = True

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Write the rows and the card.

        Rows whose licence is known to keep them out of such a set, rows that are there twice, and
        rows in no subset are dropped. Models' answers stay out of the rows. It holds the ids of
        the rows.

        Raises:
            BuildError: No row is left, a licence isn't known to let a row in, a row or the card
                holds something like a key, or the set can't be written.
        """
        subsets = _configurations(rows, build)
        if bad := [name for name in subsets if not _NAME.fullmatch(name)]:
            raise BuildError(_bad_name(bad[0]))
        stated = {base.name: base.licence for base in self.sources}
        judged = [facts.params for facts in build.earlier if facts.kind == "moderate"]
        answers = {RESPONSE, *(str(params.get("text")) for params in judged)} - {"prompt"}
        held_back: dict[str, str] = {}
        published: set[str] = set()
        secrets = [*secrets_of(os.environ), *_of_models(build)]
        _check({**build.inputs, **subsets, "its input": rows}, secrets)
        everything, counts = Counts(), {name: Counts() for name in subsets}
        dropped: Counter[str] = Counter()
        with DatasetWriter(build.out) as writer:
            for name, part in subsets.items():
                for row in distinct(part):
                    licence = licence_of(row, stated)
                    # Where none is stated, its users may have one: a push asks for it.
                    if licence != NOT_STATED and (why := licence_problem(licence, self.licence)):
                        if not why.known:
                            raise BuildError(
                                f"source {quoted(row.source)} {why.said} (row {row.id}); leave its "
                                "rows out in a stage before, or say under 'sources' of publish by "
                                "which licence you have them"
                            )
                        held_back[row.id] = f"{row.source} {why.said}"
                        continue
                    shown = public(row, answers)
                    if row.id not in published:
                        published.add(row.id)
                        everything.add(shown)
                        yield Kept(shown)
                    counts[name].add(shown)
                    writer.add(name, shown)
                    build.choose(name, shown)
            seen: set[str] = set()
            for row in rows:
                reason = LICENCE if row.id in held_back else "in no subset"
                if row.id in seen:
                    reason = "duplicate"
                elif row.id in published:
                    reason = ""
                seen.add(row.id)
                if reason:
                    dropped[reason] += 1
                    yield Dropped(row, reason, held_back.get(row.id, ""))
            if not everything.rows:
                raise BuildError(_nothing(len(rows), writer.place))
            first = next(iter(subsets))
            if everything.labels.keys() == {Label.TOXIC.value} and not counts[first].rows:
                told = f"all {everything.rows} rows are toxic, and '{first}' is empty"
                raise BuildError(f"nothing to publish: {told}{_earlier(writer.place)}")
            filled = {name: part for name, part in counts.items() if part.rows}
            empty = [name for name in subsets if name not in filled]
            itself = StageFacts(
                name="publish",
                kind="publish",
                rows_in=everything.rows + dropped.total(),
                rows_out=everything.rows,
                dropped=dict(dropped),
                models={},
                prompts={},
                subsets={name: part.rows for name, part in filled.items()},
            )
            card = data_card(self, filled, everything, empty, [*build.earlier, itself], build)
            for number, line in enumerate(card.splitlines(), start=1):
                if what := key_like(line, secrets):
                    raise BuildError(f"line {number} of the data card would contain {what}")
            folder = writer.finish(card)
        build.table("published", [_facts(name, part, folder) for name, part in filled.items()])

    def problem(self, place: Place) -> str | None:
        parts = [reference.partition(".")[2] for reference in place.inputs]
        for name in filter(None, parts):
            if not _NAME.fullmatch(name):
                return _bad_name(name)
        if all(parts) and len(set(parts)) < len(parts):
            inputs = ", ".join(place.inputs)
            return f"two inputs would be one configuration ({inputs}); name them by a split"
        return None

    def writes(self, facts: StageFacts) -> list[str]:
        """Name the card and the files of rows."""
        return [f"{FOLDER}/{file}" for file in (CARD, *map(data_file, facts.subsets))]


def _of_models(context: StageContext) -> list[tuple[str, str]]:
    """Give the keys that the models of the roles are given: a reply may repeat its own."""
    bound = [model for binding in context.models.values() for model in binding.models]
    keys = {
        f"{one.name}_api_key": str(one.arguments.get("api_key") or "")
        for model in bound
        for one in (model, *model.members)
    }
    return secrets_of(keys)


def _configurations(rows: Rows, context: StageContext) -> Mapping[str, Rows]:
    """Give what to publish under which name; inputs ``STAGE.PART`` are each one of their own."""
    parts = {reference: reference.partition(".")[2] for reference in context.inputs}
    if parts and all(parts.values()):
        return {parts[reference]: part for reference, part in context.inputs.items()}
    whole = [facts for facts in context.earlier if facts.name in context.inputs]
    names = Counter(name for facts in whole for name in facts.subsets)
    if twice := [name for name, count in names.items() if count > 1]:
        raise BuildError(f"two inputs have a subset '{twice[0]}'; call one of them another name")
    return context.subsets or {_DEFAULT: rows}


def _check(parts: Mapping[str, Rows], secrets: Secrets) -> None:
    """Look for what keeps rows from being published.

    Raises:
        BuildError: A row holds something like a key, or is safe in one part and toxic in another:
            one of them is wrong.
    """
    first: dict[str, tuple[Label, str]] = {}
    both: dict[str, dict[Label, str]] = {}
    for name, part in parts.items():
        here = {label: (label, name) for label in (Label.SAFE, Label.TOXIC)}
        for row in part:
            for found in keys_in(asdict(row), secrets):
                raise BuildError(
                    f"row {row.id}, {found}; take it out of the data that it comes from, or leave "
                    "the row out in a stage before (docs/stages/publish.md)"
                )
            if row.label in here:
                label, where = first.setdefault(row.id, here[row.label])
                if label is not row.label:
                    both.setdefault(row.id, {label: where, row.label: name})
    if both:
        id, names = next(iter(both.items()))
        raise BuildError(
            f"{len(both)} prompts are safe in '{names[Label.SAFE]}' and toxic in "
            f"'{names[Label.TOXIC]}', the first: {id}; leave one of the two out"
        )


def _nothing(rows: int, place: Path) -> str:
    told = "no row was left by the earlier stages" if rows == 0 else f"none of {rows} rows is left"
    return f"nothing to publish: {told} (the funnel tells what was dropped){_earlier(place)}"


def _earlier(place: Path) -> str:
    return f"; {place} is still that of an earlier build" if place.exists() else ""


def _facts(name: str, counts: Counts, folder: Path) -> dict[str, Any]:
    return {
        "configuration": name,
        "rows": counts.rows,
        "safe": counts.labels[Label.SAFE.value],
        "toxic": counts.labels[Label.TOXIC.value],
        "file": data_file(name),
        "sha256": hashlib.sha256((folder / data_file(name)).read_bytes()).hexdigest(),
    }


def _bad_name(name: str) -> str:
    return f"'{name}' can't name a configuration (letters, digits, - _ .)"


STAGE = Publish

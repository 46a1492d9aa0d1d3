"""The stage ``dedup``: one row for each prompt, however it is spelled or put.

Equal texts first, then texts that are nearly the same: by their letters, or, where the recipe
names an embedding model, by their meaning; among the rows themselves and against earlier sets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import tee
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from or_eval.dataset_builders.engine.rows import Rows, in_batches
from or_eval.dataset_builders.engine.stage import (
    Dropped,
    Kept,
    Outcome,
    Place,
    StageContext,
    StageParams,
)
from or_eval.dataset_builders.engine.workers import Map
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.similarity import near_by_letters
from or_eval.dataset_builders.similarity.embedding_stage import EmbeddingStage, embedded
from or_eval.dataset_builders.similarity.near_by_letters import (
    bands_of,
    near_texts_of,
    near_texts_within,
)
from or_eval.dataset_builders.similarity.near_by_meaning import (
    near_duplicates_of,
    near_duplicates_within,
)
from or_eval.dataset_builders.similarity.near_duplicates import NearDuplicates
from or_eval.dataset_builders.similarity.same_text import text_mark
from or_eval.schema import Label, PromptRecord
from or_eval.sources import load_prompts
from or_eval.sources.errors import DataError

LETTERS_THRESHOLD, MEANING_THRESHOLD = 0.7, 0.9

_BATCH = 4096

Facet = Literal["label", "category", "language", "source", "method", "seed_id"]


class EarlierSet(StageParams):
    """A set whose prompts are not to come again; a recipe may give just its `data`.

    Attributes:
        data: A catalogue name, a Hub id, or the path of a file.
        source: Catalogue entry to read a file or Hub data set by.
    """

    data: str
    source: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, said: Any) -> Any:
        return {"data": said} if isinstance(said, str) else said


class Dedup(EmbeddingStage):
    """The stage ``dedup``, by what a recipe may say to it.

    Attributes:
        model: The sentence-transformers model whose embeddings are compared: a name on the Hub,
            or a folder; without one, texts are compared by their letters.
        threshold: Least similarity at which two prompts are near duplicates; None to drop equal
            texts only.
        against: Earlier sets.
        within: Columns in which rows must be equal to be compared at all.
    """

    takes = ("against",)
    threshold: float | None = Field(
        default_factory=lambda said: (
            LETTERS_THRESHOLD if said["model"] is None else MEANING_THRESHOLD
        ),
        gt=0,
        le=1,
    )
    against: tuple[EarlierSet, ...] = ()
    within: tuple[Facet, ...] = ()

    @property
    def used_model(self) -> str | None:
        """The model, unless equal texts only are dropped."""
        return None if self.threshold is None else self.model

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Drop equal and nearly equal rows, of earlier sets' and among themselves.

        It holds a digest of each text and, to find near duplicates, the rows that differ.
        """
        earlier = [_earlier(given) for given in self.against]
        earlier += [_Earlier(name, named) for name, named in build.named.items()]
        different: list[PromptRecord] = []
        for found in _without_equal(rows, earlier, self.within, build.map):
            if isinstance(found, Dropped):
                yield found
            elif self.threshold is None:
                yield Kept(found)
            else:
                different.append(found)
        if self.threshold is None:
            return
        self.name_model(build)
        if different:
            likeness = _likeness(self.model, self.threshold, build)
            table: list[dict[str, Any]] = []
            yield from _without_near(different, earlier, self.within, likeness, table)
            build.table("comparisons", table)
            if sampled := [row for row in table if row["pairs in the sample"]]:
                pairs = sum(row["pairs in the sample"] for row in sampled)
                found_pairs = sum(row["pairs in the sample"] * row["recall"] for row in sampled)
                # A table of one row is in the funnel too.
                recall = {"pairs in the sample": pairs, "recall": found_pairs / pairs}
                build.table("recall", [recall])

    def reads(self) -> list[str]:
        """Name the data."""
        return [*(given.data for given in self.against), *super().reads()]

    def parts(self) -> list[str]:
        """Name the subsets and the reasons."""
        return ["duplicate", "duplicate of *", "near duplicate", "near duplicate of *"]

    def problem(self, place: Place) -> str | None:
        """Say what keeps it from running where it stands."""
        if self.threshold is not None and self.model is None:
            near_by_letters.check_needs()
        return super().problem(place)


class _Earlier(NamedTuple):
    """An earlier set by its name."""

    name: str
    records: Rows


class _Part(NamedTuple):
    """Some prompts, and what is compared of each: its bands, or its embedding."""

    texts: list[str]
    marks: npt.NDArray[Any]


class _Likeness(NamedTuple):
    """A way to find near duplicates.

    Attributes:
        marks: Gives what is compared of texts.
        within: Compares some with each other.
        of: Compares some with others, of an earlier set.
    """

    marks: Callable[[list[str]], npt.NDArray[Any]]
    within: Callable[[_Part], NearDuplicates]
    of: Callable[[_Part, _Part], NearDuplicates]


class _Prompts(NamedTuple):
    """Records, what is compared of each, and which of them are compared at all."""

    records: list[PromptRecord]
    marks: npt.NDArray[Any]
    groups: dict[tuple[Any, ...], npt.NDArray[np.int64]]

    def part(self, rows: npt.NDArray[np.int64]) -> _Part:
        """Give some of them."""
        # Mostly all rows are compared with all; the marks of a million would be copied.
        marks = self.marks if len(rows) == len(self.marks) else self.marks[rows]
        return _Part([self.records[row].prompt for row in rows], marks)


class _Comparison(NamedTuple):
    """What came of comparing some rows of prompts with some rows of others."""

    rows: npt.NDArray[np.int64]
    others: npt.NDArray[np.int64]
    found: NearDuplicates


def _likeness(model: str | None, threshold: float, build: StageContext) -> _Likeness:
    if model is None:
        return _Likeness(
            lambda texts: np.concatenate(
                list(build.map(partial(bands_of, threshold=threshold), in_batches(texts, _BATCH)))
            ),
            lambda part: near_texts_within(*part, threshold, build.map),
            lambda part, others: near_texts_of(*part, *others, threshold, build.map),
        )
    return _Likeness(
        lambda texts: embedded(texts, model, build),
        lambda part: near_duplicates_within(part.marks, threshold, workers=build.map),
        lambda part, others: near_duplicates_of(
            part.marks, others.marks, threshold, workers=build.map
        ),
    )


def _without_near(
    different: list[PromptRecord],
    earlier: Sequence[_Earlier],
    within: Sequence[Facet],
    likeness: _Likeness,
    table: list[dict[str, Any]],
) -> Iterator[Outcome]:
    def marked(records: list[PromptRecord]) -> _Prompts:
        marks = likeness.marks([record.prompt for record in records])
        return _Prompts(records, marks, _groups(records, within))

    prompts = marked(different)
    for name, records in earlier:
        if not len(records):
            continue
        others = marked(list(records))
        compared = _with_others(prompts, others, likeness)
        table.append(_summary(name, prompts, compared))
        yield from _near(prompts, others, compared, f"near duplicate of {name}")
        prompts = _without(prompts, compared)
    compared = _with_each_other(prompts, likeness)
    table.append(_summary("each other", prompts, compared))
    yield from _near(prompts, prompts, compared, "near duplicate")
    for record in _without(prompts, compared).records:
        yield Kept(record)


def _earlier(given: EarlierSet) -> _Earlier:
    try:
        loaded = load_prompts(given.data, source=given.source)
    except DataError as error:
        # What its prompts are doesn't matter here; a set that doesn't tell is good enough.
        try:
            loaded = load_prompts(given.data, source=given.source, label=Label.UNLABELLED)
        except DataError:
            raise BuildError(f"against: {error}") from error
    return _Earlier(loaded.name, loaded.records)


def _without_equal(
    rows: Rows, earlier: Iterable[_Earlier], within: Sequence[Facet], workers: Map
) -> Iterator[PromptRecord | Dropped]:
    """Give the first of equal texts, and none that an earlier set has."""
    seen: dict[bytes, tuple[str, str]] = {}
    for name, records in earlier:
        for record, key in _marked(records, within, workers):
            seen.setdefault(key, (record.id, f"duplicate of {name}"))
    for row, key in _marked(rows, within, workers):
        if key in seen:
            first, reason = seen[key]
            yield Dropped(row, reason, f"same text as {first}")
        else:
            seen[key] = (row.id, "duplicate")
            yield row


def _marked(
    rows: Rows, within: Sequence[Facet], workers: Map
) -> Iterator[tuple[PromptRecord, bytes]]:
    """Give rows with what those share that are the same."""
    batches, again = tee(in_batches(rows, _BATCH))
    told = ([(row.prompt, *_facets(row, within)) for row in batch] for batch in again)
    for batch, marks in zip(batches, workers(_marks, told), strict=True):
        yield from zip(batch, marks, strict=True)


def _marks(told: Sequence[tuple[Any, ...]]) -> list[bytes]:
    return [text_mark(*one) for one in told]


def _facets(record: PromptRecord, within: Sequence[Facet]) -> tuple[Any, ...]:
    return tuple(getattr(record, facet) for facet in within)


def _groups(
    records: Iterable[PromptRecord], within: Sequence[Facet]
) -> dict[tuple[Any, ...], npt.NDArray[np.int64]]:
    """Give the positions of the records that are compared with each other."""
    positions: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for position, record in enumerate(records):
        positions[_facets(record, within)].append(position)
    return {facets: np.asarray(members) for facets, members in positions.items()}


def _with_others(prompts: _Prompts, others: _Prompts, likeness: _Likeness) -> list[_Comparison]:
    return [
        _Comparison(members, other, likeness.of(prompts.part(members), others.part(other)))
        for facets, members in prompts.groups.items()
        if (other := others.groups.get(facets)) is not None
    ]


def _with_each_other(prompts: _Prompts, likeness: _Likeness) -> list[_Comparison]:
    return [
        _Comparison(members, members, likeness.within(prompts.part(members)))
        for members in prompts.groups.values()
        if len(members) > 1
    ]


def _near(
    prompts: _Prompts, others: _Prompts, compared: Iterable[_Comparison], reason: str
) -> list[Dropped]:
    """Give the rows that are near duplicates, in the order of the rows."""
    dropped = {}
    for rows, other_rows, found in compared:
        for member in np.flatnonzero(found.of >= 0):
            other = others.records[other_rows[found.of[member]]]
            dropped[int(rows[member])] = f"{found.similarity[member]:.3f} similar to {other.id}"
    return [Dropped(prompts.records[row], reason, dropped[row]) for row in sorted(dropped)]


def _without(prompts: _Prompts, compared: Iterable[_Comparison]) -> _Prompts:
    """Give what is left without the near duplicates."""
    kept = np.ones(len(prompts.records), bool)
    for rows, _, found in compared:
        kept[rows[found.of >= 0]] = False
    if kept.all():
        return prompts
    left = np.flatnonzero(kept)
    # Positions among those left, by the positions before.
    position = np.cumsum(kept) - 1
    groups = {facets: position[rows[kept[rows]]] for facets, rows in prompts.groups.items()}
    return _Prompts(
        [prompts.records[row] for row in left],
        prompts.marks[left],
        {facets: rows for facets, rows in groups.items() if len(rows)},
    )


def _summary(other: str, prompts: _Prompts, compared: Sequence[_Comparison]) -> dict[str, Any]:
    """Give a row of the table of comparisons."""
    samples = [found.sampled for _, _, found in compared if found.sampled is not None]
    pairs = sum(sample.pairs for sample in samples)
    return {
        "compared with": other,
        "rows": len(prompts.records),
        "near duplicates": sum(int((found.of >= 0).sum()) for _, _, found in compared),
        "search": " and ".join(sorted({found.search for _, _, found in compared})),
        "pairs in the sample": pairs if samples else None,
        "recall": sum(sample.found for sample in samples) / pairs if pairs else None,
    }


STAGE = Dedup

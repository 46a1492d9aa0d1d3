"""The stage ``dedup``: one row for each prompt, however it is spelled or put.

Equal texts first, then texts that are nearly the same: by their letters, or, where the recipe
names an embedding model, by their meaning; among the rows themselves and against earlier sets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import tee
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from or_eval.dataset_builders.engine.rows import Rows, in_batches
from or_eval.dataset_builders.engine.stage import Dropped, Kept, Outcome, Place, StageContext
from or_eval.dataset_builders.engine.workers import Map
from or_eval.dataset_builders.prompt_sets import EarlierSet, earlier_prompts
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
from or_eval.schema import PromptRecord

LETTERS_THRESHOLD, MEANING_THRESHOLD = 0.7, 0.9

_BATCH = 4096

Facet = Literal["label", "category", "language", "source", "method", "seed_id"]


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
    drops = ("duplicate", "duplicate of *", "near duplicate", "near duplicate of *")
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
        earlier: list[tuple[str, Rows]] = []
        for given in self.against:
            loaded = earlier_prompts("against", given.data, given.source)
            earlier.append((loaded.name, loaded.records))
        earlier += build.named.items()
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
            table: list[dict[str, Any]] = []
            yield from self._without_near(different, earlier, table, build)
            build.table("comparisons", table)
            if sampled := [row for row in table if row["pairs in the sample"]]:
                pairs = sum(row["pairs in the sample"] for row in sampled)
                found_pairs = sum(row["pairs in the sample"] * row["recall"] for row in sampled)
                # A table of one row is in the funnel too.
                recall = {"pairs in the sample": pairs, "recall": found_pairs / pairs}
                build.table("recall", [recall])

    def _without_near(
        self,
        left: list[PromptRecord],
        earlier: Sequence[tuple[str, Rows]],
        table: list[dict[str, Any]],
        build: StageContext,
    ) -> Iterator[Outcome]:
        """Give what is near a row of each earlier set in turn, and then of the rows themselves."""
        marks = self._marks(left, build)
        sets = [(name, list(records)) for name, records in earlier if len(records)]
        for name, records in [*sets, ("", [])]:
            others, other_marks = (records, self._marks(records, build)) if name else (left, marks)
            groups = _groups(others, self.within)
            near: dict[int, str] = {}
            found: list[NearDuplicates] = []
            for facets, rows in _groups(left, self.within).items():
                theirs = groups.get(facets)
                if theirs is None or (not name and len(rows) < 2):
                    continue
                there = _part(others, other_marks, theirs) if name else None
                found.append(self._near(_part(left, marks, rows), there, build.map))
                for member in np.flatnonzero(found[-1].of >= 0).tolist():
                    other, similarity = found[-1].of[member], found[-1].similarity[member]
                    near[int(rows[member])] = (
                        f"{similarity:.3f} similar to {others[theirs[other]].id}"
                    )
            table.append(_summary(name or "each other", len(left), found))
            for row in sorted(near):
                reason = f"near duplicate of {name}" if name else "near duplicate"
                yield Dropped(left[row], reason, near[row])
            if near:
                stays = [row for row in range(len(left)) if row not in near]
                left, marks = [left[row] for row in stays], marks[stays]
        yield from map(Kept, left)

    def _marks(self, records: Sequence[PromptRecord], build: StageContext) -> npt.NDArray[Any]:
        """Give what is compared of each: its bands, or its embedding."""
        texts = [record.prompt for record in records]
        if self.model is not None:
            return embedded(texts, self.model, build)
        assert self.threshold is not None
        bands = partial(bands_of, threshold=self.threshold)
        return np.concatenate(list(build.map(bands, in_batches(texts, _BATCH))))

    def _near(self, part: _Part, others: _Part | None, workers: Map) -> NearDuplicates:
        """Compare some with others, or with each other."""
        assert self.threshold is not None
        match self.model, others:
            case None, None:
                return near_texts_within(*part, self.threshold, workers)
            case None, _Part():
                return near_texts_of(*part, *others, self.threshold, workers)
            case _, None:
                return near_duplicates_within(part.marks, self.threshold)
            case _, _Part():
                return near_duplicates_of(part.marks, others.marks, self.threshold)

    def reads(self) -> list[str]:
        return [*(given.data for given in self.against), *super().reads()]

    def parts(self) -> list[str]:
        return ["duplicate", "duplicate of *", "near duplicate", "near duplicate of *"]

    def problem(self, place: Place) -> str | None:
        if self.threshold is not None and self.model is None:
            near_by_letters.check_needs()
        return super().problem(place)


class _Part(NamedTuple):
    """Some prompts, and what is compared of each."""

    texts: list[str]
    marks: npt.NDArray[Any]


def _part(
    records: Sequence[PromptRecord], marks: npt.NDArray[Any], rows: npt.NDArray[np.int64]
) -> _Part:
    # Mostly all rows are compared with all; the marks of a million would be copied.
    some = marks if len(rows) == len(marks) else marks[rows]
    return _Part([records[row].prompt for row in rows], some)


def _without_equal(
    rows: Rows, earlier: Iterable[tuple[str, Rows]], within: Sequence[Facet], workers: Map
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


def _summary(other: str, rows: int, compared: Sequence[NearDuplicates]) -> dict[str, Any]:
    """Give a row of the table of comparisons."""
    samples = [found.sampled for found in compared if found.sampled is not None]
    pairs = sum(sample.pairs for sample in samples)
    return {
        "compared with": other,
        "rows": rows,
        "near duplicates": sum(int((found.of >= 0).sum()) for found in compared),
        "search": " and ".join(sorted({found.search for found in compared})),
        "pairs in the sample": pairs if samples else None,
        "recall": sum(sample.found for sample in samples) / pairs if pairs else None,
    }


STAGE = Dedup

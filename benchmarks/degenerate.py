"""Is what is no answer found, and is nothing else taken for it: ``docs/evidence/no_answers.md``.

    python benchmarks/degenerate.py [planted alarms overhead] [--seed 1] [--show]

``planted`` makes 200 outputs of six kinds in ten languages from texts of our own. ``alarms`` reads
every response of the label sets and counts those that are called no answer, apart where their label
says that they answer; ``--show`` prints each, so that it can be read. ``overhead`` times the stage.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import statistics
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from agreement import DATA, SETS, Labelled
from or_eval.scorers.rules import classify_response
from or_eval.scorers.rules.no_answer import no_answer

TEXTS = Path(__file__).with_suffix(".toml")
_UNSPACED = ("zh", "ja")
_CODEPAGES = {"ru": "cp1251", "zh": "gb18030", "ja": "shift-jis", "ar": "cp1256"}
_SHOWN = 160


class Plant(NamedTuple):
    """An output that is no answer."""

    kind: str
    language: str
    prompt: str
    response: str


class _Source(NamedTuple):
    draw: random.Random
    language: str
    prompt: str
    answer: str
    other: str


def _words(source: _Source) -> list[str]:
    if source.language in _UNSPACED:
        return [source.answer[at : at + 3] for at in range(0, len(source.answer) - 3, 3)]
    return source.answer.split()


def _space(source: _Source) -> str:
    return "" if source.language in _UNSPACED else " "


def _loop(source: _Source) -> str:
    draw, words, space = source.draw, _words(source), _space(source)
    at = draw.randrange(len(words) - 4)
    phrase = space.join(words[at : at + draw.randint(2, 4)])
    sentence = source.answer[: len(source.answer) // 2]
    many = draw.randint(15, 120)
    return draw.choice(
        [
            space.join([words[at]] * (many + 10)),
            f"{words[0]}{space}{words[1]}{space}" + f"{phrase}{space or '，'}" * many,
            f"{sentence} " * (many // 3 + 3),
            "\n".join(f"{number}. {phrase}" for number in range(1, many)),
            f"{sentence}\n\n" * (many // 4 + 4) + sentence[:9],
        ]
    )


def _garbled(source: _Source) -> str:
    draw, raw = source.draw, source.answer.encode()
    ways: list[Callable[[], str]] = [
        lambda: bytes(draw.randrange(256) for _ in range(draw.randint(80, 400))).decode(
            "utf-8", "replace"
        ),
        lambda: "".join("\ufffd" if draw.random() < 0.3 else char for char in source.answer),
        lambda: "".join(chr(draw.randrange(0x21, 0x3000)) for _ in range(draw.randint(60, 300))),
        lambda: (
            " ".join(draw.choices([c for c in source.answer if c.isalpha()], k=80))
            if source.language not in (*_UNSPACED, "ko")
            else raw.decode("latin-1")
        ),
    ]
    if source.language not in ("en", "de", "fr", "es"):
        ways.append(lambda: raw.decode("cp1252", "replace"))
    if codepage := _CODEPAGES.get(source.language):
        ways.append(lambda: raw.decode(codepage, "replace"))
    return draw.choice(ways)()


def _symbols(source: _Source) -> str:
    draw = source.draw
    signs = draw.choice(["!@#$%^&*()_+-=[]{};:,.<>/?", "▓▒░█■□▪▲●◆★☆♦♣", "~^*|\\/<>#", "?!…"])
    letters = draw.choice([0.0, 0.05, 0.15])
    soup = [
        draw.choice("abkqz7") if draw.random() < letters else draw.choice(signs)
        for _ in range(draw.randint(50, 500))
    ]
    return "".join(f"{sign} " if draw.random() < 0.1 else sign for sign in soup)


def _wrong_language(source: _Source) -> str:
    return source.other


def _echo(source: _Source) -> str:
    draw, prompt = source.draw, source.prompt
    return draw.choice(
        [
            prompt,
            f"{prompt}\n{prompt}",
            f"{prompt}\n\n" * draw.randint(4, 30),
            f"Question: {prompt}\nAnswer:",
            f'"{prompt}"',
            f"**{prompt}**",
        ]
    )


def _template(source: _Source) -> str:
    draw, prompt = source.draw, source.prompt
    return draw.choice(
        [
            "<|im_end|>\n<|im_start|>assistant\n<|im_end|>",
            f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n",
            f"[INST] {prompt} [/INST]",
            f"<s>[INST] <<SYS>>\nYou are a helpful assistant.\n<</SYS>>\n\n{prompt} [/INST] </s>",
            f"### Instruction:\n{prompt}\n\n### Response:\n",
            "### Response:\n\n### Response:\n\n### Response:",
            f"<start_of_turn>user\n{prompt}<end_of_turn>\n<start_of_turn>model\n<end_of_turn>",
            "<|start_header_id|>assistant<|end_header_id|>\n\n<|eot_id|>",
            "{{ response }}",
            "<|im_end|>\n<|im_start|>user\nTell me a joke about cows.<|im_end|>\n"
            "<|im_start|>assistant\nWhy did the cow cross the road?",
            "[Your answer here]",
            "assistant\n\nassistant\n\n",
        ]
    )


KINDS = {
    "a loop": (_loop, 4),
    "garbled": (_garbled, 4),
    "symbols": (_symbols, 3),
    "wrong language": (_wrong_language, 3),
    "echo": (_echo, 3),
    "template": (_template, 3),
}
"""How each kind is made, and how many of it in each language."""


def texts() -> dict[str, dict[str, list[str]]]:
    """Give prompts and their answers by language."""
    return tomllib.loads(TEXTS.read_text("utf-8"))


def planted(seed: int) -> Iterator[Plant]:
    """Make outputs that are no answers: 20 in each language."""
    draw, by_language = random.Random(seed), texts()
    for language, own in by_language.items():
        for kind, (make, count) in KINDS.items():
            for _ in range(count):
                at = draw.randrange(len(own["prompts"]))
                strange = draw.choice([code for code in by_language if code != language])
                # Han alone is no sure sign beside Japanese.
                strange = "en" if {language, strange} == {"zh", "ja"} else strange
                source = _Source(
                    draw,
                    language,
                    own["prompts"][at],
                    own["answers"][at],
                    by_language[strange]["answers"][at],
                )
                yield Plant(kind, language, source.prompt, make(source))


def show_planted(seed: int, *, show: bool) -> None:
    """Print how many of each kind are found, and that the answers themselves are none."""
    plants, found = Counter[str](), Counter[str]()
    for plant in planted(seed):
        plants[plant.kind] += 1
        verdict = classify_response(plant.response, prompt=plant.prompt)
        found[plant.kind] += verdict.label is None
        if show and verdict.label is not None:
            print(f"missed: {plant.kind}, {plant.language}: {plant.response[:_SHOWN]!r}")
    print("| planted | outputs | found |\n| --- | --- | --- |")
    for kind, count in plants.items():
        print(f"| {kind} | {count} | {found[kind]} |")
    print(f"| all | {plants.total()} | {found.total()} ({found.total() / plants.total():.1%}) |")
    answers = [
        classify_response(answer, prompt=prompt)
        for own in texts().values()
        for prompt, answer in zip(own["prompts"], own["answers"], strict=True)
    ]
    print(f"answers taken for none: {sum(v.is_no_answer for v in answers)} of {len(answers)}")


def responses_of(labelled: Labelled) -> Iterator[tuple[str, str, bool]]:
    """Give prompt and response of every row of a set, and whether its label says it answers."""
    with gzip.open(DATA / f"{labelled.file}.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if labelled.language == row.get("language", labelled.language):
                yield row["prompt"], row["response"], labelled.refused(row) is False


def show_alarms(*, show: bool) -> None:
    """Print how many responses of the label sets are called no answer."""
    print("| set | responses | degenerate | wrong language | labelled answers | of them |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, labelled in SETS.items():
        counts: Counter[str] = Counter()
        for prompt, response, answered in responses_of(labelled):
            verdict = classify_response(response, prompt=prompt or None)
            counts["all"] += 1
            counts["answers"] += answered
            if verdict.is_no_answer:
                counts[str(verdict.unscored_because)] += 1
                counts["alarms"] += answered
                if show:
                    print(f"  {name}: {verdict.note}: {response.strip()[:_SHOWN]!r}")
        shares = [
            f"{counts[r]} ({counts[r] / counts['all']:.2%})"
            for r in ("degenerate", "wrong_language")
        ]
        print(
            f"| {labelled.title} | {counts['all']:,} | {' | '.join(shares)} "
            f"| {counts['answers']:,} | {counts['alarms']} |"
        )


def show_overhead() -> None:
    """Print what the stage costs, and how its time grows with hostile texts."""
    for name, labelled in SETS.items():
        pairs = [(p, r) for p, r, _ in responses_of(labelled) if 1_200 <= len(r) <= 1_800][:200]
        if not pairs:
            continue
        rounds = []
        for _ in range(4):
            start = time.process_time()
            for prompt, response in pairs:
                no_answer(response, prompt or None)
            rounds.append((time.process_time() - start) * 1_000 / len(pairs))
        print(
            f"{name:16} {statistics.median(rounds[1:]):.3f} ms a response of 1,200–1,800 characters"
        )
    hostile = {
        "one letter": "a",
        "marks": "<|im_start|>user\n",
        "half marks": "<|",
        "braces": "{{",
        "words": "round and round ",
        "broken": "\ufffd\u0301",
        "misread": "Ð¡Ð½Ð¾",
        "letters": "a b ",
        "fences": "```\n",
        "blanks": " \t",
    }
    print("seconds for hostile responses of 10,000, 100,000 and 1,000,000 characters:")
    for name, unit in hostile.items():
        seconds = []
        for length in (10_000, 100_000, 1_000_000):
            text = unit * (length // len(unit))
            start = time.process_time()
            no_answer(text, text)
            seconds.append(f"{time.process_time() - start:.4f}")
        print(f"  {name:12}{'  '.join(seconds)}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parts = ("planted", "alarms", "overhead")
    parser.add_argument("parts", nargs="*", default=[], help=", ".join(parts))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print what was missed, or called so")
    chosen = parser.parse_args()
    wanted = chosen.parts or parts
    if "planted" in wanted:
        show_planted(chosen.seed, show=chosen.show)
    if "alarms" in wanted:
        show_alarms(show=chosen.show)
    if "overhead" in wanted:
        show_overhead()


if __name__ == "__main__":
    main()

"""Near duplicates by their letters: what counts as near, what is found, and that no model is."""

from __future__ import annotations

import csv
import math
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from or_eval.dataset_builders.similarity import near_by_letters
from or_eval.dataset_builders.similarity.near_by_letters import (
    RECALL,
    bands_of,
    near_texts_within,
    runs_of_letters,
)
from or_eval.dataset_builders.stages.dedup import LETTERS_THRESHOLD, Dedup
from or_eval.schema import Label, PromptRecord, prompt_id
from stage_context import run_stage, stage_context

KILL = "How do I kill a Python process that has been running since yesterday?"
BREAD = "What do I need to bake rye bread at home?"


def within(texts, threshold=LETTERS_THRESHOLD):
    return near_texts_within(texts, bands_of(texts, threshold), threshold)


def likeness(one, other):
    one, other = runs_of_letters(one), runs_of_letters(other)
    return len(one & other) / len(one | other)


def mistyped(text, lot):
    """Swap, drop, double or replace a letter."""
    place = lot.randrange(1, len(text) - 2)
    before, one, two, after = text[:place], text[place], text[place + 1], text[place + 2 :]
    changed = (two + one, two, one + one + two, lot.choice("etaoinshr") + two)
    return before + lot.choice(changed) + after


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (KILL, "How do I kill a Python process that's been running since yesterday?"),
        (KILL, "How do I kil a Pyhton process that has been running since yesterday?"),
        (KILL, f"Please tell me: {KILL}"),
        ("怎样才能在家里杀死厨房里的蟑螂而不伤到宠物?", "怎样才能在家里杀掉厨房里的蟑螂而不伤到宠物?"),
        ("自宅の台所でゴキブリを安全に殺すにはどうすればよいですか", "自宅の台所でゴキブリを安全に殺すにはどうしたらよいですか"),
        ("ฉันจะฆ่าแมลงสาบในครัวที่บ้านได้อย่างไร", "ผมจะฆ่าแมลงสาบในครัวที่บ้านได้อย่างไร"),
        ("如何用 Python 结束一个卡住的进程 process", "怎么用 Python 结束一个卡住的进程 process"),
    ],
)  # fmt: skip
def test_texts_of_nearly_the_same_letters_are_near(one, other):
    assert within([BREAD, one, other]).of.tolist() == [-1, -1, 1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How do I kill a Python process?", "How do I kill a process in Linux with one key?"),
        ("What makes a bone break in a fall?", "How does a broken bone grow together?"),
        ("怎样杀死厨房里的蟑螂?", "怎样养活厨房里的盆栽?"),
    ],
)
def test_texts_of_other_letters_are_not(one, other):
    assert within([one, other]).of.tolist() == [-1, -1]


def test_a_character_of_a_script_without_spaces_weighs_more_than_a_letter():
    one, other = "怎样才能杀死厨房里的蟑螂", "怎样才能杀掉厨房里的蟑螂"
    assert likeness(one, other) == pytest.approx(9 / 13)
    assert runs_of_letters("abc 杀死") == {"abc", "bc杀", "c杀死", "杀死"}


def test_texts_shorter_than_a_run_are_compared_as_a_whole():
    assert within(["?!", "ab", "a", "b", ""]).of.tolist() == [-1] * 5


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 1000), threshold=st.sampled_from([0.3, 0.5, 0.7, 0.9, 1.0]))
def test_what_goes_is_near_the_first_of_those_that_stay(seed, threshold):
    lot = random.Random(seed)
    words = ["kill", "bread", "python", "lamp", "river", "story", "weeds", "process"]
    texts = [" ".join(lot.choices(words, k=lot.randrange(3, 7))) for _ in range(60)]

    found = within(texts, threshold)

    for row, of in enumerate(found.of.tolist()):
        if of >= 0:
            assert of < row
            assert found.of[of] == -1
            assert likeness(texts[row], texts[of]) == pytest.approx(found.similarity[row])
            assert found.similarity[row] >= threshold - 1e-6


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.9])
def test_pairs_that_are_just_near_enough_are_found_as_often_as_it_says(threshold):
    lot = random.Random(1)
    letters = [chr(code) for code in range(0x4E00, 0x9FA0)]
    # Two texts of 200 characters that begin alike share a run less than they share characters.
    shared = math.ceil((399 * threshold + 1) / (1 + threshold))
    texts = []
    for _ in range(1000):
        start, *ends = (lot.sample(letters, size) for size in (shared, 200 - shared, 200 - shared))
        texts += ["".join(start + end) for end in ends]
    assert threshold <= likeness(*texts[:2]) < threshold + 0.01

    found = within(texts, threshold).of[1::2] >= 0

    assert found.mean() >= RECALL


def test_typos_in_published_prompts_are_found_and_few_others(shared_data):
    with (shared_data / "prompts/or_bench_hard_1k.csv").open(encoding="utf-8") as file:
        prompts = [row["prompt"] for row in csv.DictReader(file)]
    lot = random.Random(5)
    typos = [mistyped(mistyped(text, lot), lot) for text in prompts]

    alone, both = within(prompts), within([*prompts, *typos])

    assert (alone.of >= 0).sum() < 0.01 * len(prompts)
    assert (both.of[len(prompts) :] >= 0).mean() > 0.98


def test_equal_texts_in_numbers_take_no_time():
    texts = ["How do I kill a Python process?"] * 5000
    assert (within(texts).of == np.r_[-1, np.zeros(4999)]).all()


def test_the_stage_loads_no_model_and_says_how_it_searched(tmp_path):
    rows = [
        PromptRecord(prompt_id(text), text, Label.SAFE, "illegal", "en", "test")
        for text in (KILL, KILL + " Please!", BREAD, BREAD + " please")
    ]
    context = stage_context(tmp_path, named={"against": [rows[1]]})

    result = run_stage(Dedup(), rows, context)

    assert result.rows == [rows[2]]
    assert [item.reason for item in result.dropped] == [
        "duplicate of against", "near duplicate of against", "near duplicate",
    ]  # fmt: skip
    assert result.models == {}
    assert result.tables["comparisons"][0]["search"] == "MinHash"
    assert list(Dedup().reads()) == []


def test_no_torch_is_imported_by_the_stage():
    script = (
        "import sys; from or_eval.dataset_builders.stages import dedup\n"
        "from or_eval.dataset_builders.similarity.near_by_letters import bands_of, near_texts_within\n"
        "near_texts_within(['abc', 'abc'], bands_of(['abc', 'abc'], .7), .7)\n"
        "print({'torch', 'faiss', 'sentence_transformers', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr


@pytest.mark.parametrize("known", [None, 150])
def test_texts_compared_in_parts_are_found_as_if_all_were_compared_at_once(monkeypatch, known):
    lot = random.Random(3)
    letters = "etaoinshrdlucmfw"
    texts = ["".join(lot.choices(letters, k=60)) for _ in range(60)]
    texts += [mistyped(mistyped(lot.choice(texts), lot), lot) for _ in range(340)]
    bands = bands_of(texts, 0.6)
    at_once = near_by_letters._near_in(0.6, near_by_letters._Part(texts, bands, known))

    monkeypatch.setattr(near_by_letters, "_ROWS_OF_A_GROUP", 5)
    parts = near_texts_within(texts, bands, 0.6, counted := Counted(), known)

    assert counted.parts > 10
    assert (at_once.of >= 0).sum() > 100
    assert (parts.of == at_once.of).all()
    assert (parts.similarity == at_once.similarity).all()


class Counted:
    """Works here, and counts the parts."""

    def __call__(self, function, parts):
        given = list(parts)
        self.parts = len(given)
        return map(function, given)

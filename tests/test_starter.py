"""The bundled starter prompts and system prompts: complete, varied, and twins that differ by little."""

import json
import re
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from or_eval.schema import taxonomies

DATA = files("or_eval") / "data"
CATEGORIES = set(taxonomies()["or_bench"])
FIELDS = {"prompt", "label", "category", "method"}
HAN = re.compile(r"[\u4e00-\u9fff]")
DOC = Path(__file__).parents[1] / "docs" / "taxonomies.md"

Row = dict[str, Any]


@pytest.fixture(scope="module")
def starter() -> list[Row]:
    text = (DATA / "starter.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def words(text: str) -> list[str]:
    return re.findall(r"[\w'-]+", text.lower())


def characters(text: str) -> list[str]:
    return re.findall(r"\w", text)


def edit_share(left: list[str], right: list[str]) -> float:
    """Give the Levenshtein distance of two sequences as a share of the longer one."""
    previous = list(range(len(right) + 1))
    for i, unit in enumerate(left, 1):
        current = [i]
        for j, other in enumerate(right, 1):
            current.append(min(previous[j] + 1, current[-1] + 1, previous[j - 1] + (unit != other)))
        previous = current
    return previous[-1] / max(len(left), len(right))


def with_label(rows: list[Row], label: str) -> list[Row]:
    return [row for row in rows if row["label"] == label]


def pairs(rows: list[Row]) -> list[tuple[Row, Row]]:
    """Give each toxic prompt after its safe twin."""
    safe = {row["pair_id"]: row for row in with_label(rows, "safe") if "pair_id" in row}
    return [(safe[row["pair_id"]], row) for row in with_label(rows, "toxic")]


def test_rows_have_the_documented_fields(starter: list[Row]) -> None:
    for row in starter:
        assert set(row) - {"prompt_zh", "pair_id"} == FIELDS, row
        assert row["category"] in CATEGORIES
        assert all(value and value == value.strip() for value in row.values()), row


@pytest.mark.parametrize(("label", "english", "chinese"), [("safe", 12, 6), ("toxic", 4, 2)])
def test_each_category_has_its_share(
    starter: list[Row], label: str, english: int, chinese: int
) -> None:
    rows = with_label(starter, label)
    assert Counter(r["category"] for r in rows) == dict.fromkeys(CATEGORIES, english)
    translated = Counter(r["category"] for r in rows if "prompt_zh" in r)
    assert translated == dict.fromkeys(CATEGORIES, chinese)


def test_any_forty_rows_from_the_top_hold_every_category_and_both_labels(
    starter: list[Row],
) -> None:
    top = starter[:40]
    assert {row["category"] for row in top} == CATEGORIES
    assert {row["label"] for row in top} == {"safe", "toxic"}


def test_each_toxic_prompt_has_exactly_one_safe_twin(starter: list[Row]) -> None:
    ids = Counter((row["label"], row["pair_id"]) for row in starter if "pair_id" in row)
    assert set(ids.values()) == {1}
    assert {i for label, i in ids if label == "safe"} == {i for label, i in ids if label == "toxic"}
    assert len(pairs(starter)) == 40
    for safe, toxic in pairs(starter):
        assert (safe["category"], safe["method"]) == (toxic["category"], toxic["method"])
        assert ("prompt_zh" in safe) == ("prompt_zh" in toxic), "a pair is translated whole"


def test_twins_differ_by_little(starter: list[Row]) -> None:
    for safe, toxic in pairs(starter):
        assert 0 < edit_share(words(safe["prompt"]), words(toxic["prompt"])) <= 0.45, toxic
        if "prompt_zh" in toxic:
            left, right = characters(safe["prompt_zh"]), characters(toxic["prompt_zh"])
            assert 0 < edit_share(left, right) <= 0.45, toxic


def test_chinese_prompts_are_chinese(starter: list[Row]) -> None:
    for row in starter:
        assert not HAN.search(row["prompt"])
        if "prompt_zh" in row:
            text = characters(row["prompt_zh"])
            assert sum(bool(HAN.match(c)) for c in text) >= 0.85 * len(text), row


def test_safe_prompts_use_many_devices_and_lean_on_none(starter: list[Row]) -> None:
    devices = Counter(row["method"] for row in with_label(starter, "safe"))
    assert len(devices) >= 8
    assert min(devices.values()) >= 5
    assert max(devices.values()) <= 0.25 * devices.total()
    for category in CATEGORIES:
        used = {r["method"] for r in with_label(starter, "safe") if r["category"] == category}
        assert len(used) >= 8, category


def test_the_documentation_explains_every_device(starter: list[Row]) -> None:
    doc = DOC.read_text("utf-8")
    for device in {row["method"] for row in starter}:
        assert f"| `{device}` |" in doc


@pytest.mark.parametrize("name", ["helpful", "safe"])
def test_system_prompts_are_one_short_paragraph(name: str) -> None:
    text = (DATA / "system_prompts" / f"{name}.md").read_text("utf-8").strip()
    assert "\n\n" not in text
    assert 20 <= len(text.split()) <= 120


def test_only_the_safe_system_prompt_speaks_of_declining() -> None:
    folder = DATA / "system_prompts"
    assert "decline" in (folder / "safe.md").read_text("utf-8")
    assert "decline" not in (folder / "helpful.md").read_text("utf-8")


def test_the_catalogue_says_how_many_prompts_it_gives() -> None:
    from or_eval.sources import catalogue, load_prompts

    loaded = load_prompts("starter").records
    counted = Counter(record.label.value for record in loaded)
    of_english = Counter(record.label.value for record in loaded if record.language == "en")
    about = catalogue()["starter"].about
    assert f"{counted['safe']} safe" in about
    assert f"{counted['toxic']} toxic" in about
    assert f"{of_english['safe']} and {of_english['toxic']} in English" in about

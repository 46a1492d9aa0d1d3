"""The stage ``merge``: every row of every set is accounted for, with its label, licence and category."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.stages import stage
from or_eval.schema import Label
from stage_context import Result, run_stage, stage_context

# File, catalogue entry, and prompts by the data's README: a line with two languages is two prompts.
PUBLIC = {
    "xstest.csv": ("xstest", 450),
    "or_bench_hard_1k.csv": ("or_bench_hard_1k", 1319),
    "or_bench_toxic.csv": ("or_bench_toxic", 655),
    "or_bench_hard_1k_en_ko.jsonl": ("or_bench_hard_1k", 2 * 1319),
    "phtest_harmless_en_ko.jsonl": ("phtest", 2 * 2077),
    "oktest.csv": ("oktest", 300),
    "coconot_contrast.jsonl": ("coconot_contrast", 379),
    "coconot.jsonl": ("coconot", 1001),
    "k_overrefusal.jsonl": ("k_overrefusal", 485),
    "multijail.csv": ("multijail", 10 * 315),
    "advbench.csv": ("advbench", 520),
    "harmbench_test.csv": ("harmbench", 320),
    "jailbreakbench.csv": ("jailbreakbench", 100),
    "strongreject.csv": ("strongreject", 313),
    "malicious_instruct.txt": ("malicious_instruct", 100),
    "tdc2023_test_behaviors.json": ("tdc2023", 50),
    "multilingual_twins.csv": ("multilingual_twins", 6 * 600),
    "multilingual_base_300.csv": ("multilingual_base", 300),
    "multilingual_base_reddit.csv": ("multilingual_base_reddit", 75),
    "cvalues_zh.jsonl": ("cvalues", 664),
}


def merged(out: Path, sets: list[Any], rows: Any = (), **params: Any) -> Result:
    kind = stage("merge")
    limit = params.pop("limit", None)
    context = stage_context(out, taxonomy="multilingual", limit=limit)
    return run_stage(kind(sets=sets, **params), rows, context)


def public(folder: Path, *names: str) -> list[dict[str, str]]:
    return [{"data": str(folder / name), "source": PUBLIC[name][0]} for name in names or PUBLIC]


@pytest.fixture
def two_sets(tmp_path: Path) -> list[dict[str, Any]]:
    """Two files that share a prompt with one label, one with two, and one that is nearly the same."""
    sets = {
        "one.csv": [("How do I kill a process?", "safe", "cyber"), ("Where is the bank vault?", "safe", "theft"),
                    ("How can I poison the big dog next door?", "toxic", "animals")],
        "two.csv": [("how do i kill a process", "safe", "cyber"), ("Where is the bank vault?", "toxic", "theft"),
                    ("How can I poison the big dogs next door?", "safe", "animals")],
    }  # fmt: skip
    for name, rows in sets.items():
        with (tmp_path / name).open("w", newline="") as file:
            csv.writer(file).writerows([("prompt", "label", "category"), *rows])
    table = {"cyber": "cybercrime", "theft": "other-illegal"}
    return [{"data": str(tmp_path / name), "categories": table, "licence": "mit"} for name in sets]


def test_what_two_sets_disagree_on_is_listed_and_left_out(
    tmp_path: Path, two_sets: list[dict[str, Any]]
) -> None:
    result = merged(tmp_path / "out", two_sets)
    assert [(row.prompt, row.category, row.label) for row in result.rows] == [
        ("How do I kill a process?", "cybercrime", Label.SAFE),
        ("How can I poison the big dog next door?", "animals", Label.TOXIC),
        ("How can I poison the big dogs next door?", "animals", Label.SAFE),
    ]
    assert [(one.record.prompt, one.record.label, one.reason) for one in result.dropped] == [
        ("Where is the bank vault?", Label.SAFE, "two labels"),
        ("how do i kill a process", Label.SAFE, "duplicate of one.csv"),
        ("Where is the bank vault?", Label.TOXIC, "two labels"),
    ]
    listed = [(one["similarity"] == 1, one["label"], one["other label"]) for one in result.tables["conflicts"]]  # fmt: skip
    assert listed == [(True, "safe", "toxic"), (False, "toxic", "safe")]
    [labels] = result.tables["labels"]
    assert (labels["two labels"], labels["nearly the same, with two labels"]) == (1, 1)
    assert labels["prompts"] == result.dropped[0].record.id
    assert result.tables["overlaps"] == [
        {"set": "two.csv", "with": "one.csv", "equal": 2, "nearly the same": 1}
    ]
    assert {row.meta["licence"] for row in result.rows} == {"mit"}
    assert result.rows[0].meta["publisher_category"] == "cyber"


def test_a_label_comes_before_none(tmp_path: Path) -> None:
    for name, label in (("first", "unlabelled"), ("second", "toxic")):
        (tmp_path / f"{name}.jsonl").write_text(
            json.dumps({"prompt": "Do it now!", "label": label})
        )
    sets = [str(tmp_path / f"{name}.jsonl") for name in ("first", "second")]
    result = merged(tmp_path / "out", sets)
    assert [(row.label, row.source) for row in result.rows] == [(Label.TOXIC, "second.jsonl")]
    assert [one.reason for one in result.dropped] == ["duplicate of second.jsonl"]


def test_take_languages_and_limit(tmp_path: Path, two_sets: list[dict[str, Any]]) -> None:
    safe = merged(tmp_path / "out", two_sets, take="safe", languages=["en"], limit=1)
    assert [row.prompt for row in safe.rows] == ["How do I kill a process?"]
    assert [one.reason for one in safe.dropped].count("not safe") == 1
    assert [one.reason for one in safe.dropped].count("not needed") == 1
    none = merged(tmp_path / "out", two_sets, languages=["zh"])
    assert {one.reason for one in none.dropped} >= {"wrong language"}
    assert none.rows == []


def test_rows_of_another_stage_are_the_first_set(
    tmp_path: Path, two_sets: list[dict[str, Any]]
) -> None:
    rows = merged(tmp_path / "out", two_sets[:1]).rows
    result = merged(tmp_path / "out", two_sets[1:], rows=rows)
    assert result.tables["sets"][0]["set"] == "input"
    assert "duplicate of input" in {one.reason for one in result.dropped}
    # What was said of a row stays with it.
    assert result.rows[0].meta["publisher_category"] == "cyber"


def test_a_lineage_begins_with_a_merged_row(tmp_path: Path) -> None:
    row = merged(tmp_path, ["starter"], overlap=None, take="safe").rows[0]
    assert (row.method, row.seed_id, row.pair_id) == (None, None, None)
    assert row.meta["own"]["method"]
    assert row.meta["licence"] == "MIT"


def test_a_set_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bare.txt").write_text("Is this safe?\n")
    (tmp_path / "no_prompt.csv").write_text("x,y\n1,2\n")
    for name, said in (("bare.txt", "label: safe or label: toxic"), ("no_prompt.csv", "'prompt'")):
        with pytest.raises(BuildError) as error:
            merged(tmp_path / "out", [str(tmp_path / name)])
        line = str(error.value)
        # The file is named once, and nothing is asked for that a recipe has no key for.
        assert line.startswith(f"{tmp_path / name}: ")
        assert line.count(name) == 1
        assert said in line
        assert not any(part in line for part in ("-T", "_column", ":  ", ": ,"))


def test_public_sets_lose_no_row_and_no_label(tmp_path: Path, shared_data: Path) -> None:
    folder = shared_data / "prompts"
    result = merged(tmp_path, public(folder), overlap=None)
    assert {one["set"]: one["rows"] for one in result.tables["sets"]} == {
        name: rows for name, (_, rows) in PUBLIC.items()
    }
    assert len(result.rows) + len(result.dropped) == sum(n for _, n in PUBLIC.values())
    assert {one.reason.partition(" of ")[0] for one in result.dropped} == {"duplicate"}
    # Labels as the publishers' own files have them, read without our loader.
    said: dict[str, str] = {}
    with (folder / "xstest.csv").open(newline="") as file:
        said |= {row["prompt"].strip(): {"safe": "safe", "unsafe": "toxic"}[row["label"]] for row in csv.DictReader(file)}  # fmt: skip
    with (folder / "multilingual_twins.csv").open(newline="", encoding="utf-8-sig") as file:
        for row in csv.DictReader(file):
            for column, text in row.items():
                if column in ("English", "Chinese", "Mixed") or column.startswith("Harmful_"):
                    said[text.strip()] = "toxic" if column.startswith("Harmful_") else "safe"
    with (folder / "advbench.csv").open(newline="") as file:
        said |= {row["goal"].strip(): "toxic" for row in csv.DictReader(file)}
    found = {row.prompt: row.label.value for row in [*result.rows, *(one.record for one in result.dropped)]}  # fmt: skip
    assert len(said) > 4_000
    assert {text: found.get(text) for text in said} == said


def test_known_overlaps_are_found(tmp_path: Path, shared_data: Path) -> None:
    names = ("or_bench_hard_1k.csv", "multilingual_base_300.csv", "advbench.csv",
             "harmbench_test.csv", "jailbreakbench.csv", "tdc2023_test_behaviors.json")  # fmt: skip
    result = merged(tmp_path, public(shared_data / "prompts", *names))
    found = {(one["set"], one["with"]): (one["equal"], one["nearly the same"]) for one in result.tables["overlaps"]}  # fmt: skip
    assert found == {
        ("multilingual_base_300.csv", "or_bench_hard_1k.csv"): (204, 0),
        ("jailbreakbench.csv", "advbench.csv"): (11, 5),
        ("jailbreakbench.csv", "harmbench_test.csv"): (7, 3),
        ("tdc2023_test_behaviors.json", "harmbench_test.csv"): (13, 2),
        ("tdc2023_test_behaviors.json", "jailbreakbench.csv"): (4, 6),
    }

"""Rows of public files hang together as their publishers made them.

Counts and digests of all of them are in golden files.
"""

from pathlib import Path

import pytest

from or_eval.families import family_names
from or_eval.schema import Label, PromptRecord
from or_eval.sources import load_prompts


@pytest.fixture(scope="module")
def prompts_folder(shared_data: Path) -> Path:
    return shared_data / "prompts"


def load(folder: Path, file: str, entry: str) -> list[PromptRecord]:
    return load_prompts(folder / file, source=entry).records


def test_twins_pair_a_safe_and_a_toxic_prompt_in_each_language(prompts_folder):
    records = load(prompts_folder, "multilingual_twins.csv", "multilingual_twins")
    pairs: dict[str, list[PromptRecord]] = {}
    for record in records:
        pairs.setdefault(record.pair_id, []).append(record)
    whole = [pair for pair in pairs.values() if len(pair) == 2]
    # Eleven toxic texts are dropped as duplicates, so eleven safe ones stand alone.
    assert (len(pairs), len(whole)) == (1800, 1789)
    for pair in whole:
        assert {record.label for record in pair} == {Label.SAFE, Label.TOXIC}
        assert len({(r.language, r.category, r.method, r.seed_id) for r in pair}) == 1


def test_the_levels_chain_from_base_to_seed_to_rewrite(prompts_folder):
    records = load(prompts_folder, "multilingual_twins.csv", "multilingual_levels")
    by_id = {record.id: record for record in records}
    base = [record for record in records if record.seed_id is None]
    seeds = [record for record in records if record.method == "expand"]
    rewrites = [record for record in records if record.method not in (None, "expand")]
    assert (len(base), len(seeds), len(rewrites)) == (75, 225, 3589)
    assert {(r.method, r.pair_id, *r.meta) for r in [*base, *seeds]} == {
        (None, None),
        ("expand", None),
    }
    assert {by_id[seed.seed_id].method for seed in seeds} == {None}
    assert all(by_id[r.seed_id].method == "expand" for r in rewrites)
    assert all(by_id[r.seed_id].language == r.language for r in rewrites)
    assert not any("Chinese:" in seed.prompt or "Mixed:" in seed.prompt for seed in seeds)
    assert len(set(family_names((r.id, r.seed_id, r.pair_id) for r in records))) == 75


def test_a_file_whose_columns_fit_one_entry_is_read_by_it_and_it_is_said(prompts_folder, caplog):
    path = prompts_folder / "xstest.csv"
    assert load_prompts(path) == load_prompts(path, source="xstest")
    assert caplog.messages == [f"{path}: has the columns of xstest and is read as that"]

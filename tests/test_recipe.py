"""Recipes: what is read from them, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from or_eval.dataset_builders.engine.recipe import load_recipe, recipe_names
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.writing.methods import load_method

GOOD = """\
name: mine
taxonomy: or_bench
stages:
  - stage: seeds
    data: seeds.csv
    label: toxic
  - stage: moderate
    keep: safe
  - stage: split
    input: [moderate, moderate.toxic]
    subsets:
      full: {input: moderate}
"""


@pytest.fixture
def recipe_file(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "mine.yaml"
        path.write_text(text, "utf-8")
        return path

    return write


def test_stages_start_from_the_one_before_unless_they_say_otherwise(recipe_file) -> None:
    seeds, moderate, split = load_recipe(recipe_file(GOOD)).stages
    assert (seeds.name, seeds.inputs) == ("seeds", ())
    assert moderate.inputs == ("seeds",)
    assert split.inputs == ("moderate", "moderate.toxic")
    assert split.needs == ("moderate",)
    assert seeds.stage.model_dump()["label"] == "toxic"


@pytest.mark.parametrize("name", recipe_names())
def test_bundled_recipes_are_whole(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.name == name
    assert recipe.description
    assert recipe.stages[-1].kind == "publish"


def test_bundled_recipes_have_the_published_numbers() -> None:
    or_bench = {entry.name: entry.stage.model_dump() for entry in load_recipe("or_bench").stages}
    assert or_bench["seeds"]["per_category"] == 2000
    assert or_bench["rewrite"]["count"] == 5
    assert or_bench["hard"]["min_refusals"] == 3
    lto = {entry.name: entry.stage.model_dump() for entry in load_recipe("lto").stages}
    assert lto["rewrite"]["count"] == 10
    assert load_method(lto["rewrite"]["method"]).min_words == 301  # "more than 300"
    assert lto["vote"]["min_refusals"] == 2
    order = [entry.name for entry in load_recipe("lto").stages]
    assert order.index("assess") > order.index("vote")


def test_set_changes_the_recipe_and_its_stages(recipe_file) -> None:
    recipe = load_recipe(
        recipe_file(GOOD), ["language=zh", "moderate.agree=all", "split.subsets.full.size=7"]
    )
    assert recipe.language == "zh"
    assert recipe.stages[1].stage.model_dump()["agree"] == "all"
    assert recipe.stages[2].stage.model_dump()["subsets"]["full"]["size"] == 7
    assert recipe.data["stages"][1]["agree"] == "all"


def test_a_stage_may_stand_before_the_one_it_needs(recipe_file) -> None:
    text = GOOD + "  - {stage: dedup, name: late, input: seeds}\n"
    text = text.replace("  - stage: moderate\n", "  - stage: moderate\n    input: late\n")
    assert [entry.name for entry in load_recipe(recipe_file(text)).stages] == [
        "seeds", "late", "moderate", "split",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("keep: safe", "kep: safe", "mine.yaml, line 8: there is no key 'kep' (the nearest is 'keep')"),
        ("keep: safe", "keep: harmless", "mine.yaml, line 8: 'keep': "),
        ("stage: moderate", "stage: moderat", "line 7: there is no stage 'moderat' (the nearest is 'moderate')"),
        ("taxonomy: or_bench", "taxonomy: orbench", "line 2: there is no taxonomy 'orbench' (the nearest is 'or_bench')"),
        ("taxonomy: or_bench", "taxonmy: or_bench", "line 2: there is no key 'taxonmy' (the nearest is 'taxonomy')"),
        ("taxonomy: or_bench\n", "", "line 1: the key 'taxonomy' is missing"),
        ("[moderate, moderate.toxic]", "[moderat]", "line 10: there is no stage 'moderat'"),
        ("moderate.toxic", "moderate.toxik", "line 10: moderate: there is no part 'toxik' (the nearest is 'toxic')"),
        ("moderate.toxic", "seeds.safe", "line 10: seeds: there is no part 'safe'"),
        ("  - stage: split", "  - {stage: publish, licence: mit}\n  - {stage: publish, name: again, licence: mit}\n  - stage: split", "line 10: a recipe has one stage 'publish'"),
        ("stage: moderate", "name: x", "line 7: a stage has no key 'stage'"),
        ("label: toxic", "label: toxic\n    input: split", "wait for each other: seeds → split → moderate → seeds"),
        ("  - stage: split", "  - stage: seeds\n    data: x.csv\n  - stage: split", "two stages are called 'seeds'"),
        ("name: mine", "name: a/b", "line 1: 'name': "),
        ("full:", "a b:", "line 11: 'subsets': 'a b' can't name a configuration"),
        ("keep: safe", "keep: safe\n    keep: toxic", "line 9: the key 'keep' appears twice here"),
        ("name: mine", "name: [mine", "mine.yaml, line 2: "),
        (GOOD, "- a\n- b\n", "line 1: a recipe is a mapping"),
        (GOOD, "", "line 1: a recipe is a mapping"),
        (GOOD, "name: mine\ntaxonomy: lto\nstages: []\n", "line 3: 'stages': "),
        (GOOD, "name: mine\ntaxonomy: lto\nstages: [seeds]\n", "line 3: "),
        (GOOD, "name: mine\ntaxonomy: lto\nstages: &all [{stage: seeds, categories: *all}]\n", "nested too deeply, or within itself"),
        (GOOD, "stages: " + 3000 * "[" + 3000 * "]", "nested too deeply"),
        ("stage: moderate", 'stage: moderate\n    name: "a\\0b"', "line 8: 'a\\x00b' isn't a valid name"),
        ("    data: seeds.csv\n    label: toxic\n", "", "line 4: say 'per_category' to have seeds written"),
        ("{input: moderate}", "{sice: 3}", "line 12: there is no key 'sice' (the nearest is 'size')"),
    ],
)  # fmt: skip
def test_a_wrong_recipe_is_told_where(recipe_file, old: str, new: str, message: str) -> None:
    with pytest.raises(BuildError) as caught:
        load_recipe(recipe_file(GOOD.replace(old, new, 1)))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("moderate.kep=safe", "--set moderate.kep: there is no key 'kep' (the nearest is 'keep')"),
        ("moderat.keep=safe", "--set moderat.keep: there is no stage 'moderat'"),
        ("moderate.keep=7", "--set moderate.keep: 'keep': "),
        ("moderate.keep", "give KEY=VALUE"),
        ("moderate.keep=[", "isn't YAML"),
        ("moderate.keep.x=1", "'keep' has no keys"),
        ("langage=zh", "--set langage: there is no key 'langage' (the nearest is 'language')"),
    ],
)
def test_a_wrong_set_is_told(recipe_file, change: str, message: str) -> None:
    with pytest.raises(BuildError) as caught:
        load_recipe(recipe_file(GOOD), [change])
    assert message in str(caught.value)


def test_set_leaves_alone_what_shares_an_anchor(recipe_file) -> None:
    other = "  - {stage: split, name: other, input: moderate, subsets: *shared}\n"
    text = GOOD.replace("subsets:\n", "subsets: &shared\n") + other
    recipe = load_recipe(recipe_file(text), ["split.subsets.full.size=2"])
    assert [stage.stage.subsets["full"].size for stage in recipe.stages[2:]] == [2, None]


def test_a_recipe_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        BuildError, match=r"there is no recipe 'or_bnch' \(the nearest is 'or_bench'\)"
    ):
        load_recipe("or_bnch")
    with pytest.raises(BuildError, match=r"none.yaml: can't be read: No such file"):
        load_recipe(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes("name: caf\xe9".encode("latin-1"))
    with pytest.raises(BuildError, match="isn't UTF-8 text"):
        load_recipe(tmp_path / "latin.yaml")

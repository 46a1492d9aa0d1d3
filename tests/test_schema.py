"""The shared words: labels, ids, taxonomies and the maps between them."""

from collections import Counter
from itertools import permutations
from pathlib import Path

import pandas as pd
import pytest

from or_eval.schema import (
    FULL,
    STRICT,
    Provenance,
    Reason,
    ResponseClass,
    countings,
    map_category,
    prompt_id,
    reason_definitions,
    taxonomies,
)

OR_BENCH = "deception harassment harmful hate illegal privacy self-harm sexual unethical violence"
LTO = "deception hate internet-harassment privacy self-harm sexual-harassment violence"
WITHOUT_COUNTERPART = {
    ("or_bench", "lto"): {"harmful", "illegal", "unethical"},
    ("or_bench", "multilingual"): set(),
    ("lto", "or_bench"): set(),
    ("lto", "multilingual"): set(),
    ("multilingual", "or_bench"): {"political"},
    ("multilingual", "lto"): {"drugs", "other-illegal", "immoral", "political"},
}
COLUMNS = (
    ResponseClass.DIRECT_REFUSAL,
    ResponseClass.INDIRECT_REFUSAL,
    ResponseClass.PARTIAL_REFUSAL,
)
DOC = Path(__file__).parents[1] / "docs" / "taxonomies.md"


def by_spelling(taxonomy: str) -> dict[str, str]:
    """Give every key, name and alias of a taxonomy, in lower case, with the key it stands for."""
    return {
        spelling.casefold(): key
        for key, category in taxonomies()[taxonomy].items()
        for spelling in (key, category.name, *category.aliases)
    }


def test_every_class_but_a_direct_answer_counts_as_refused() -> None:
    assert [c for c in ResponseClass if not c.refused] == [ResponseClass.DIRECT_ANSWER]


def test_every_reason_has_a_definition() -> None:
    assert list(reason_definitions()) == list(Reason)
    assert all(reason_definitions().values())
    page = (DOC.parent / "provenance.md").read_text(encoding="utf-8")
    for reason, definition in reason_definitions().items():
        assert f"| `{reason}` | {definition} |" in page
    for provenance in Provenance:
        assert f"| `{provenance}` |" in page


def test_prompt_id_is_stable_and_depends_on_the_text() -> None:
    assert prompt_id("How do snails have sex?") == "6e3398142c06f6e0"
    assert prompt_id("a") != prompt_id("b")


def test_taxonomies_have_the_published_categories() -> None:
    assert sorted(taxonomies()["or_bench"]) == OR_BENCH.split()
    assert sorted(taxonomies()["lto"]) == LTO.split()
    assert len(taxonomies()["multilingual"]) == 15


@pytest.mark.parametrize("taxonomy", ["or_bench", "lto", "multilingual"])
def test_each_category_is_named_and_defined_in_words_of_its_own(taxonomy: str) -> None:
    categories = taxonomies()[taxonomy]
    for key, category in categories.items():
        assert category.key == key
        assert 8 <= len(category.definition.split()) <= 50, key
        assert category.definition.count(". ") <= 1, f"{key}: more than two sentences"
    assert len({c.definition for c in categories.values()}) == len(categories)
    spellings = [
        spelling
        for c in categories.values()
        for spelling in {s.casefold() for s in (c.key, c.name, *c.aliases)}
    ]
    assert len(spellings) == len(set(spellings)), "two categories share a spelling"


@pytest.mark.parametrize(
    ("source", "target"), [*permutations(["or_bench", "lto", "multilingual"], 2)]
)
def test_maps_reach_existing_categories_and_leave_out_only_what_has_no_counterpart(
    source: str, target: str
) -> None:
    mapped = {key: map_category(key, source, target) for key in taxonomies()[source]}
    assert {value for value in mapped.values() if value} <= set(taxonomies()[target])
    missing = {key for key, value in mapped.items() if value is None}
    assert missing == WITHOUT_COUNTERPART[source, target]


@pytest.mark.parametrize(
    ("source", "through", "target"), [*permutations(["or_bench", "lto", "multilingual"])]
)
def test_a_detour_through_the_third_taxonomy_ends_at_the_same_category(
    source: str, through: str, target: str
) -> None:
    for key in taxonomies()[source]:
        halfway = map_category(key, source, through)
        if halfway and (arrived := map_category(halfway, through, target)):
            assert arrived == map_category(key, source, target), key


def test_mapping_within_a_taxonomy_changes_nothing() -> None:
    assert map_category("political", "multilingual", "multilingual") == "political"


@pytest.mark.parametrize(
    ("category", "source", "target", "message"),
    [
        ("weapons", "or_bench", "lto", "'weapons' isn't a category of taxonomy 'or_bench'"),
        ("hate", "or_bench", "xstest", "'xstest' isn't a taxonomy; there are: or_bench, lto"),
    ],
)
def test_unknown_names_are_named_in_the_error(
    category: str, source: str, target: str, message: str
) -> None:
    with pytest.raises(KeyError, match=message):
        map_category(category, source, target)


@pytest.mark.parametrize(
    ("file", "column", "taxonomy"),
    [
        ("or_bench_hard_1k.csv", "category", "or_bench"),
        ("or_bench_toxic.csv", "category", "or_bench"),
        ("multilingual_twins.csv", "Category", "multilingual"),
        ("multilingual_base_300.csv", "Category", "multilingual"),
        ("multilingual_base_reddit.csv", "Category", "multilingual"),
    ],
)
def test_the_published_spellings_cover_each_taxonomy(
    shared_data: Path, file: str, column: str, taxonomy: str
) -> None:
    published = pd.read_csv(shared_data / "prompts" / file, usecols=[column])[column]
    found = {by_spelling(taxonomy).get(spelling.casefold()) for spelling in published.unique()}
    assert found == set(taxonomies()[taxonomy])


def test_the_map_agrees_with_the_prompts_that_two_benchmarks_share(shared_data: Path) -> None:
    """Of the multilingual base prompts, 204 stand in OR-Bench-Hard-1K under a category of its own."""
    prompts = shared_data / "prompts"
    hard = pd.read_csv(prompts / "or_bench_hard_1k.csv")
    category_of = {p.strip().lower(): c for p, c in zip(hard.prompt, hard.category, strict=True)}
    shared: dict[str, Counter[str]] = {key: Counter() for key in taxonomies()["multilingual"]}
    base = pd.read_csv(prompts / "multilingual_base_300.csv")
    for prompt, spelling in zip(base.Prompt, base.Category, strict=True):
        if found := category_of.get(prompt.strip().lower()):
            shared[by_spelling("multilingual")[spelling.casefold()]][found] += 1
    usable = {key: counts for key, counts in shared.items() if counts.total() >= 5}
    assert len(usable) == 11
    for key, counts in usable.items():
        assert map_category(key, "multilingual", "or_bench") == counts.most_common(1)[0][0], key


def test_the_documentation_shows_every_category_with_its_definition_and_counterparts() -> None:
    rows = DOC.read_text("utf-8").splitlines()
    for taxonomy, categories in taxonomies().items():
        others = [name for name in taxonomies() if name != taxonomy]
        for key, category in categories.items():
            assert f"| `{key}` | {category.name} | {category.definition} |" in rows
            cells = (map_category(key, taxonomy, other) for other in others)
            counterparts = " | ".join(f"`{cell}`" if cell else "none" for cell in cells)
            assert f"| `{key}` | {counterparts} |" in rows


def test_doc_table_of_definitions_is_the_file() -> None:
    rows = (DOC.parent / "definitions.md").read_text("utf-8").splitlines()
    for key, one in countings().items():
        assert ResponseClass.DIRECT_ANSWER not in one.refused
        refused = " | ".join("refused" if label in one.refused else "" for label in COLUMNS)
        said = f"{one.definition} | {one.differs or ''} | {one.source or 'or-eval'}"
        assert f"| `{key}` | {one.name} | {refused} | {said} |" in rows


def test_a_partial_refusal_is_where_the_two_countings_differ() -> None:
    strict, full = (countings()[key] for key in (STRICT, FULL))
    assert [label for label in ResponseClass if strict.of(label)] == list(ResponseClass)[1:]
    assert strict.refused - full.refused == {ResponseClass.PARTIAL_REFUSAL}
    assert (full.of("direct_refusal"), full.of("direct_answer"), full.of(None)) == (
        True,
        False,
        None,
    )

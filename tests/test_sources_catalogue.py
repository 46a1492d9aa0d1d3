"""The catalogue holds what the design and the documentation promise."""

import re
import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError

from or_eval.sources import catalogue, load_prompts
from or_eval.sources.catalogue import Entry, Layout
from or_eval.sources.columns import fitting_entries

SAMPLES = tomllib.loads(
    (Path(__file__).parent / "data" / "catalogue_samples.toml").read_text("utf-8")
)
# What nobody else publishes.
OURS = ["starter"]
DOCUMENTATION = Path(__file__).parents[1] / "docs" / "prompt-sets.md"


def test_every_entry_has_a_sample_of_its_publishers_layout():
    assert sorted([*SAMPLES, *OURS]) == sorted(catalogue())


@pytest.mark.parametrize("entry", catalogue().values(), ids=lambda entry: entry.name)
def test_entries_are_complete(entry: Entry):
    assert entry.layout.texts
    assert entry.layout.label is not None or entry.layout.tells_labels
    assert entry.all_languages or "language" in entry.layout.columns
    assert (
        entry.hub is None
        or entry.hub.revision is None
        or re.fullmatch("[0-9a-f]{40}", entry.hub.revision)
    )
    assert entry.licence
    assert entry.citation
    if entry.bundled is None:
        assert entry.hub or entry.url or entry.name.startswith("multilingual_")


@pytest.mark.parametrize("entry", catalogue().values(), ids=lambda entry: entry.name)
def test_the_documentation_tells_licence_and_place(entry: Entry):
    (line,) = re.findall(rf"^\| `{entry.name}` \|.*$", DOCUMENTATION.read_text(), re.MULTILINE)
    assert f"| {entry.licence} |" in line
    if entry.hub is not None:
        assert f"Hub: `{entry.hub.id}`" in line
        assert ("pinned" in line) == (entry.hub.revision is not None)
    elif entry.url is not None:
        assert f"[publisher]({entry.url})" in line


def test_or_bench_lies_where_its_publisher_says():
    for name, config in [
        ("80k", "or-bench-80k"),
        ("hard_1k", "or-bench-hard-1k"),
        ("toxic", "or-bench-toxic"),
    ]:
        hub = catalogue()[f"or_bench_{name}"].hub
        assert (hub.id, hub.config, hub.split) == ("bench-llm/or-bench", config, "train")


def test_a_misspelt_field_fails():
    fields = catalogue()["xstest"].model_dump() | {"lisence": "MIT"}
    with pytest.raises(ValidationError, match="lisence"):
        Entry.model_validate(fields)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"label": "safe", "columns": {"label": "label"}}, "a label is told twice"),
        ({"columns": {"label": {"column": "kind", "words": {"fine": "save"}}}}, "save"),
        ({"label": "spicy"}, "label"),
    ],
)
def test_a_layout_that_contradicts_itself_fails(fields, says):
    with pytest.raises(ValidationError, match=says):
        Layout.model_validate({"texts": [{"column": "prompt"}]} | fields)


def test_entries_that_fit_columns_are_suggested():
    assert fitting_entries(["goal", "target"]) == []
    assert fitting_entries(["id", "prompt", "type", "label", "focus", "note"]) == ["xstest"]
    assert fitting_entries(["prompt"]) == []
    # Of one's own, with the same names by chance; and with a language that XSTest doesn't tell.
    assert fitting_entries(["id", "prompt", "type", "label"]) == []
    assert fitting_entries(["id", "prompt", "type", "label", "focus", "note", "lang"]) == []


def test_whoever_reads_lto_is_told_that_toxic_rows_are_among_the_safe(tmp_path, caplog):
    path = tmp_path / "lto.csv"
    path.write_text("prompt,category\nA long text.,violence\n", "utf-8")
    load_prompts(path, source="lto")
    load_prompts("starter")
    [line] = caplog.messages
    assert line.startswith("lto: ")
    assert "210 toxic" in line
    assert "\n" not in line

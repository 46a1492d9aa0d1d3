"""The stage publish: files, card, and what is never published."""

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from or_eval.dataset_builders.engine.rows import StoredRows, columns
from or_eval.dataset_builders.engine.stage import Place, StageFacts
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.publishing.data_card import cell
from or_eval.dataset_builders.publishing.dataset_folder import read_dataset
from or_eval.dataset_builders.publishing.licences import licence_problem
from or_eval.dataset_builders.publishing.local_paths import without_folders
from or_eval.dataset_builders.publishing.push_checks import problems
from or_eval.dataset_builders.stages import stage
from or_eval.schema import Label
from or_eval.sources import load_prompts
from published import SAFE, SUBSETS, TOXIC, publish, row
from stage_context import run_stage, stage_context

KEY = "hf_" + "Ab3" * 11
MERGED = {"sets": [{"data": "/home/jane/one.csv"}, {"data": "xstest"}]}
LABELS = {"two labels": 2, "nearly the same, with two labels": 0, "prompts": "0a1b, 2c3d"}
EARLIER = [
    StageFacts("merge", "merge", 0, 9, {}, {}, {}, {}, MERGED, {"labels": LABELS}),
    StageFacts("rewrite", "rewrite", 40, 5, {}, {"writer": ["a/b"]}, {}, {}, {"method": "or_bench", "methods": [], "languages": [], "count": 2}, made=85),
    StageFacts("seeds", "seeds", 0, 40, {"refused": 3, "not distinct": 7}, {"writer": ["openai/gpt-4o"]}, {"seeds.toml": "0a1b2c3d4e5f"}, {}, made=50),
    StageFacts("moderate", "moderate", 40, 5, {"unreadable | <b>": 35}, {"moderator": ["gguf//home/jane/m x.gguf", "b/c"]}, {}, {}),
]  # fmt: skip
RECIPE = {
    "name": "test",
    "title": "From the recipe",
    "stages": [{"stage": "seeds", "file": "/home/jane doe/seeds.csv", "note": "``` in /srv/x/y"}],
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built")
    publish(out, {**SUBSETS, "none": []}, earlier=EARLIER, recipe=RECIPE)
    return out


@pytest.fixture(scope="module")
def card(built: Path) -> str:
    return (built / "dataset" / "README.md").read_text("utf-8")


def files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_each_subset_is_a_configuration_with_the_rows_of_it(built):
    assert set(files(built / "dataset")) == {"README.md", *(f"{name}/train.parquet" for name in SUBSETS)}  # fmt: skip
    for name, rows in SUBSETS.items():
        path = built / "dataset" / name / "train.parquet"
        assert list(StoredRows(path)) == rows
        assert pq.read_schema(path).equals(columns(), check_metadata=True)


def test_the_same_rows_give_the_same_bytes_anywhere(built, tmp_path, monkeypatch):
    monkeypatch.setenv("HOSTNAME", "another-machine")
    publish(tmp_path / "elsewhere", {**SUBSETS, "none": []}, earlier=EARLIER, recipe=RECIPE)
    assert files(tmp_path / "elsewhere" / "dataset") == files(built / "dataset")


@pytest.mark.parametrize(
    "line",
    [
        "No prompt was left for `none`, so there is no such configuration.",
        "- merge: 9 prompts were taken from one.csv, xstest. 2 that one set calls safe and another toxic were left out: 0a1b, 2c3d.",
        "- rewrite: 85 rewrites of 40 seeds were wanted of the model a/b: 2 of each seed, by the method or_bench, and 5 more where too few were left; 5 could be used.",
        "| moderate | 40 |  | 5 | unreadable \\| &lt;b>: 35 |",
        "| moderate | moderator | `gguf/m x.gguf`, `b/c` |",
        "  file: seeds.csv",
        "````yaml",
        "| test | 5 | written for this data set | that of this set |  |",
    ],
)
def test_the_card_says(card, line):
    assert line in card.splitlines() or line in card, card


@pytest.mark.parametrize(
    ("role", "model", "file"),
    [
        ("moderator", "vllm/meta-llama/Llama-Guard-3-8B", "panel/prompt_guards.toml"),
        ("grader", "vllm/NousResearch/Minos-v1", "judge/guards.toml"),
        ("grader", "openai/gpt-5-mini", "judge/prompt.toml"),
        ("moderator", "openai/gpt-5-mini", None),
    ],
)
def test_the_words_that_each_kind_of_judge_was_sent_are_named(tmp_path, role, model, file):
    facts = StageFacts("told", "moderate", 2, 2, {}, {role: [model]}, {}, {})
    publish(tmp_path, earlier=[facts], recipe=RECIPE)
    card = (tmp_path / "dataset" / "README.md").read_text("utf-8")
    assert re.findall(r"\| told \| `((?:judge|panel)/[^`]+)`", card) == ([file] if file else [])


def test_models_are_told_of_their_stages_in_whatever_order_a_recipe_names_these(tmp_path):
    entries = [{"stage": "moderate", "input": "screen"}, {"stage": "screen", "input": "merge"}]
    ran = [StageFacts(name, name, 9, 9, {}, {"moderator": [f"a/{name}"]}, {}, {}) for name in ("screen", "moderate")]  # fmt: skip
    publish(tmp_path, SUBSETS, earlier=ran, recipe={"name": "test", "stages": entries})
    told = (tmp_path / "dataset" / "README.md").read_text("utf-8").split("```yaml\n")[1]
    for entry in yaml.safe_load(told.split("```")[0])["stages"]:
        assert entry["models"] == {"moderator": f"a/{entry['stage']}"}


def test_the_card_names_no_place(card, built):
    assert not any(part in card for part in ("/home", "jane", "/srv", str(built)))


def test_sources_are_told_with_their_licences(tmp_path):
    rows = [row("Hi a", source="xstest"), row("Hi b", source="mine.csv"), row("Hi c", source="odd")]
    base = {"name": "mine.csv", "licence": "CC0", "url": "https://example.org"}
    publish(tmp_path, {"full": rows}, params={"licence": "mit", "sources": [base], "note": "*Small.*", "tags": ["trial"]})  # fmt: skip
    card = (tmp_path / "dataset" / "README.md").read_text()
    assert "| mine.csv | 1 | mine.csv | CC0 | https://example.org |" in card
    assert "| odd | 1 | odd | not stated |  |" in card
    (line,) = [line for line in card.splitlines() if line.startswith("| xstest | 1 |")]
    assert "CC-BY-4.0" in line
    assert "*Small.*" in card
    assert "- trial\n" in card
    assert "No prompt in it is labelled toxic." in card
    assert "not-for-all-audiences" not in card


def test_without_subsets_there_is_one_configuration(tmp_path):
    kind = stage("publish")
    result = run_stage(kind(licence="mit"), [*SAFE, SAFE[0]], stage_context(tmp_path))
    assert result.rows == SAFE
    assert [(one.record, one.reason) for one in result.dropped] == [(SAFE[0], "duplicate")]
    assert result.tables["published"][0]["configuration"] == "default"
    path = tmp_path / "dataset" / "default" / "train.parquet"
    assert list(StoredRows(path)) == load_prompts(path).records == SAFE


def test_parts_named_as_inputs_are_configurations(tmp_path):
    kind = stage("publish")
    inputs = {"vote.hard": SAFE[:1], "moderate.toxic": TOXIC}
    context = stage_context(tmp_path, inputs=inputs, subsets={"other": SAFE})
    result = run_stage(kind(licence="mit"), [*SAFE[:1], *TOXIC], context)
    assert result.subsets == {"hard": SAFE[:1], "toxic": TOXIC}
    twice = kind(licence="mit").problem(Place("or_bench", ("a.x", "b.x"), None))
    assert "two inputs would be one configuration (a.x, b.x)" in twice
    bad = kind(licence="mit").problem(Place("or_bench", ("a.too long",), None))
    assert "can't name a configuration" in bad


def test_a_limited_build_is_told_as_a_trial(tmp_path):
    publish(tmp_path, limit=5)
    card = (tmp_path / "dataset" / "README.md").read_text()
    assert "This is a trial: at most 5 seeds were taken." in card


def test_nothing_left_is_never_published(tmp_path):
    publish(tmp_path)
    before = files(tmp_path / "dataset")
    with pytest.raises(BuildError, match="nothing to publish: no row was left") as error:
        publish(tmp_path, {"full": []})
    assert "is still that of an earlier build" in str(error.value)
    assert files(tmp_path / "dataset") == before
    with pytest.raises(BuildError, match="none of 1 rows is left"):
        publish(tmp_path / "new", {"full": [row("Hi", meta={"licence": "CC-BY-ND-4.0"})]})
    assert not (tmp_path / "new" / "dataset").exists()


def test_rows_in_no_subset_are_counted(tmp_path):
    kind = stage("publish")
    context = stage_context(tmp_path, subsets={"full": SAFE[:1]})
    result = run_stage(kind(licence="mit"), SAFE, context)
    assert [item.reason for item in result.dropped] == ["in no subset"] * 2
    assert (
        "| publish | 3 |  | 1 | in no subset: 2 |" in (tmp_path / "dataset/README.md").read_text()
    )


def test_a_key_in_the_recipe_stops_it(tmp_path):
    with pytest.raises(
        BuildError, match=r"line \d+ of the data card would contain a Hugging Face token"
    ) as error:
        publish(tmp_path, recipe={"name": "test", "token": KEY})
    assert KEY not in str(error.value)
    assert not (tmp_path / "dataset").exists()


def test_a_write_that_fails_leaves_the_earlier_set(tmp_path, monkeypatch):
    publish(tmp_path)
    before = files(tmp_path / "dataset")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_batch", full)
    with pytest.raises(BuildError, match=r"can't be written \(No space left on device\)"):
        publish(tmp_path, {"other": SAFE})
    assert files(tmp_path / "dataset") == before


def test_what_a_killed_run_left_is_cleared(tmp_path):
    for name in (".dataset.new", ".dataset.old"):
        (tmp_path / name / "half").mkdir(parents=True)
    publish(tmp_path)
    assert not list(tmp_path.glob(".dataset.*"))


@pytest.mark.parametrize("name", ["a/b", "../x", "", ".hidden", "名"])
def test_a_name_that_is_no_configuration_is_refused(tmp_path, name):
    with pytest.raises(BuildError, match="can't name a configuration"):
        publish(tmp_path, {name: SAFE})


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ("/home/jane/a.csv", "a.csv"),
        ("~/jane doe/a.csv", "a.csv"),
        ("C:\\Users\\jane\\a.csv", "a.csv"),
        ("file:///home/jane/a.csv", "a.csv"),
        ("gguf//home/jane/a b.gguf", "gguf/a b.gguf"),
        ("see /home/jane/a.csv.", "see a.csv."),
        ("data/a.csv", "data/a.csv"),
        ("openai/gpt-4o", "openai/gpt-4o"),
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("and/or", "and/or"),
        ({"a": ["/x/y", 1, None]}, {"a": ["y", 1, None]}),
    ],
)
def test_places_are_left_out(value, left):
    assert without_folders(value) == left


def test_hostile_text_stays_in_its_cell():
    assert cell("a|b\n<img>\u202e") == "a\\|b &lt;img>[U+202E]"


def test_a_prompt_that_is_both_safe_and_toxic_stops_the_build(tmp_path):
    other = [replace(SAFE[0], label=Label.TOXIC)]
    with pytest.raises(BuildError, match=r"1 prompts are safe in 'full' and toxic in 'other'"):
        publish(tmp_path, {"full": SAFE, "other": other})
    assert not (tmp_path / "dataset").exists()


def test_rows_say_of_a_model_that_is_a_file_what_it_is_called_and_not_where_it_lay(tmp_path):
    prompt = "Why does /var/log/syslog say that my child was killed?"
    votes = {"gguf//home/jane/m.gguf": True, "gguf//srv/m.gguf": False, "openai/gpt-4o": True}
    meta = {"writer": "gguf//home/jane/m.gguf", "votes": votes, "moderation": {"~/m.gguf": "none"}}
    kept = {"sensitive_text": "/var/log/syslog say that my child was killed?"}
    publish(tmp_path, {"full": [row(prompt, meta=meta | kept, source="/home/jane/seeds.csv")]})
    (found,) = StoredRows(tmp_path / "dataset" / "full" / "train.parquet")
    assert found.prompt == prompt
    assert found.source == "seeds.csv"
    assert found.meta == kept | {
        "writer": "gguf/m.gguf",
        "votes": {"gguf/m.gguf": True, "gguf/m.gguf (2)": False, "openai/gpt-4o": True},
        "moderation": {"m.gguf": "none"},
    }
    assert "jane" not in (tmp_path / "dataset" / "README.md").read_text()


def test_the_default_configuration_holds_safe_prompts(tmp_path):
    publish(tmp_path, {"full": [], "toxic": TOXIC, "hard": SAFE})
    card = (tmp_path / "dataset" / "README.md").read_text()
    assert "| `hard` (default) | 3 |" in card
    assert 'load_dataset("OWNER/NAME", "toxic", split' in card
    assert 'load_dataset("OWNER/NAME", split' in card
    header = yaml.safe_load(card.split("---\n")[1])
    assert [c["config_name"] for c in header["configs"] if c.get("default")] == ["hard"]


def test_toxic_prompts_alone_are_no_set_of_safe_ones(tmp_path):
    with pytest.raises(BuildError, match="all 2 rows are toxic, and 'full' is empty"):
        publish(tmp_path, {"full": [], "toxic": TOXIC})
    assert not (tmp_path / "dataset").exists()
    publish(tmp_path, {"toxic": TOXIC})  # where the recipe wants nothing else


def test_what_a_build_named_like_a_public_set_wrote_is_not_taken_for_that_sets(tmp_path):
    context = stage_context(tmp_path, recipe={"name": "lto"})
    assert context.source == "lto-built"
    publish(tmp_path, {"full": [row("Hi", source=context.source), row("Ho", source="lto")]},
            recipe={"name": "lto"})  # fmt: skip
    card = (tmp_path / "dataset" / "README.md").read_text()
    assert "| lto-built | 1 | written for this data set | that of this set |  |" in card
    (line,) = [line for line in card.splitlines() if line.startswith("| lto | 1 |")]
    assert "Liu et al." in line
    assert "| not stated |" in line


def test_rows_whose_licence_keeps_them_out_are_held_back_and_named(tmp_path):
    closed = {"licence": "all rights reserved"}
    rows = [*SAFE, row("Hi", source="falsereject"), row("Ho", source="mine", meta=closed),
            row("Hu", source="lto"), row("Ha", source="open", meta={"licence": "MIT"})]  # fmt: skip
    result = publish(tmp_path, {"full": rows})
    assert [(one.record.prompt, one.reason, one.detail) for one in result.dropped] == [
        ("Hi", "licence", "falsereject asks of such sets that nobody sells it (CC-BY-NC-4.0), and this one is under CC-BY-4.0"),
        ("Ho", "licence", "mine forbids changed copies (all rights reserved)"),
    ]  # fmt: skip
    # Where none is stated, its users may have one, which a push asks for.
    assert {kept.prompt for kept in result.rows} == {*(safe.prompt for safe in SAFE), "Hu", "Ha"}
    card = (tmp_path / "dataset" / "README.md").read_text("utf-8")
    assert "licence: 2" in card
    assert "| open | 1 | open | MIT |" in card


@pytest.mark.parametrize(
    ("licence", "of_set", "allowed"),
    [
        *((one, "cc-by-4.0", True) for one in (
            "MIT", "Apache-2.0", "CC BY 4.0", "CC-BY-4.0", "cc0-1.0", "BSD-3-Clause", "public domain", "MIT / Apache-2.0",
            "Creative Commons Attribution 4.0 International", "CC BY 4.0, see https://example.org/terms", "cc-by-4.0",
        )),
        *((one, "cc-by-4.0", False) for one in (
            "titles and summaries, for research only", "GPL-3.0", "test", "CC BY 4.0, for research only", "MIT and GPL-3.0",
            "https://example.org/terms", "none: on request", "govtech-singapore", "CC BY-SA 4.0", "CC-BY-NC-4.0", "CC BY-ND 4.0",
            "SORRY-Bench (no redistribution)", "ODbL-1.0", "OpenRAIL",
        )),
        ("GPL-3.0", "gpl-3.0", True),
        ("CC BY-SA 4.0, see https://example.org/terms", "cc-by-sa-4.0", True),
        ("CC BY-SA 4.0", "cc-by-nc-4.0", False),
        ("CC-BY-NC-4.0", "cc-by-nc-sa-4.0", True),
    ],
)  # fmt: skip
def test_only_what_is_known_to_allow_it_is_let_in(licence: str, of_set: str, allowed: bool) -> None:
    assert (licence_problem(licence, of_set) is None) == allowed


def test_a_licence_that_nobody_knows_stops_it_with_the_source(tmp_path):
    odd = row("Hi", source="board", meta={"licence": "titles and summaries, for research only"})
    with pytest.raises(
        BuildError, match=r"^source 'board' is under 'titles and .*sources"
    ) as error:
        publish(tmp_path, {"full": [*SAFE, odd]})
    assert odd.id in str(error.value)
    assert not (tmp_path / "dataset").exists()
    params = {"licence": "mit", "sources": [{"name": "board", "licence": "MIT"}]}
    publish(tmp_path, {"full": [*SAFE, odd]}, params=params)


def test_no_answer_of_a_model_is_published(tmp_path):
    kept = {"responder": "a/b", "moderation_answer": {"c/d": "none"}}
    meta = {"response": "Take a hammer.", "answer": "And nails.", **kept}
    said = {"text": "answer", "keep": "safe", "agree": "all", "unreadable": "withheld"}
    asked = {"moderator": ["c/d"]}
    judged = StageFacts("judged", "moderate", 3, 3, {}, asked, {}, {}, said)
    publish(tmp_path, {"full": [row("Hi", meta=meta), *SAFE]}, earlier=[judged])
    found = next(iter(StoredRows(tmp_path / "dataset" / "full" / "train.parquet")))
    assert found.meta == kept
    assert problems(read_dataset(tmp_path), []) == []

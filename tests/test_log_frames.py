"""Logs become frames: nothing cut, nothing dropped, nothing chosen in silence."""

from pathlib import Path
from zipfile import ZipFile

import pandas as pd
import pytest
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ChatMessageSystem, ChatMessageUser
from inspect_ai.scorer import Score

from made_logs import UNSCORED, made_log, made_sample, votes_log
from or_eval.analysis.comparisons import compare_models
from or_eval.analysis.logs import LogError, read_heads
from or_eval.analysis.ranking import ranking
from or_eval.analysis.rates import rates
from or_eval.analysis.responses import by_benchmark, counted_as, read_logs
from or_eval.analysis.samples import read_details
from or_eval.schema import ResponseClass, countings, prompt_id

LONG = "Tell me a story about word number {}. " + "Many words more. " * 400


def test_a_responses_frame_holds_the_record_the_verdict_and_the_reason(tmp_path: Path) -> None:
    samples = [
        made_sample("a", 1.0, category="hate", language="en", method="slang", pair_id="p1"),
        made_sample("b", 0.0, label="toxic", score={"decided_by": "judge", "certain": False}),
        made_sample("c", UNSCORED, reason="cut_off"),
        made_sample("d", 1.0, error="TimeoutError()\nmore"),
        made_sample("e", None),
    ]
    logs = read_logs(made_log(tmp_path / "one.eval", "m/1", samples))
    rows = logs.responses.set_index("id")
    assert rows.loc["a", ["label", "category", "language", "method", "pair_id"]].tolist() == [
        *("safe", "hate", "en", "slang", "p1")
    ]
    assert rows["refused"].isna().tolist() == [False, False, True, True, True]
    assert rows.loc["a", "refused"]
    assert not rows.loc["b", "refused"]
    assert rows.loc[["c", "d", "e"], "unscored_because"].tolist() == [
        "cut_off",
        "error",
        "not_scored",
    ]
    assert rows.loc["d", "error"] == "TimeoutError()"
    assert rows.loc["b", "judge_class"] == "direct_answer"
    assert rows["model"].unique().tolist() == ["m/1"]
    assert logs.prompts.loc["a", "prompt"] == "prompt a"
    assert logs.notes == []


def test_a_foreign_log_takes_its_label_from_the_target(tmp_path: Path) -> None:
    samples = [made_sample(1, 1.0), made_sample(2, 0.0), made_sample(3, 0.0)]
    for sample, target in zip(samples, ["toxic", "safe", "Paris"], strict=True):
        sample.metadata, sample.target = {}, target
    frame = read_logs(made_log(tmp_path / "foreign.eval", "m", samples)).responses
    assert frame["label"].tolist() == ["toxic", "safe", "unlabelled"]
    assert frame["id"].tolist() == ["1", "2", "3"]


def test_metadata_of_other_peoples_logs_may_hold_anything(tmp_path: Path) -> None:
    odd = {
        "label": ["x"],
        "category": ["a", "b"],
        "seed_id": 7,
        "pair_id": {"n": 1},
        "meta": "none",
    }
    score = {"certain": "very", "audited": 3, "stages": [1], "language": None, "decided_by": 5}
    samples = [made_sample(n, 1.0, score=score, **odd) for n in (1, 2)]
    samples[0].target = ["A", "B"]
    samples[1].input = [ChatMessageSystem(content="Be kind."), ChatMessageUser(content="Hello?")]
    logs = read_logs(made_log(tmp_path / "odd.eval", "m", samples))
    assert logs.responses["label"].tolist() == ["unlabelled", "unlabelled"]
    assert logs.responses["category"].tolist() == ["['a', 'b']"] * 2
    assert logs.responses["certain"].isna().all()
    assert logs.prompts["prompt"].tolist() == ["prompt 1", "Hello?"]


@pytest.mark.parametrize("suffix", ["eval", "json"])
def test_long_prompts_are_read_in_full(tmp_path: Path, suffix: str) -> None:
    texts = {prompt_id(LONG.format(n)): LONG.format(n) for n in range(3)}
    own_ids = {f"row-{n}": LONG.format(n) for n in range(3)}
    for model in ("a", "b"):
        made_log(
            tmp_path / f"2025-03-01T12-00-00+00-00_{model}.{suffix}",
            model,
            [
                made_sample(key, 1.0, prompt=text, language="en")
                for key, text in (texts | own_ids).items()
            ],
        )
    logs = read_logs(tmp_path)
    assert logs.prompts["prompt"].to_dict() == texts | own_ids
    assert len(logs.responses) == 12


def test_two_texts_under_one_id_are_told_even_where_they_differ_late(tmp_path: Path) -> None:
    made_log(tmp_path / "a.eval", "a", [made_sample("x", 1.0, prompt=LONG + "one")])
    made_log(tmp_path / "b.eval", "b", [made_sample("x", 0.0, prompt=LONG + "two")], second=1)
    made_log(tmp_path / "c.eval", "c", [made_sample("x", 0.0, prompt=LONG + "two")], second=2)
    with pytest.raises(LogError, match=r"b\.eval: sample x has a different text"):
        read_logs(tmp_path)
    latest = read_logs(tmp_path, on_conflict="latest")
    assert latest.prompts["prompt"].tolist() == [LONG + "two"]
    assert latest.responses["model"].tolist() == ["b", "c"]
    assert "responses to older texts left out (latest): 1" in latest.notes
    both = read_logs(tmp_path, on_conflict="all")
    assert both.prompts["prompt"].tolist() == [LONG + "one", LONG + "two"]
    assert both.responses["id"].nunique() == 2
    assert both.responses["sample_id"].unique().tolist() == ["x"]


def test_an_audit_verdict_too_long_for_the_summary_is_read_from_the_sample(tmp_path: Path) -> None:
    stages = {
        "rules": {"label": "direct_refusal", "evidence": [{"text": "no " * 500}]},
        "judge": {"label": "direct_answer"},
    }
    samples = [
        made_sample("long", 1.0, score={"audited": True, "stages": stages}),
        made_sample(
            "short", 1.0, score={"audited": True, "stages": {"judge": {"label": "direct_refusal"}}}
        ),
        made_sample("none", 1.0),
    ]
    path = made_log(tmp_path / "audit.eval", "m", samples)
    frame = read_logs(path).responses.set_index("id")
    assert frame["judge_class"].fillna("").to_dict() == {
        "long": "direct_answer",
        "short": "direct_refusal",
        "none": "",
    }
    unread = read_logs(path, audits=False).responses.set_index("id")
    assert pd.isna(unread.loc["long", "judge_class"])


def test_details_give_response_explanation_and_stages_of_chosen_rows(tmp_path: Path) -> None:
    response = "I won't. " * 300
    for model in ("a", "b"):
        samples = [
            made_sample(
                n, 1.0, response=f"{model}{n} {response}", score={"stages": {"rules": {"n": n}}}
            )
            for n in range(4)
        ]
        made_log(tmp_path / f"{model}.eval", model, samples)
    frame = read_logs(tmp_path).responses
    wanted = frame[frame["id"].isin(["1", "3"])].sample(frac=1, random_state=1)
    details = read_details(wanted)
    assert details.index.equals(wanted.index)
    expected = [f"{m}{n} {response}" for m, n in zip(wanted["model"], wanted["id"], strict=True)]
    assert details["response"].tolist() == expected
    assert [stages["rules"]["n"] for stages in details["stages"]] == wanted["id"].map(int).tolist()


def test_a_missing_score_is_told_with_those_there_are(tmp_path: Path) -> None:
    made_log(tmp_path / "a.eval", "a", [made_sample("x", 1.0)])
    made_log(tmp_path / "b.eval", "b", [made_sample("x", 1.0, scorer="refusal1")])
    with pytest.raises(LogError, match=r"b\.eval: no score 'refusal'; it has refusal1"):
        read_logs(tmp_path)
    with pytest.raises(LogError, match=r"a\.eval: no score 'human'; it has refusal\n"):
        read_logs(tmp_path, scorer="human")


def test_other_scores_in_the_log_are_named(tmp_path: Path) -> None:
    sample = made_sample("x", 1.0)
    assert sample.scores is not None
    sample.scores["refusal1"] = sample.scores["refusal"].model_copy(update={"value": 0.0})
    path = made_log(tmp_path / "a.eval", "a", [sample])
    logs = read_logs(path)
    assert logs.notes == ["score used: refusal; also in the logs: refusal1"]
    assert read_logs(path, scorer="refusal1").responses["refused"].tolist() == [False]


def test_a_score_may_be_a_response_class_and_nothing_else(tmp_path: Path) -> None:
    classes = [made_sample("x", "partial_refusal"), made_sample("y", "direct_answer")]
    frame = read_logs(made_log(tmp_path / "a.eval", "a", classes)).responses
    assert frame["refused"].tolist() == [True, False]
    assert frame["response_class"].tolist() == ["partial_refusal", "direct_answer"]
    wrong = made_log(tmp_path / "b.eval", "a", [made_sample("x", "C")])
    with pytest.raises(LogError, match=r"b\.eval: score 'refusal' of sample x \(epoch 1\) is 'C'"):
        read_logs(wrong)


def test_paths_without_logs_and_broken_logs_are_told(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="nowhere: no Inspect log"):
        read_heads(tmp_path / "nowhere")
    broken = tmp_path / "broken.eval"
    broken.write_bytes(b"PK but no zip")
    with pytest.raises(LogError, match=r"broken\.eval: can't be read as an Inspect log"):
        read_heads(broken)


def test_a_sample_that_is_listed_and_not_held_is_told(tmp_path: Path) -> None:
    whole = made_log(tmp_path / "whole.eval", "m", [made_sample("x", 1.0), made_sample("y", 1.0)])
    with ZipFile(whole) as held, ZipFile(tmp_path / "part.eval", "w") as part:
        for name in held.namelist():
            if name != "samples/y_epoch_1.json":
                part.writestr(name, held.read(name))
    responses = read_logs(tmp_path / "part.eval").responses
    with pytest.raises(
        LogError, match=r"part\.eval: lists sample y, epoch 1, but doesn't contain it"
    ):
        read_details(responses)


def test_conflicts_are_all_listed_and_settled_as_chosen(tmp_path: Path) -> None:
    votes_log(tmp_path / "1", "a", {"x": 1.0, "y": 1.0}, second=1)
    votes_log(tmp_path / "2", "a", {"x": 0.0, "y": 0.0}, second=2)
    votes_log(tmp_path / "3", "b", {"x": 1.0}, second=3, status="cancelled")
    with pytest.raises(LogError) as caught:
        read_logs(tmp_path)
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert "b.eval: incomplete log of b (status cancelled)" in lines[0]
    assert "a.eval: second log of a on the same samples of or_eval/prompts" in lines[1]
    assert "--on-conflict latest" in lines[2]
    latest = read_logs(tmp_path, on_conflict="latest")
    assert latest.responses[["model", "refused"]].values.tolist() == [["a", False], ["a", False]]
    assert sum(note.startswith("left out (latest): ") for note in latest.notes) == 2
    everything = read_logs(tmp_path, on_conflict="all")
    assert len(everything.responses) == 5
    assert len(everything.notes) == 2


def test_benchmarks_are_those_of_tasks_of_data_and_of_most_prompts(tmp_path: Path) -> None:
    for second, (task, data, ids) in enumerate(
        (
            ("or_eval/xstest", "local copy", "abcd"),
            ("or_eval/prompts", "oktest", "ef"),
            ("theirs/xstest", "xstest", "g"),
            ("or_eval/replay", "answers.csv", "abz"),
            ("or_eval/replay", "others.csv", "awy"),
        )
    ):
        samples = [made_sample(key, 1.0) for key in ids]
        path = made_log(tmp_path / f"{second}.eval", f"m{second}", samples, task=task)
        log = read_eval_log(str(path))
        log.eval.dataset.name = data
        write_eval_log(log, str(path))
    logs = read_logs(tmp_path)
    found = [head.benchmark for head in logs.heads]
    assert found == ["xstest", "oktest", "theirs/xstest", "xstest", "others.csv"]
    parts = by_benchmark(logs)
    assert list(parts) == ["xstest", "oktest", "theirs/xstest", "others.csv"]
    assert parts["xstest"].responses["model"].unique().tolist() == ["m0", "m3"]
    assert list(parts["others.csv"].prompts.index) == ["a", "w", "y"]


def test_logs_of_one_model_on_other_samples_are_no_conflict(tmp_path: Path) -> None:
    votes_log(tmp_path / "1", "a", {"x": 1.0})
    votes_log(tmp_path / "2", "a", {"y": 1.0}, second=1)
    assert len(read_logs(tmp_path).responses) == 2


def test_of_a_log_and_its_scored_copy_latest_takes_the_scored_one(tmp_path: Path) -> None:
    path = votes_log(tmp_path, "a", {"x": None})
    log = read_eval_log(str(path))
    assert log.samples
    log.samples[0].scores = made_sample("x", 1.0).scores
    write_eval_log(log, str(tmp_path / "a-scored.eval"))
    with pytest.raises(LogError, match="second log of a on the same samples"):
        read_logs(tmp_path)
    assert read_logs(tmp_path, on_conflict="latest").responses["refused"].tolist() == [True]


def test_a_prompt_that_logs_label_safe_and_toxic_is_in_no_rate(tmp_path: Path) -> None:
    """A revision of a prompt set: rates, comparisons and counts are over the same prompts."""
    for second, (model, label) in enumerate({"a": "toxic", "b": "safe"}.items()):
        samples = [made_sample("x", 1.0, label=label)]
        samples += [made_sample(f"p{n}", float(n < 3)) for n in range(10)]
        made_log(tmp_path / f"{model}.eval", model, samples, second=second)
    logs = read_logs(tmp_path)
    assert logs.prompts["label"].value_counts().to_dict() == {"safe": 10, "unlabelled": 1}
    assert rates(logs.responses)["n"].tolist() == [10, 10]
    assert compare_models(logs.responses)["n"].tolist() == [10]
    assert ranking(logs.responses)["value"].tolist() == [0.3, 0.3]
    assert "safe in one log and toxic in another (as x)" in logs.notes[0]


def test_benchmarks_keep_their_own_labels_of_a_prompt(tmp_path: Path) -> None:
    for second, (task, label) in enumerate({"or_eval/one": "toxic", "or_eval/two": "safe"}.items()):
        samples = [made_sample("x", 1.0, label=label), made_sample("y", 0.0)]
        made_log(tmp_path / f"{label}.eval", "a", samples, task=task, second=second)
    parts = by_benchmark(read_logs(tmp_path))
    assert [part.prompts.at["x", "label"] for part in parts.values()] == ["toxic", "safe"]


def test_a_log_whose_task_was_finished_in_another_is_left_out_and_said(tmp_path: Path) -> None:
    votes_log(tmp_path / "1", "a", {"x": 1.0}, status="error", task_id="t")
    votes_log(tmp_path / "2", "a", {"x": 0.0, "y": 0.0}, second=2, task_id="t")
    logs = read_logs(tmp_path)
    assert logs.responses["id"].tolist() == ["x", "y"]
    assert any("1/a.eval: left out" in note and "finishes its task" in note for note in logs.notes)
    votes_log(tmp_path / "3", "b", {"x": 1.0}, second=3, status="error", task_id="u")
    with pytest.raises(LogError, match=r"3/b\.eval: incomplete log"):
        read_logs(tmp_path)


def test_each_counting_says_of_each_class_whether_it_is_refused(tmp_path: Path) -> None:
    samples = [
        *(made_sample(name, name.value) for name in ResponseClass),
        made_sample("a score without a class", 0.5),
        made_sample("none", UNSCORED, reason="cut_off"),
    ]
    samples[4].scores["refusal"] = Score(value=1.0)
    logs = read_logs(made_log(tmp_path / "one.eval", "m", samples))
    for counting in countings().values():
        found = counted_as(logs.responses, counting.key).set_index("id")["refused"]
        for name in ResponseClass:
            assert found[name] == (name in counting.refused)
        assert found["a score without a class"]
        assert pd.isna(found["none"])
    assert counted_as(logs.responses, "strict")["refused"].equals(logs.responses["refused"])
    assert [note for note in logs.notes if note.startswith("1 refusal of no class")]

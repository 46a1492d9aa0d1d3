"""Verdicts against people's labels: joined rightly, measured rightly, and told apart by part."""

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result
from inspect_ai._util.error import PrerequisiteError

from made_logs import UNSCORED, made_log, made_sample, votes_log
from or_eval.analysis.label_agreement import label_agreement
from or_eval.cli.agreement import agreement
from or_eval.cli.vote import vote
from or_eval.sources import DataError
from or_eval.sources.responses import loggable

REFUSAL, ANSWER = (
    "I'm sorry, but I can't help with that.",
    "Sure. Here are three steps:\n1. Go.\n2. Do.\n3. Done.",
)
PARTIAL = (
    "I can't help with the second part of your request. As for the first part:\n\n"
    "1. Open the lid.\n2. Fill in the water.\n3. Press the button."
)
YES_NO = ("--map", "yes=refused", "--map", "no=answered")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(agreement, [str(argument) for argument in arguments])


def report(out: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((out / "agreement.json").read_text("utf-8"))
    return summary


def group(summary: dict[str, Any], name: str) -> dict[str, Any]:
    [found] = [row for row in summary["groups"] if row["group"] == name]
    return dict(found)


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    pd.DataFrame(rows).to_json(path, orient="records", lines=True)
    return path


def test_a_file_is_read_by_rules_and_its_own_labels(tmp_path: Path) -> None:
    rows = [
        {"model": "m", "prompt": f"Question {n}?", "response": text, "human_label": label}
        for n, (text, label) in enumerate(
            [(REFUSAL, "yes")] * 4 + [(ANSWER, "no")] * 4 + [(REFUSAL, "no"), (ANSWER, "unsure")]
        )
    ]
    file, out = table(tmp_path / "responses.jsonl", rows), tmp_path / "out"
    done = run(file, *YES_NO, "--map", "unsure=skip", "--out", out)
    assert done.exit_code == 0, done.output
    summary = report(out)
    assert (summary["joined"], summary["rows_without_label"]) == (9, 1)
    everything = group(summary, "all")
    # By hand: 8 of 9 agree; by chance (4 * 5 + 5 * 4) / 81.
    chance = 40 / 81
    assert everything["agree"] == pytest.approx(8 / 9)
    assert everything["kappa"] == pytest.approx((8 / 9 - chance) / (1 - chance))
    [refused] = [
        row for row in summary["classes"] if (row["by"], row["class"]) == ("all", "refused")
    ]
    assert (refused["precision"], refused["recall"]) == (pytest.approx(0.8), 1)
    assert refused["f1"] == pytest.approx(8 / 9)
    assert refused["precision_lower"] < 0.8 < refused["precision_upper"]
    [disagreement] = [
        json.loads(line) for line in (out / "disagreements.jsonl").read_text().splitlines()
    ]
    assert disagreement["response"] == REFUSAL
    assert (disagreement["human"], disagreement["refused"]) == ("no" and "answered", True)
    assert disagreement["evidence"]
    assert "1 rows of the label file are empty" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("words", "strict", "full"),
    [
        # what declines a part is a refusal to nobody with two words, but to us
        (("yes", "no", "no"), 7 / 10, 1.0),
        # and of those who have a word for it, on both sides
        (("direct_refusal", "partial_refusal", "direct_answer"), 1.0, 1.0),
        (("direct_refusal", "direct_refusal", "direct_answer"), 1.0, 7 / 10),
    ],
)
def test_agreement_by_both_countings(
    words: tuple[str, ...], strict: float, full: float, tmp_path: Path
) -> None:
    rows = [
        {"prompt": f"Question {n}?", "response": text, "human_label": word, "first": word}
        for n, (text, word) in enumerate(
            [(REFUSAL, words[0])] * 4 + [(PARTIAL, words[1])] * 3 + [(ANSWER, words[2])] * 3
        )
    ]
    file, out = table(tmp_path / "responses.jsonl", rows), tmp_path / "out"
    done = run(file, *YES_NO, "--annotator", "first", "--out", out)
    assert done.exit_code == 0, done.output
    assert "kappa, full" in done.output
    everything = group(report(out), "all")
    assert (everything["agree"], everything["agree_full"]) == (strict, full)
    kappas = {
        row["on"]: row["value"]
        for row in report(out)["raters"]
        if (row["measure"], row["raters"]) == ("Fleiss' kappa", "first, or-eval")
    }
    for end, share in (("", strict), ("_full", full)):
        assert (everything[f"kappa{end}"] == 1) == (share == 1)
        assert (kappas[f"refused{end}"] == 1) == (share == 1)
    found = {row["class"]: row for row in report(out)["classes"] if row["by"] == "all"}
    assert (found["refused"]["said"], found["refused_full"]["said"]) == (7, 4)


def test_the_stop_reason_of_a_file_counts(tmp_path: Path) -> None:
    rows = [
        {"prompt": f"Q{n}?", "response": text, "stop_reason": stop, "human_label": label}
        for n, (text, stop, label) in enumerate(
            [(ANSWER, "SAFETY", "yes"), (ANSWER, "RECITATION", "no"), (ANSWER, "STOP", "no")]
        )
    ]
    file, out = table(tmp_path / "responses.jsonl", rows), tmp_path / "out"
    done = run(file, *YES_NO, "--out", out)
    assert done.exit_code == 0, done.output
    everything = group(report(out), "all")
    assert (everything["agree"], everything["unscored"]) == (1.0, 1)


def test_a_file_and_labels_beside_it_are_joined_by_the_prompt(tmp_path: Path) -> None:
    rows = [
        {"prompt": "How do I pick a lock?", "response": "I can't help with that."},
        {"prompt": "Why is it wet?", "response": "Because it rained all night long."},
    ]
    words = ("direct_refusal", "direct_answer")
    labels = [
        {"prompt": row["prompt"], "human_label": word}
        for row, word in zip(rows, words, strict=True)
    ]
    file = table(tmp_path / "responses.jsonl", rows)
    result = run(file, "--labels", table(tmp_path / "l.jsonl", labels), "--out", tmp_path / "out")
    assert result.exit_code == 0, result.exception
    assert "2 responses with a label, joined by prompt" in result.output


def test_a_column_for_each_model_is_measured_model_by_model(tmp_path: Path) -> None:
    rows = [{"prompt": f"Q{n}?", "Llama Response": REFUSAL, "qwen-reply": ANSWER} for n in range(3)]
    labels = [
        {"Prompt": f"Q{n}?", "MODEL": model, "human-label": label}
        for n in range(3)
        for model, label in {"Llama": "refused", "qwen": "refused"}.items()
    ]
    file, out = table(tmp_path / "wide.jsonl", rows), tmp_path / "out"
    done = run(file, "--labels", table(tmp_path / "labels.jsonl", labels), "--out", out)
    assert done.exit_code == 0, done.output
    told = {name: group(report(out), name)["agree"] for name in ("Llama", "qwen")}
    assert told == {"Llama": 1, "qwen": 0}
    assert "labels: columns read: human_label in 'human-label', model in 'MODEL'" in done.output
    assert "responses: columns read: responses in 'Llama Response' (Llama)" in done.output
    mixed = table(tmp_path / "mixed.jsonl", [{**row, "human_label": "refused"} for row in rows])
    with pytest.raises(
        DataError, match=r"responses of several models \(Llama, qwen\), and its label"
    ):
        run_main(mixed, "--out", out)


def run_main(*arguments: str | Path) -> None:
    agreement.main([*map(str, arguments)], standalone_mode=False)


def test_a_column_of_the_labels_that_isnt_there_is_told(tmp_path: Path) -> None:
    log = votes_log(tmp_path / "logs", "a", {"Q?": True})
    labels = table(tmp_path / "l.jsonl", [{"Prompt": "Q?", "model": "a", "human_label": "refused"}])
    with pytest.raises(
        DataError, match=r"no column 'modle' \(--model-column\); did you mean 'model'"
    ):
        run_main(Path(log), "--labels", labels, "--model-column", "modle")


def test_logs_are_joined_by_id_and_model_and_counted_by_part(tmp_path: Path) -> None:
    sure, unsure = {"certain": True}, {"certain": False}
    verdicts = [(1.0, sure)] * 3 + [(0.0, sure)] * 3 + [(1.0, unsure), (0.0, unsure)]
    for model in ("a", "b"):
        samples = [
            made_sample(n, value, score=score, category=f"c{n % 2}", response=f"{model}{n}")
            for n, (value, score) in enumerate(verdicts)
        ]
        samples.append(
            made_sample(
                8, UNSCORED, reason="unsettled", score={"decided_by": None, "certain": False}
            )
        )
        samples.append(
            made_sample(
                9, UNSCORED, reason="no_response", score={"decided_by": None, "certain": False}
            )
        )
        made_log(tmp_path / "logs" / f"{model}.eval", model, samples)
    truth = ["yes"] * 3 + ["no"] * 2 + ["yes"] + ["no", "yes"] + ["yes", "no"]
    labels = table(
        tmp_path / "labels.jsonl",
        [{"id": n, "model": m, "human_label": w} for m in "ab" for n, w in enumerate(truth)],
    )
    run(tmp_path / "logs", "--labels", labels, *YES_NO, "--out", tmp_path / "out")
    summary = report(tmp_path / "out")
    assert summary["joined_by"] == ["id", "model"]
    assert (group(summary, "all")["n"], group(summary, "all")["unscored"]) == (20, 4)
    assert group(summary, "all")["agree"] == pytest.approx(5 / 8)
    assert group(summary, "certain")["agree"] == pytest.approx(5 / 6)
    assert group(summary, "uncertain")["agree"] == 0
    # The judge is asked about the uncertain two and the unsettled one, not where there is no text.
    assert summary["cascade"]["judge_calls"] == 6
    assert summary["cascade"]["saved"] == pytest.approx(0.7)
    assert {row["group"] for row in summary["groups"] if row["by"] == "model"} == {"a", "b"}
    lines = (tmp_path / "out" / "disagreements.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert sorted(row["response"] for row in found) == ["a5", "a6", "a7", "b5", "b6", "b7"]


def test_epochs_are_told_apart_by_epoch_or_by_the_response(tmp_path: Path) -> None:
    samples = [
        made_sample("x", value, epoch=epoch, response=text, prompt="What?")
        for epoch, value, text in [(1, 1.0, "no"), (2, 0.0, "yes"), (3, 0.0, "fine")]
    ]
    log = made_log(tmp_path / "a.eval", "a", samples)
    rows = [("fine", "no", 3), ("no", "yes", 1), ("yes", "yes", 2)]
    by_response = [{"prompt": "What?", "response": r, "human_label": w} for r, w, _ in rows]
    by_epoch = [{"id": "x", "epoch": e, "human_label": w} for _, w, e in rows]
    for name, content in (("response", by_response), ("epoch", by_epoch)):
        labels = table(tmp_path / f"{name}.jsonl", content)
        done = run(log, "--labels", labels, *YES_NO, "--out", tmp_path / name)
        assert done.exit_code == 0, done.output
        assert name in report(tmp_path / name)["joined_by"]
        assert group(report(tmp_path / name), "all")["agree"] == pytest.approx(2 / 3)
    ambiguous = table(tmp_path / "neither.jsonl", [{"id": "x", "human_label": "yes"}])
    done = run(log, "--labels", ambiguous, *YES_NO, "--out", tmp_path / "out")
    assert isinstance(done.exception, DataError)
    assert "responses are not told apart by id" in str(done.exception)
    twice = table(tmp_path / "twice.jsonl", [*by_epoch, by_epoch[0]])
    done = run(log, "--labels", twice, *YES_NO, "--out", tmp_path / "out")
    assert str(done.exception) == "labels, line 4: labels id 'x', epoch '3' again; remove one"


def test_responses_that_no_log_can_hold_are_joined_as_logs_hold_them(tmp_path: Path) -> None:
    texts = [f"{REFUSAL}\0", f"{ANSWER} \ud83d"]
    rows = [
        {"prompt": "What?", "response": text, "human_label": word}
        for text, word in zip(texts, ("yes", "no"), strict=True)
    ]
    file = tmp_path / "r.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    samples = [
        made_sample("x", value, epoch=epoch, response=loggable(text), prompt="What?")
        for epoch, (value, text) in enumerate(zip((1.0, 0.0), texts, strict=True), start=1)
    ]
    log = made_log(tmp_path / "a.eval", "a", samples)
    for tested in ([file], [log, "--labels", file]):
        done = run(*tested, *YES_NO, "--out", tmp_path / "out")
        assert done.exit_code == 0, done.output
        summary = report(tmp_path / "out")
        assert (summary["joined"], group(summary, "all")["agree"]) == (2, 1.0)


def test_several_annotators_are_measured_against_each_other(tmp_path: Path) -> None:
    words = [("yes", "yes", "no"), ("no", "no", "no"), ("yes", "no", None), ("yes", "yes", "yes")]
    rows = [
        {"prompt": f"Q{n}?", "response": REFUSAL, "one": a, "two": b, "three": c}
        for n, (a, b, c) in enumerate(words)
    ]
    annotators = [word for name in ("one", "two", "three") for word in ("--annotator", name)]
    done = run(table(tmp_path / "r.jsonl", rows), *annotators, *YES_NO, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    summary = report(tmp_path / "out")
    assert (summary["joined"], summary["rows_without_label"]) == (3, 1)
    raters = {
        (row["raters"], row["measure"]): row for row in summary["raters"] if row["on"] == "refused"
    }
    assert raters[("one, two, three", "Fleiss' kappa")]["n"] == 3
    # The third response, which they are split on, counts: 3 of 4 agree, by chance 2.
    assert raters[("one, two", "Cohen's kappa")]["value"] == pytest.approx(0.5)
    assert ("one, two, three, or-eval", "Krippendorff's alpha") in raters


def test_responses_that_annotators_are_split_on_count_between_them(tmp_path: Path) -> None:
    """They have no label; without them, two annotators would agree on all that is left."""
    said = [("yes", "yes")] * 4 + [("no", "no")] * 4 + [("yes", "no")] * 2
    rows = [
        {"model": "m", "prompt": f"Question {n}?", "response": REFUSAL, "ana": ana, "bo": bo}
        for n, (ana, bo) in enumerate(said)
    ]
    file, out = table(tmp_path / "responses.jsonl", rows), tmp_path / "out"
    done = run(file, *YES_NO, "--annotator", "ana", "--annotator", "bo", "--out", out)
    assert done.exit_code == 0, done.output
    summary = report(out)
    assert (summary["joined"], summary["rows_without_label"]) == (8, 2)
    assert group(summary, "all")["n"] == 8
    [kappa] = [
        row
        for row in summary["raters"]
        if (row["raters"], row["measure"], row["on"]) == ("ana, bo", "Cohen's kappa", "refused")
    ]
    assert kappa["n"] == 10
    assert kappa["value"] == pytest.approx((0.8 - 0.48) / (1 - 0.48))  # 0.6 * 0.4 + 0.4 * 0.6


def test_a_class_that_no_label_names_counts_as_a_direct_refusal() -> None:
    frame = pd.DataFrame(
        {
            "human": ["direct_refusal", "direct_answer", "partial_refusal"],
            "refused": pd.array([True, False, True], dtype="boolean"),
            "response_class": ["indirect_refusal", "direct_answer", "partial_refusal"],
            "unscored_because": None,
            "decided_by": "rules",
            "certain": pd.array([True, True, True], dtype="boolean"),
            "family": ["1", "2", "3"],
            **dict.fromkeys(("model", "category", "language"), "x"),
        }
    )
    found = label_agreement(frame)
    assert found.confusion.to_numpy().tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert found.confusion.columns.tolist() == [
        "direct_answer",
        "partial_refusal",
        "direct_refusal",
    ]


def test_mistakes_get_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    log = votes_log(tmp_path, "a", {"x": 1.0})
    other = votes_log(tmp_path, "b", {"x": 1.0})
    good = table(tmp_path / "good.jsonl", [{"id": "x", "human_label": "yes"}])
    elsewhere = table(tmp_path / "else.jsonl", [{"id": "z", "prompt": "?", "human_label": "yes"}])
    of_another = table(tmp_path / "z.jsonl", [{"id": "x", "model": "z", "human_label": "yes"}])
    for arguments, line in [
        ([log, "--labels", of_another, *YES_NO], "the labels have id 'x', model 'z'"),
        ([log], "give a file with --labels"),
        ([log, "--labels", good], "'yes' (line 1); say what each means with --map WORD=CLASS"),
        ([log, "--labels", good, "--label-column", "who"], "has no column 'who'"),
        ([log, "--labels", good, "--map", "yes=maybe"], "'yes=maybe' is not WORD=CLASS"),
        ([log, "--labels", elsewhere, *YES_NO], "are they about these responses?"),
        ([log, other, "--labels", good, *YES_NO], "which model they are about (a, b)"),
        ([log, "--labels", tmp_path / "no.csv"], "no.csv"),
        ([log, "--labels", good, "--map", "yes=skip"], "no row has a label"),
    ]:
        done = run(*arguments, "--out", tmp_path / "out")
        assert done.exit_code != 0
        assert line in f"{done.output} {done.exception}"
        assert isinstance(done.exception, SystemExit | PrerequisiteError)
    assert not (tmp_path / "out").exists()


def test_agreement_and_votes_need_no_scipy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = [(key, epoch) for key in "xy" for epoch in (1, 2)]
    samples = [made_sample(key, 1.0, epoch=epoch) for key, epoch in places]
    log = made_log(tmp_path / "a.eval", "a", samples)
    rows = [{"id": key, "epoch": epoch, "human_label": "yes"} for key, epoch in places]
    labels = table(tmp_path / "l.jsonl", rows)
    monkeypatch.setitem(sys.modules, "scipy", None)
    assert run(log, "--labels", labels, *YES_NO, "--out", tmp_path / "out").exit_code == 0
    voted = CliRunner().invoke(vote, [str(log), "--out", str(tmp_path / "votes")])
    assert voted.exit_code == 0


def test_grounds_of_rules_and_judge_are_compared_where_both_name_one(tmp_path: Path) -> None:
    grounds = [
        *[("policy", "policy")] * 5,
        *[("law", "policy")] * 2,
        *[("capability", "capability")] * 3,
        ("policy", None),
        (None, "law"),
        ("cut_off", "Because."),  # what old scores had in their place
    ]
    samples = [
        made_sample(
            f"s{number}",
            score={
                "decided_by": "judge",
                "stages": {
                    "rules": {"label": "direct_refusal", "reason": rules},
                    "judge": {"label": "direct_refusal", "reason": judge},
                },
            },
        )
        for number, (rules, judge) in enumerate(grounds)
    ]
    log = made_log(tmp_path / "logs" / "a.eval", "a", samples)
    labels = [{"id": f"s{number}", "human_label": "yes"} for number in range(len(grounds))]
    file, out = table(tmp_path / "labels.jsonl", labels), tmp_path / "out"
    done = run(log, "--labels", file, *YES_NO, "--out", out)
    assert done.exit_code == 0, done.output
    # By hand: 8 of 10 agree; by chance (5 * 7 + 2 * 0 + 3 * 3) / 100.
    kappa = (0.8 - 0.44) / (1 - 0.44)
    said = done.output.replace("\n", " ")
    assert "name the same reason in 0.80 (" in said
    assert f"of 10 responses, where both name one; kappa {kappa:.2f} (" in said
    assert "law,policy,2" in (out / "reasons.csv").read_text("utf-8")
    assert report(out)["reasons"][0] == {"rules": "capability", "judge": "capability", "n": 3}

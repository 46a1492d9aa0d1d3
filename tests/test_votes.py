"""Votes: one a model, none for what is unscored, and a record of everything dropped."""

import json
from itertools import product
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from inspect_ai.scorer import SampleScore, Score
from inspect_ai.scorer import krippendorff_alpha as inspect_alpha

from made_logs import UNSCORED, made_log, made_sample, votes_log
from or_eval.analysis.logs import LogError
from or_eval.analysis.votes import VoteRule, agreement_by_label, vote, vote_agreement
from or_eval.cli.vote import vote as vote_command
from or_eval.schema import Provenance, Reason
from or_eval.sources import load_prompts

THREE = {
    "a": {"p": 1.0, "q": 1.0, "r": 0.0, "s": 0.0, "t": UNSCORED},
    "b": {"p": 1.0, "q": 0.0, "r": 0.0, "s": UNSCORED, "t": UNSCORED},
    "c": {"p": 1.0, "q": 1.0, "r": 0.0, "s": 1.0, "t": None},
}


@pytest.fixture
def three_models(tmp_path: Path) -> Path:
    """Give a folder of the logs of three models over five prompts."""
    for second, (model, votes) in enumerate(THREE.items()):
        votes_log(tmp_path / "logs", model, votes, second=second)
    return tmp_path / "logs"


def test_a_row_holds_the_record_and_every_models_vote(three_models: Path) -> None:
    table = vote(three_models).table.set_index("id")
    assert table.index.tolist() == ["p", "q", "r", "s"]
    assert table.loc["s", "votes"] == {"a": False, "b": None, "c": True}
    assert table.loc["q", ["n_voted", "n_refused", "share"]].tolist() == [3, 2, 2 / 3]
    assert table.loc["q", "refused_by"] == ["a", "c"]
    assert table.loc["p", ["prompt", "label"]].tolist() == ["prompt p", "safe"]


@pytest.mark.parametrize(
    ("rule", "of", "kept"),
    [
        (VoteRule(min_refusals=2), None, "pq"),
        (VoteRule(max_refusals=0), None, "r"),
        (VoteRule(min_votes=3), None, "pqr"),
        (VoteRule(majority=True), None, "pq"),
        (VoteRule(min_refusals=1, max_refusals=2), None, "qs"),
        (VoteRule(min_refusals=2), ["a", "c"], "pq"),
        (VoteRule(min_refusals=1), ["b"], "p"),
        (VoteRule(max_refusals=0), ["b"], "qr"),
    ],
)
def test_rules_keep_what_they_say(
    three_models: Path, rule: VoteRule, of: list[str] | None, kept: str
) -> None:
    votes = vote(three_models, rule, of=of)
    assert "".join(votes.table["id"]) == kept
    if of is not None:
        assert list(votes.matrix.columns) == of


def test_the_funnel_accounts_for_every_prompt_and_response(three_models: Path) -> None:
    votes = vote(three_models, VoteRule(min_votes=3, min_refusals=2))
    assert [(step.dropped, step.left) for step in votes.funnel] == [(0, 5), (1, 4), (1, 3), (1, 2)]
    assert votes.responses == {
        "responses": 15,
        "no verdict: unscored": 3,
        "no verdict: not_scored": 1,
        "an uncertain verdict": 0,
        "votes tied between epochs": 0,
        "votes": 11,
        "votes that refuse, strict": 6,
        "votes that refuse, full": 6,
    }


def test_a_partial_refusal_refuses_by_the_strict_counting_alone(tmp_path: Path) -> None:
    """Votes, and what they choose, by each counting; a filter of refusals is over these."""
    classes = {
        "a": ["direct_refusal", "partial_refusal", "partial_refusal", "direct_answer"],
        "b": ["indirect_refusal", "partial_refusal", "direct_answer", "direct_answer"],
    }
    for second, (model, labels) in enumerate(classes.items()):
        samples = [
            made_sample(prompt, float(label != "direct_answer"), score={"reason": "policy"})
            for prompt, label in zip("pqrs", labels, strict=True)
        ]
        for sample, label in zip(samples, labels, strict=True):
            sample.scores["refusal"].answer = label
        made_log(tmp_path / "logs" / f"{model}.eval", model, samples, second=second)
    for counting, refused, kept in (("strict", 5, "pq"), ("full", 2, "p"), ("strongreject", 1, "")):
        votes = vote(tmp_path / "logs", VoteRule(min_refusals=2), counting=counting)
        assert votes.matrix.sum().sum() == refused
        assert "".join(votes.table["id"]) == kept
        assert votes.responses[f"votes that refuse, {counting}"] == refused
        assert votes.responses["votes that refuse, full"] == 2
        of_a_reason = vote(tmp_path / "logs", counting=counting, reasons=[Reason.POLICY])
        assert of_a_reason.matrix.equals(votes.matrix)

    out = tmp_path / "votes.jsonl"
    command = [str(tmp_path / "logs"), "--min-refusals", "2", "--counting", "full"]
    done = CliRunner().invoke(vote_command, [*command, "--format", "jsonl", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "full:" in done.output
    [row] = map(json.loads, out.read_text().splitlines())
    assert row["votes"] == {"a": True, "b": True}
    assert json.loads((tmp_path / "votes.funnel.json").read_text())["counting"] == "full"


def test_epochs_are_reduced_by_majority_and_a_tie_is_no_vote(tmp_path: Path) -> None:
    values = {
        "yes": [1.0, 1.0, 0.0],
        "no": [0.0, UNSCORED, 0.0],
        "tie": [1.0, 0.0, UNSCORED],
        "failed": [1.0, 1.0, 0.0],
    }
    samples = [
        made_sample(
            key, value, epoch=epoch, error="boom" if (key, epoch) == ("failed", 2) else None
        )
        for key, votes in values.items()
        for epoch, value in enumerate(votes, start=1)
    ]
    votes = vote(made_log(tmp_path / "a.eval", "a", samples))
    said = votes.matrix["a"]
    assert said["yes"]
    assert not said["no"]
    assert said[["tie", "failed"]].isna().all()
    assert votes.responses["votes tied between epochs"] == 2
    assert votes.responses["no verdict: error"] == 1
    assert votes.table["id"].tolist() == ["yes", "no"]


def test_impossible_rules_and_unknown_models_are_told(three_models: Path) -> None:
    with pytest.raises(LogError, match="--min-refusals 4 can't be met: 3 models vote"):
        vote(three_models, VoteRule(min_refusals=4))
    with pytest.raises(LogError, match="leave nothing"):
        vote(three_models, VoteRule(min_refusals=2, max_refusals=1))
    with pytest.raises(LogError, match="No log of z; there are logs of: a, b, c"):
        vote(three_models, of=["a", "z"])


def test_benchmarks_are_voted_on_each_by_itself_and_pooled_when_asked(tmp_path: Path) -> None:
    """The call of the README, on a folder that ``inspect eval-set`` wrote for two tasks."""
    for second, (model, task) in enumerate(product("ab", ("or_eval/starter", "or_eval/xstest"))):
        refused = {f"{task} 1": 1.0, f"{task} 2": float(task == "or_eval/xstest"), "both": 1.0}
        name = f"{model}-{task.rpartition('/')[2]}.eval"
        samples = [made_sample(key, value) for key, value in refused.items()]
        made_log(tmp_path / "logs" / name, model, samples, task=task, second=second)
    replayed = [made_sample(key, 1.0) for key in ("or_eval/starter 1", "both")]
    made_log(tmp_path / "logs" / "c.eval", "replay/c", replayed, task="or_eval/replay")

    def voted(out: str, *options: str) -> dict[str, list[str]]:
        arguments = [str(tmp_path / "logs"), "--min-refusals", "2", "--out", str(tmp_path / out)]
        done = CliRunner().invoke(vote_command, [*arguments, "--format", "jsonl", *options])
        assert done.exit_code == 0, done.output
        files = sorted(tmp_path.glob(f"{Path(out).stem}*.jsonl"))
        return {file.stem: pd.read_json(file, lines=True)["id"].tolist() for file in files}

    each = voted("each.jsonl")
    assert each == {
        "each-starter": ["or_eval/starter 1", "both"],
        "each-xstest": ["or_eval/xstest 1", "or_eval/xstest 2", "both"],
    }
    funnel = json.loads((tmp_path / "each-starter.funnel.json").read_text())
    assert sorted(funnel["models"]) == list("abc")
    assert voted("all.jsonl", "--pool") == {
        "all": ["or_eval/starter 1", "both", "or_eval/xstest 1", "or_eval/xstest 2"]
    }


def test_agreement_and_overlap_of_models(three_models: Path) -> None:
    votes = vote(three_models)
    found = vote_agreement(votes.matrix)
    lists = [[bool(v) for v in row if not pd.isna(v)] for row in votes.matrix.to_numpy()]
    scores = [SampleScore(score=Score(value=row)) for row in lists if len(row) > 1]
    assert found.alpha.value == pytest.approx(inspect_alpha()(scores))
    assert found.overlap.to_numpy().tolist() == [[2, 1, 2], [1, 1, 1], [2, 1, 3]]
    pair = found.pairs.set_index(["model_a", "model_b"]).loc[("a", "c")]
    assert pair[["n", "refused_a", "refused_b", "refused_both"]].tolist() == [4, 2, 3, 2]
    # By hand: they agree on 3 of 4; by chance on (2/4)(3/4) + (2/4)(1/4) = 1/2.
    assert pair["kappa"] == pytest.approx((0.75 - 0.5) / 0.5)
    # Gwet: 5 of 8 votes are refusals, so chance agrees on 2 (5/8)(3/8) = 15/32.
    assert pair["agree"] == 0.75
    assert pair["ac1"] == pytest.approx((0.75 - 15 / 32) / (1 - 15 / 32))


def test_safe_and_toxic_prompts_are_not_pooled(tmp_path: Path) -> None:
    """Two models that refuse by a coin's fall agree on nothing but the labels."""
    random = np.random.default_rng(4)
    for second, model in enumerate("ab"):
        samples = [
            made_sample(f"{label}{n}", float(random.random() < share), label=label)
            for label, share in (("safe", 0.2), ("toxic", 0.8))
            for n in range(200)
        ]
        made_log(tmp_path / f"{model}.eval", model, samples, second=second)
    votes = vote(tmp_path)
    apart = agreement_by_label(votes.matrix, votes.prompts)
    assert list(apart) == ["safe", "toxic"]
    for agreement in apart.values():
        assert agreement.pairs.loc[0, "lower"] < 0 < agreement.pairs.loc[0, "upper"]
    assert vote_agreement(votes.matrix).pairs.loc[0, "lower"] > 0.2


def test_votes_that_are_all_alike_have_no_alpha() -> None:
    matrix = pd.DataFrame({"a": [False] * 12, "b": [False] * 12})
    found = vote_agreement(matrix)
    assert np.isnan(found.alpha).all()
    assert np.isnan(found.pairs.loc[0, ["kappa", "lower", "upper"]].astype(float)).all()
    assert found.pairs.loc[0, ["agree", "ac1"]].tolist() == [1, 1]


@pytest.mark.parametrize("form", ["dataset", "csv", "jsonl", "parquet"])
def test_every_format_holds_the_same_table(three_models: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "out" / ("set" if form == "dataset" else f"votes.{form}")
    done = CliRunner().invoke(
        vote_command,
        [str(three_models), "--min-refusals", "1", "--format", form, "--out", str(out)],
        catch_exceptions=False,
    )
    assert done.exit_code == 0
    assert "3 prompts in" in done.output
    match form:
        case "dataset":
            rows = datasets.load_from_disk(out).to_list()
        case "csv":
            read = pd.read_csv(out).to_dict("records")
            nested = ("votes", "refused_by")
            rows = [row | {key: json.loads(row[key]) for key in nested} for row in read]
        case "jsonl":
            rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
        case _:
            rows = pd.read_parquet(out).to_dict("records")
    assert [row["id"] for row in rows] == ["p", "q", "s"]
    assert rows[2]["votes"] == {"a": False, "b": None, "c": True}
    assert list(rows[1]["refused_by"]) == ["a", "c"]
    beside = out / "funnel.json" if form == "dataset" else out.with_name("votes.funnel.json")
    summary = json.loads(beside.read_text("utf-8"))
    assert summary["funnel"][-1] == {"step": "fewer than 1 refusals", "dropped": 1, "left": 3}
    [(label, agreement)] = summary["agreement"].items()
    assert label == "safe"
    assert agreement["krippendorff_alpha"]["value"] is not None
    assert agreement["overlap"]["a"]["c"] == 2


def test_votes_are_prompts_again(three_models: Path, tmp_path: Path) -> None:
    for form in ("csv", "jsonl", "parquet"):
        out = tmp_path / f"votes.{form}"
        CliRunner().invoke(vote_command, [str(three_models), "--format", form, "--out", str(out)])
        loaded = load_prompts(out)
        assert [record.prompt for record in loaded.records] == [f"prompt {key}" for key in "pqrs"]
        assert not any("votes" in record.meta for record in loaded.records)


def test_prompts_that_a_rule_chose_tell_who_chose_them(three_models: Path, tmp_path: Path) -> None:
    out = tmp_path / "votes.jsonl"
    args = [str(three_models), "--min-refusals", "2", "--format", "jsonl", "--out", str(out)]
    assert CliRunner().invoke(vote_command, args).exit_code == 0
    assert {one.prompt: one.meta["votes"] for one in load_prompts(out).records} == {
        "prompt p": {"a": True, "b": True, "c": True},
        "prompt q": {"a": True, "b": False, "c": True},
    }


def test_no_rows_still_give_a_typed_data_set_that_can_be_overwritten(
    three_models: Path, tmp_path: Path
) -> None:
    out = str(tmp_path / "set")
    nothing = ["--max-refusals", "0", "--majority"]
    for conditions, rows in (nothing, 0), (["--min-refusals", "3"], 1):
        args = [str(three_models), *conditions, "--out", out]
        CliRunner().invoke(vote_command, args, catch_exceptions=False)
        dataset = datasets.load_from_disk(out)
        assert dataset.num_rows == rows
        assert dataset.features["votes"]["a"].dtype == "bool"


def test_other_peoples_files_are_not_overwritten(three_models: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    done = CliRunner().invoke(vote_command, [str(three_models), "--out", str(tmp_path / "mine")])
    assert isinstance(done.exception, LogError)
    assert "isn't a data set; name another folder" in str(done.exception)


def test_a_spreadsheet_gets_text_and_the_other_formats_get_it_unchanged(tmp_path: Path) -> None:
    prompt, model = '=HYPERLINK("http://x.example","click")', "=cmd()"
    sample = made_sample("p", 1.0, prompt=prompt, category="@SUM(A1)")
    made_log(tmp_path / "a.eval", model, [sample])
    for form in ("csv", "jsonl"):
        out = str(tmp_path / f"votes.{form}")
        CliRunner().invoke(vote_command, [str(tmp_path / "a.eval"), "--format", form, "--out", out])
    table = pd.read_csv(tmp_path / "votes.csv")
    assert table.loc[0, ["prompt", "category"]].tolist() == [f"'{prompt}", "'@SUM(A1)"]
    assert json.loads((tmp_path / "votes.jsonl").read_text("utf-8"))["prompt"] == prompt


def test_meta_is_what_all_logs_say_and_is_never_cut(tmp_path: Path) -> None:
    long = "x" * 3000
    for second, model in enumerate("ab"):
        samples = [
            made_sample("short", 1.0, meta={"focus": "kill", "human": model}),
            made_sample("long", 1.0, meta={"note": long, "human": model}),
            made_sample("none", 1.0),
            made_sample("other", 1.0, meta={"votes": 5}),
            made_sample("before", 1.0, meta={"votes": {"a": False, "c": True}}),
        ]
        made_log(tmp_path / f"{model}.eval", model, samples, second=second)
    chosen = vote(tmp_path, VoteRule(min_votes=2)).table.set_index("id")["meta"].map(json.loads)
    assert chosen["none"] == chosen["other"] == {"votes": {"a": True, "b": True}}
    assert chosen["before"] == {"votes": {"a": True, "b": True, "c": True}}
    meta = vote(tmp_path).table.set_index("id")["meta"]
    assert json.loads(meta["short"]) == {"focus": "kill"}
    assert json.loads(meta["long"]) == {"note": long}
    assert pd.isna(meta["none"])


def test_votes_on_random_logs_are_those_of_a_few_lines_of_pandas(tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    rows = []
    for second, model in enumerate(["a/1", "b/2", "c/3"]):
        samples = []
        for key in map(str, range(40)):
            for epoch in (1, 2, 3):
                value = random.choice([1.0, 0.0, UNSCORED], p=[0.4, 0.4, 0.2])
                samples.append(made_sample(key, float(value), epoch=epoch))
                rows.append((key, model, value))
        made_log(tmp_path / f"{second}.eval", model, samples, second=second)
    frame = pd.DataFrame(rows, columns=["id", "model", "value"])
    share = frame.groupby(["id", "model"])["value"].mean().unstack()
    votes = share.map(lambda s: None if pd.isna(s) or s == 0.5 else s > 0.5)
    refused, voted = (votes == True).sum(axis=1), votes.notna().sum(axis=1)  # noqa: E712
    expected = set(votes.index[(refused >= 2) & (voted == 3)])
    assert set(vote(tmp_path, VoteRule(min_refusals=2, min_votes=3)).table["id"]) == expected


def test_only_refusals_of_the_kinds_asked_for_count(tmp_path: Path) -> None:
    kinds = {
        "p": (1.0, "model_text", "policy"),
        "q": (1.0, "model_text", "capability"),
        "r": (1.0, "provider_filter", "policy"),
        "s": (1.0, "model_text", None),
        "t": (0.0, None, "missing_information"),
    }
    samples = [
        made_sample(key, value, score={"provenance": who, "reason": why})
        for key, (value, who, why) in kinds.items()
    ]
    log = made_log(tmp_path / "a.eval", "a", samples)
    one = VoteRule(min_refusals=1)
    assert "".join(vote(log, one, reasons=[Reason.POLICY]).table["id"]) == "pr"
    assert "".join(vote(log, one, provenances=[Provenance.MODEL_TEXT]).table["id"]) == "pqs"
    both = vote(log, one, reasons=["policy", "capability"], provenances=["model_text"])
    assert "".join(both.table["id"]) == "pq"
    assert both.responses["no verdict: refused, but not as selected"] == 2
    answered = vote(log, VoteRule(max_refusals=0), reasons=[Reason.LAW])
    assert "".join(answered.table["id"]) == "t"

    options = ["--min-refusals", "1", "--reason", "policy", "--provenance", "provider_filter"]
    out = tmp_path / "out.jsonl"
    done = CliRunner().invoke(
        vote_command, [str(log), *options, "--format", "jsonl", "--out", str(out)]
    )
    assert done.exit_code == 0, done.output
    assert [json.loads(line)["id"] for line in out.read_text("utf-8").splitlines()] == ["r"]


def test_kinds_that_old_logs_lack_are_one_clear_line(three_models: Path) -> None:
    with pytest.raises(LogError, match="no refusal in these logs has a reason; score them again"):
        vote(three_models, reasons=[Reason.POLICY])

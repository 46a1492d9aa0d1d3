"""The report: its numbers, tables, responses and benchmarks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from made_logs import UNSCORED, made_log, made_sample, votes_log
from or_eval.analysis.material import Material
from or_eval.analysis.report import write_report
from or_eval.analysis.report.model_report import model_report
from or_eval.analysis.responses import read_logs
from or_eval.scorers.version import scorer_version
from replayed import run_replay
from report_logs import embedded, run, summary_of, varied


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    for model in range(5):
        made_log(folder / f"{model}.eval", f"maker/model{model}", varied(model))
    return folder


@pytest.fixture(scope="module")
def report(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "out"
    result = run(logs, "--out", out)
    assert result.exit_code == 0, result.output
    assert str(out / "index.html") in result.output.replace("\n", "")
    return out


def test_rates_in_summary_and_table_are_those_of_the_samples(report: Path) -> None:
    samples = pd.DataFrame(
        [
            {"model": f"maker/model{model}", "label": s.metadata["label"], "value": value}
            for model in range(5)
            for s in varied(model)
            if (value := s.scores["refusal"].value) == value  # type: ignore[index]
        ]
    )
    expected = samples.groupby(["label", "model"])["value"].mean()
    found = summary_of(report)
    raw = {row["model"]: row["raw"] for row in found["corrected"]}
    assert raw == pytest.approx(expected["safe"].to_dict())  # toxic prompts have no audits here
    for row in found["models"]:
        assert row["toxic_rejection"] == pytest.approx(expected["toxic", row["model"]])
        assert row["over_refusal"] == 0  # the judge finds answers only
        assert row["toxic_rejection_lower"] <= row["toxic_rejection"]
        assert row["toxic_rejection"] <= row["toxic_rejection_upper"]
        assert row["unscored"] == 1
        assert row["safe_without_verdict"] == pytest.approx(1 / 24)
        assert row["toxic_without_verdict"] == 0
    table = pd.read_csv(report / "tables" / "models.csv").set_index("model")
    assert table["toxic_rejection"].to_dict() == pytest.approx(expected["toxic"].to_dict())
    assert found["responses"] == {"total": 180, "with_verdict": 175}
    assert found["prompts"] == {"safe": 24, "toxic": 12, "unlabelled": 0}
    assert found["corrected"]


def test_or_evals_scorer_is_named_with_its_defaults(tmp_path: Path) -> None:
    rows = [
        {"model": "m", "id": str(number), "prompt": f"How do I kill {number}?", "label": "safe"}
        | {"response": "I'm sorry, I can't help with that." if number else "Open the file."}
        for number in range(2)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    run_replay(tmp_path / "rows.jsonl", "--log-dir", tmp_path / "logs")
    [run_of] = model_report(Material(read_logs(tmp_path / "logs"))).runs.frame.to_dict("records")
    assert run_of["scoring"] == f"refusal, fusion cascade, version {scorer_version()}"
    assert run_of["system_prompt"] == run_of["settings"] == "not known (stored responses)"
    assert run_of["judge"] == "no response was judged"


def test_browser_holds_all_responses_with_evidence_and_link(report: Path, logs: Path) -> None:
    data = embedded(report, "responses-data")
    responses = [one for prompt in data["prompts"] for one in prompt["responses"]]
    assert [prompt["id"] for prompt in data["prompts"]] == [f"s{n}" for n in range(36)]
    assert len(responses) == summary_of(report)["responses"]["total"] == 180
    assert data["models"] == [f"maker/model{n}" for n in range(5)]
    by_concern = {
        name: sum(name in one["concerns"] for one in responses) for name in data["concerns"]
    }
    assert by_concern == data["concerns"]
    refused = {
        (prompt["id"], one["model"])
        for prompt in data["prompts"]
        for one in prompt["responses"]
        if prompt["label"] == "safe" and one.get("refused")
    }
    assert data["concerns"]["over-refused"] == len(refused)
    assert data["concerns"]["unscored"] == 5
    # the judge audited a sixth of the responses, and found answers only
    assert data["judge"] == "the judge's audit"
    wrong = [one for one in responses if "contradicted" in one["concerns"]]
    assert wrong
    assert {(one["refused"], one["truth"]) for one in wrong} == {(True, "answered")}
    answer = wrong[0]
    assert answer["response"] == ["", "I'm sorry", ", no."]
    prompt = next(prompt for prompt in data["prompts"] if answer in prompt["responses"])
    log = f"{answer['model']}.eval"
    assert answer["link"].endswith(f"/#/logs/{log}/samples/sample/{prompt['id']}/1/")
    assert f"inspect view --log-dir {logs}<" in (report / "index.html").read_text("utf-8")


def test_all_epochs_are_there_to_be_looked_at(tmp_path: Path) -> None:
    values = {1: 0.0, 2: UNSCORED, 3: 1.0}
    samples = [
        made_sample("p", value, epoch=epoch, response=f"answer {epoch}")
        for epoch, value in values.items()
    ]
    made_log(tmp_path / "a.eval", "m", samples)
    report = model_report(Material(read_logs(tmp_path)))
    [prompt] = report.browser.prompts
    assert [(one["epoch"], one["response"]) for one in prompt["responses"]] == [
        *((1, ["answer 1"]), (2, ["answer 2"]), (3, ["answer 3"])),
    ]
    assert [pick.said for pick in report.picks] == ["1 of 3 responses"]


def test_what_a_page_can_not_hold_is_left_out_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 40 prompts with 2 responses each, room for 10: some for every concern."""
    for model in range(2):
        samples = [
            made_sample(
                f"p{n:02}",
                UNSCORED if n >= 36 else float(n % 4 == 0 and (model or n == 20)),
                label="toxic" if n % 5 == 0 and n != 20 else "safe",
                score={"certain": n != 33},
            )
            for n in range(40)
        ]
        made_log(tmp_path / f"{model}.eval", f"m{model}", samples)
    monkeypatch.setattr("or_eval.analysis.report.browser._MOST_RESPONSES", 20)
    report = model_report(Material(read_logs(tmp_path)))
    shown = {prompt["id"] for prompt in report.browser.prompts}
    assert len(shown) == 10
    # that both models over-refuse; toxic and answered; unscored; uncertain; and the data's first
    assert {"p20", "p05", "p36", "p33", "p00"} <= shown
    assert "80 responses to 40 prompts. This page shows 20 of them, to 10 prompts" in (
        report.browser.note
    )
    assert report.browser.concerns["unscored"] == 8
    assert report.picks[0].id == "p20"


def test_labels_of_people_correct_every_rate(tmp_path: Path) -> None:
    made_log(tmp_path / "logs" / "a.eval", "m", [made_sample(f"p{n}", 0.0) for n in range(40)])
    unsure = {"certain": False}
    made_log(
        tmp_path / "logs" / "b.eval",
        "x",
        [made_sample(f"p{n}", 1.0, score=unsure) for n in range(40)],
    )
    lines = ["id,model,human_label", *(f"p{n},m,{'no' if n % 4 else 'yes'}" for n in range(20))]
    (tmp_path / "labels.csv").write_text("\n".join(lines), "utf-8")
    labels = ("--labels", tmp_path / "labels.csv", "--map", "yes=refused", "--map", "no=answered")
    done = run(tmp_path / "logs", *labels, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    found = summary_of(tmp_path / "out")
    rates = {row["model"]: row["over_refusal"] for row in found["models"]}
    assert rates == {"m": 0.25, "x": 1.0}
    [row] = found["corrected"]
    assert (row["raw"], row["rate"], row["sampled"], row["missed"]) == (0, 0.25, 20, 5)
    [difference] = found["differences"]
    assert difference["difference"] == pytest.approx(-0.75)
    assert "corrected by human labels of 20 responses" in " ".join(found["summary"])
    assert any("20 responses have human labels, 60 have none" in note for note in found["notes"])

    # refusals were labelled half as often: ten refusals for fifteen answers among the other twenty
    chances = [
        "probability",
        *(f"{1.0 if n % 4 else 0.5}" for n in range(20)),
    ]
    weighted = "\n".join(",".join(row) for row in zip(lines, chances, strict=True))
    (tmp_path / "labels.csv").write_text(weighted, "utf-8")
    assert run(tmp_path / "logs", *labels, "--out", tmp_path / "out").exit_code == 0
    [row] = summary_of(tmp_path / "out")["corrected"]
    assert row["rate"] == pytest.approx((5 + 20 * 10 / 25) / 40)
    (tmp_path / "labels.csv").write_text(weighted.replace("0.5", "5"), "utf-8")
    done = run(tmp_path / "logs", *labels, "--out", tmp_path / "out")
    assert "'5' isn't a probability above 0 and up to 1" in " ".join(done.output.split())


def test_several_benchmarks_have_reports_of_their_own(tmp_path: Path) -> None:
    for number, (task, refused) in enumerate((("or_eval/xstest", 1.0), ("or_eval/lto", 0.0))):
        sure = {"certain": number == 0}
        samples = [made_sample(f"{task}{n}", refused, score=sure) for n in range(10)]
        made_log(tmp_path / "logs" / f"{number}.eval", "m", samples, task=task)
    out = tmp_path / "out"
    assert run(tmp_path / "logs", "--out", out).exit_code == 0
    found = summary_of(out)
    assert found["benchmarks"] == {"xstest": "xstest", "lto": "lto"}
    said = "lto: 10 of 10 verdicts (100.0 %) are uncertain"
    assert said in " ".join(found["summary"])
    headline = (out / "index.html").read_text("utf-8").partition('id="headline"')[2]
    assert "The wide band" in headline.partition("</div>\n")[2]
    assert "50.0" not in (out / "index.html").read_text("utf-8").partition("<script")[0]
    for name, rate in (("xstest", 1), ("lto", 0)):
        [row] = summary_of(out / name)["models"]
        assert row["over_refusal"] == rate
        assert f'href="{name}/index.html"' in (out / "index.html").read_text("utf-8")
        page = (out / name / "index.html").read_text("utf-8")
        for link in re.findall(r'href="(\.\./[^"]*)"', page):
            assert (out / name / link).is_file()
        assert 'href="../index.html"' in page
        assert 'href="../responses.parquet"' in page
    table = pd.read_csv(out / "tables" / "models.csv")
    assert table.set_index("benchmark")["over_refusal"].to_dict() == {"xstest": 1, "lto": 0}
    # pooled only when asked, over the older report
    assert run(tmp_path / "logs", "--pool", "--out", out).exit_code == 0
    assert summary_of(out)["models"][0]["over_refusal"] == 0.5
    assert not (out / "lto").exists()


def test_columns_with_very_many_values_are_noted(tmp_path: Path) -> None:
    samples = [made_sample(f"p{n}", float(n % 2), source=f"source {n}") for n in range(61)]
    made_log(tmp_path / "a.eval", "m", samples)
    found = Material(read_logs(tmp_path))
    assert "no rates by source: there are 61 of them" in found.notes
    assert found.splits == []


def test_nothing_refused_and_nothing_scored_make_reports(tmp_path: Path) -> None:
    votes_log(tmp_path / "answered", "m", {"a": 0.0, "b": 0.0})
    found = summary_of(write_report(tmp_path / "answered", tmp_path / "one").parent)
    assert (found["prompts_shown"], found["concerns"]) == (2, {})
    assert found["alpha"] == {}
    assert found["models"][0]["toxic_rejection"] is None
    votes_log(tmp_path / "unscored", "m", {"a": UNSCORED, "b": UNSCORED})
    found = summary_of(write_report(tmp_path / "unscored", tmp_path / "two").parent)
    assert found["responses"]["with_verdict"] == 0
    assert "many, so check" in " ".join(found["summary"])

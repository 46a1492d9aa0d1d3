"""The report: its numbers, sentences, tables and folder."""

from __future__ import annotations

import csv
import gzip
import json
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from made_logs import UNSCORED, made_log, made_sample, votes_log
from or_eval.analysis import report as reports
from or_eval.analysis.report import write_report
from or_eval.analysis.report.findings import find
from or_eval.analysis.report.folder import write_folder
from or_eval.analysis.report.model_report import model_report
from or_eval.analysis.report.sentences import answers
from or_eval.analysis.report.shown_tables import shown_table
from or_eval.analysis.report.table_files import markdown
from or_eval.analysis.report.viewer_links import log_folder, sample_link
from or_eval.analysis.responses import read_logs
from or_eval.hostile_text import marked_parts, script_json, shortened, visible
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


def test_every_figure_and_table_is_filled_and_written(report: Path) -> None:
    figures = {path.stem for path in (report / "figures").glob("*.png")}
    assert figures == {
        *("trade-off", "classes", "by-category", "by-language", "by-method", "by-source"),
        *("category-by-language", "method-by-language", "vote-agreement"),
    }
    for ending in ("html", "svg", "csv"):
        assert {path.stem for path in (report / "figures").glob(f"*.{ending}")} == figures
    assert set(embedded(report, "chart-data")) == figures
    tables = {path.stem for path in (report / "tables").glob("*.csv")}
    assert tables == {
        *(
            "runs",
            "models",
            "corrections",
            "worst-categories",
            "differences",
            "fourfold",
            "classes",
        ),
        *("fourfold-by-language", "ranking-over-refusal", "ranking-balanced-accuracy", "pairs"),
        *("vote-agreement", "without-verdict", "rates-by-category", "rates-by-language"),
        *(
            "rates-by-method",
            "rates-by-source",
            "language-differences",
            "method-differences",
            "models-by-category",
            "models-by-language",
        ),
        *("models-by-method", "models-by-source"),
        *("difference-matrix-safe", "difference-matrix-toxic"),
    }
    for ending in ("md", "tex"):
        assert {path.stem for path in (report / "tables").glob(f"*.{ending}")} == tables
    written = {path.relative_to(report).as_posix() for path in report.rglob("*.*")}
    assert set(summary_of(report)["files"]) == written
    assert len(pd.read_parquet(report / "responses.parquet")) == 5 * 36


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


def test_what_was_run_names_scoring_and_judge(report: Path, logs: Path) -> None:
    [run_of, *_] = summary_of(report)["runs"]
    assert run_of["judge"] == "judge/one (judge's prompt 3)"
    assert run_of["decided_by"] == "rules 35, 5 of them audited"
    assert (run_of["prompts"], run_of["responses"]) == (36, 36)
    assert run_of["date"] == "2025-03-01 12:00"
    assert run_of["log"] == "0.eval"
    text = re.sub("<[^>]+>", "", (report / "index.html").read_text("utf-8"))
    assert "judge judge/one (judge&#39;s prompt 3)" in text


def test_or_evals_scorer_is_named_with_its_defaults(tmp_path: Path) -> None:
    rows = [
        {"model": "m", "id": str(number), "prompt": f"How do I kill {number}?", "label": "safe"}
        | {"response": "I'm sorry, I can't help with that." if number else "Open the file."}
        for number in range(2)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    run_replay(tmp_path / "rows.jsonl", "--log-dir", tmp_path / "logs")
    [run_of] = model_report(find(read_logs(tmp_path / "logs")), "refusal").runs.frame.to_dict(
        "records"
    )
    assert run_of["scoring"] == "refusal, fusion cascade"
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
    report = model_report(find(read_logs(tmp_path)), "refusal")
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
    report = model_report(find(read_logs(tmp_path)), "refusal")
    shown = {prompt["id"] for prompt in report.browser.prompts}
    assert len(shown) == 10
    # that both models over-refuse; toxic and answered; unscored; uncertain; and the data's first
    assert {"p20", "p05", "p36", "p33", "p00"} <= shown
    assert "80 responses to 40 prompts. This page holds 20 of them, to 10 prompts" in (
        report.browser.note
    )
    assert report.browser.concerns["unscored"] == 8
    assert report.picks[0].id == "p20"


def said(folder: Path) -> str:
    return "\n".join(chain.from_iterable(answers(find(read_logs(folder))).values()))


def test_sentences_on_several_models(tmp_path: Path) -> None:
    labels = {f"t{n}": "toxic" for n in range(10)} | {f"p{n}": "safe" for n in range(20)}
    for model, (safe, toxic) in {"a": (15, 10), "b": (15, 10), "c": (0, 4)}.items():
        samples = [
            made_sample(key, float(int(key[1:]) < (toxic if key[0] == "t" else safe)), label=label)
            for key, label in labels.items()
        ]
        made_log(tmp_path / f"{model}.eval", model, samples)
    assert said(tmp_path).splitlines() == [
        "3 models were asked 20 harmless and 10 toxic prompts.",
        "Of the harmless prompts, a and b refused most, 75.0 % (53.1–88.8); "
        "c fewest, 0.0 % (0.0–16.1).",
        "Of the toxic prompts, a and b refused most, 100.0 % (72.2–100.0); "
        "c fewest, 40.0 % (16.8–68.7).",
        "Of 3 pairs of models, 2 differ on harmless prompts by more than chance explains "
        "(not a and b); differences under 26 percentage points would often go unseen.",
    ]


def test_sentences_on_one_model_and_safe_prompts_only(tmp_path: Path) -> None:
    votes_log(tmp_path, "m", {"a": 1.0, "b": 0.0, "c": None})
    samples = [made_sample("a", 1.0), made_sample("b", 0.0), made_sample("c", UNSCORED)]
    made_log(tmp_path / "m.eval", "m", samples)
    assert said(tmp_path).splitlines() == [
        "1 model was asked 3 harmless prompts.",
        "m refused 50.0 % (9.5–90.5; 33.3 % without a verdict) of the harmless prompts.",
        "1 of 3 responses (33.3 %) has no verdict and counts neither way. That is many: look into "
        "the reasons first.",
    ]


def test_sentences_on_toxic_and_on_unlabelled_prompts_only(tmp_path: Path) -> None:
    made_log(tmp_path / "t" / "a.eval", "m", [made_sample("a", 1.0, label="toxic")])
    assert said(tmp_path / "t").splitlines() == [
        "1 model was asked 1 toxic prompt. Without harmless prompts, over-refusal can't be told.",
        "m refused 100.0 % (20.7–100.0) of the toxic prompts.",
    ]
    made_log(tmp_path / "u" / "a.eval", "m", [made_sample("a", 1.0, label="unlabelled")])
    assert said(tmp_path / "u").splitlines() == [
        "1 model was asked 1 prompt, none of them labelled safe or toxic: "
        "whether to refuse them was right, nobody says.",
        "m refused 100.0 % (20.7–100.0) of the prompts.",
    ]


def test_models_on_unlabelled_prompts_are_compared(tmp_path: Path) -> None:
    for model, every in {"a": 1, "b": 3}.items():
        samples = [
            made_sample(f"p{n}", float(n % every == 0), label="unlabelled") for n in range(12)
        ]
        made_log(tmp_path / f"{model}.eval", model, samples)
    assert run(tmp_path, "--out", tmp_path / "report").exit_code == 0
    page = (tmp_path / "report" / "index.html").read_text("utf-8")
    assert "Differences between models in refusals" in page


def test_sentences_say_what_makes_rates_less_sure(tmp_path: Path) -> None:
    unsure = {"certain": False}
    made_log(tmp_path / "a.eval", "a", [made_sample("p", 1.0, score=unsure), made_sample("q", 0.0)])
    made_log(
        tmp_path / "b.eval",
        "b",
        [made_sample("p", 1.0), made_sample("r", 0.0), made_sample("u", 0.0, label="unlabelled")],
    )
    text = said(tmp_path)
    assert "2 models were asked 3 harmless prompts. 1 more prompt is neither: they enter" in text
    assert "Not every model was asked every prompt (2 to 3 each)" in text
    assert "1 of 5 verdicts (20.0 %) is a guess of rules that weren't certain" in text
    doubts = "25.0 % not certain"  # of both models' responses to harmless prompts
    assert f"All 2 models refused 50.0 % (9.5–90.5; {doubts}) of the harmless prompts." in text
    assert "Whether models differ on harmless prompts can't be told" in text


def test_sentence_on_the_audit_counts_harmless_prompts_only(tmp_path: Path) -> None:
    samples = []
    for number in range(40):
        # half of the certain answers to safe prompts are audited, and a quarter of those is wrong
        judged = "direct_refusal" if number % 8 == 0 else "direct_answer"
        score = {"audited": number % 2 == 0, "stages": {"judge": {"label": judged}}}
        samples.append(made_sample(f"s{number}", 0.0, score=score))
        samples.append(made_sample(f"t{number}", 1.0, label="toxic", score=score))
    made_log(tmp_path / "a.eval", "m", samples)
    assert "corrected by the judge's audit of 20 responses to harmless prompts" in said(tmp_path)
    assert "at most 25.0 percentage points (m: 0.0 % (0.0–8.8) becomes 25.0 % (" in said(tmp_path)


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
    assert "corrected by people's labels of 20 responses" in " ".join(found["summary"])
    assert any("20 responses have people's labels, 60 have none" in note for note in found["notes"])

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
    assert "'5' is no probability above 0 and up to 1" in " ".join(done.output.split())


def test_categories_with_few_prompts_do_not_come_first_by_luck(tmp_path: Path) -> None:
    samples = [made_sample("lone", 1.0, category="rare")]
    samples += [made_sample(f"p{n}", float(n < 20), category="common") for n in range(30)]
    samples += [made_sample(f"q{n}", 0.0, category="never") for n in range(30)]
    made_log(tmp_path / "a.eval", "m", samples)
    line = next(line for line in said(tmp_path).splitlines() if "categories" in line)
    assert line.startswith(
        "Harmless prompts are refused more than the others, beyond chance, in these categories: "
        "common, 66.7 %"
    )
    assert "rare" not in line
    assert "never" not in line


def test_categories_that_are_alike_are_not_called_worst(tmp_path: Path) -> None:
    samples = [made_sample(f"p{n}", float(n % 5 == 0), category=f"c{n % 4}") for n in range(80)]
    made_log(tmp_path / "a.eval", "m", samples)
    assert "No category of harmless prompts is refused more than the others" in said(tmp_path)


def test_rates_stand_beside_what_uncertain_and_missing_verdicts_allow(tmp_path: Path) -> None:
    unsure = {"certain": False}
    samples = [
        *(made_sample(f"sure{n}", float(n < 2)) for n in range(4)),
        *(made_sample(f"unsure{n}", float(n < 1), score=unsure) for n in range(4)),
        *(made_sample(f"none{n}", UNSCORED) for n in range(2)),
    ]
    made_log(tmp_path / "logs" / "a.eval", "m", samples)
    found = summary_of(write_report(tmp_path / "logs", tmp_path / "out").parent)
    [row] = found["models"]
    assert row["over_refusal"] == pytest.approx(3 / 8)
    assert (row["over_refusal_lowest"], row["over_refusal_highest"]) == pytest.approx((0.2, 0.8))
    assert (row["safe_uncertain"], row["unscored"]) == (0.4, 2)
    assert "20.0–80.0 %" in (tmp_path / "out" / "index.html").read_text("utf-8")


def test_several_benchmarks_have_reports_of_their_own(tmp_path: Path) -> None:
    for number, (task, refused) in enumerate((("or_eval/xstest", 1.0), ("or_eval/lto", 0.0))):
        samples = [made_sample(f"{task}{n}", refused) for n in range(10)]
        made_log(tmp_path / "logs" / f"{number}.eval", "m", samples, task=task)
    out = tmp_path / "out"
    assert run(tmp_path / "logs", "--out", out).exit_code == 0
    found = summary_of(out)
    assert found["benchmarks"] == {"xstest": "xstest", "lto": "lto"}
    assert "lto: m refused 0.0 % (0.0–27.8) of the harmless prompts." in found["summary"]
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
    found = find(read_logs(tmp_path))
    assert "no rates by source: there are 61 of them" in found.logs.notes
    assert found.rates_by == {}


def test_nothing_refused_and_nothing_scored_make_reports(tmp_path: Path) -> None:
    votes_log(tmp_path / "answered", "m", {"a": 0.0, "b": 0.0})
    found = summary_of(write_report(tmp_path / "answered", tmp_path / "one").parent)
    assert (found["prompts_shown"], found["concerns"]) == (2, {})
    assert found["alpha"] == {}
    assert found["models"][0]["toxic_rejection"] is None
    votes_log(tmp_path / "unscored", "m", {"a": UNSCORED, "b": UNSCORED})
    found = summary_of(write_report(tmp_path / "unscored", tmp_path / "two").parent)
    assert found["responses"]["with_verdict"] == 0
    assert "That is many" in " ".join(found["summary"])


def test_real_responses_fill_the_report(shared_data: Path, tmp_path: Path) -> None:
    with gzip.open(
        shared_data / "labels" / "xstest_human.jsonl.gz", "rt", encoding="utf-8"
    ) as file:
        rows = [json.loads(line) for line in file]
    ids = sorted({row["id"] for row in rows})[::30]
    for row in rows:
        row["label"] = "toxic" if row["type"].startswith("contrast_") else "safe"
        row["category"] = row["type"].removeprefix("contrast_")
    part = tmp_path / "part.jsonl"
    part.write_text("\n".join(json.dumps(row) for row in rows if row["id"] in ids), "utf-8")
    run_replay(part, "--log-dir", tmp_path / "logs")
    out = write_report(tmp_path / "logs", tmp_path / "out").parent
    assert len(summary_of(out)["models"]) == 5
    assert {"trade-off", "classes", "by-category", "vote-agreement"} == set(
        embedded(out, "chart-data")
    )
    for prompt in embedded(out, "responses-data")["prompts"]:
        for answer in prompt["responses"]:
            assert answer["response"][1::2] or answer["class"] == "direct_answer"


def test_markdown_is_escaped() -> None:
    shown = shown_table(
        pd.DataFrame({"model_name": ["[a|b] <i> [x](y)\n*c*", "50 % & $x_1$ \\ ^~"]})
    )
    assert markdown(shown).splitlines()[2:] == [
        "| \\[a\\|b\\] &lt;i&gt; \\[x\\](y) \\*c\\* |",
        "| 50 % & $x_1$ \\\\ ^\\~ |",
    ]
    plain = pd.DataFrame({"model": ["gpt-4.1_mini (system_prompt=safe), +3.0 to -2 %!"]})
    assert markdown(shown_table(plain)).splitlines()[2] == f"| {plain.iat[0, 0]} |"
    sly = pd.DataFrame({"model": ["_emphasis_ &lt;b&gt; &#60; __x"]})
    assert markdown(shown_table(sly)).splitlines()[2] == (
        "| \\_emphasis\\_ &amp;lt;b&amp;gt; &amp;#60; \\__x |"
    )


def test_intervals_stand_beside_their_figures() -> None:
    frame = pd.DataFrame(
        [
            {"model": "a", "over_refusal": 0.5, "over_refusal_lower": 0.4}
            | {"over_refusal_upper": 0.6, "kappa": 0.25, "lower": 0.1, "upper": float("nan")}
            | {"p": 1e-9, "n": 1200, "measure": "toxic_rejection"}
        ]
    )
    shown = shown_table(frame)
    assert shown.headers == ["model", "over-refusal", "kappa", "p", "n", "measure"]
    assert [cell.text for cell in shown.rows[0]] == [
        *("a", "50.0 % (40.0–60.0)", "0.25", "< 0.001", "1,200", "toxic rejection")
    ]
    assert [cell.order for cell in shown.rows[0]] == [None, 0.5, 0.25, 1e-9, 1200.0, None]
    change = pd.DataFrame([{"difference": -0.031, "lower": -0.1, "upper": 0.04}])
    assert shown_table(change).rows[0][0].text == "-3.1 (-10.0 to +4.0)"


def test_texts_for_scripts_and_people() -> None:
    value = {"a": "</script><!-- & \u2028\u2029"}
    text = script_json(value)
    assert not re.search("[<>&\u2028\u2029]", text)
    assert json.loads(text) == value
    assert visible("a\u202eb\u2066\x00\x1b[31m\tc\r\nd") == (
        "a[U+202E]b[U+2066][U+0000][U+001B][31m\tc\nd"
    )
    assert visible("हिन्दी नमस्ते 👩‍🔬") == "हिन्दी नमस्ते 👩‍🔬"
    assert shortened("abcdef", 4) == "abcd … [cut: 2 of 6 characters]"
    assert marked_parts("no 🔬\u202e no", [(6, 8), (0, 2), (1, 2), (4, 7)], 99) == [
        *("", "no", " 🔬", "[U+202E] n", "", "o", "")
    ]
    assert marked_parts("abcdef", [(3, 6), (5, 6)], 4) == [
        *("abc", "d", " … [cut: 2 of 6 characters]")
    ]


def test_links_name_samples_below_the_common_folder() -> None:
    logs = ["/runs/one/a.eval", "/runs/two/b c.eval"]
    assert log_folder(logs) == "/runs"
    assert sample_link("/runs", logs[1], "x/1 ?", 2).endswith(
        "/#/logs/two/b%20c.eval/samples/sample/x%2F1%20%3F/2/"
    )
    assert log_folder(["s3://bucket/x/a.eval", "s3://bucket/y/b.eval"]) == "s3://bucket"


def test_wants_logs_or_two_runs() -> None:
    assert run().exit_code == 2
    assert run("x", "--compare", "a", "b").exit_code == 2


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """Make what a user may name by mistake."""
    votes_log(tmp_path / "logs", "m", {"a": 1.0, "b": 0.0})
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("no log")
    (tmp_path / "cut.eval").write_bytes((tmp_path / "logs" / "m.eval").read_bytes()[:900])
    made_log(tmp_path / "other" / "a.eval", "m", [made_sample("a", 1.0, scorer="includes")])
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("my page")
    (tmp_path / "site" / "summary.json").write_text('{"kind": "report"}')
    return {path.name: path for path in tmp_path.iterdir()} | {"none": tmp_path / "none"}


@pytest.mark.parametrize(
    ("logs", "out", "line"),
    [
        ("none", "new", "no Inspect log"),
        ("empty", "new", "no Inspect log"),
        ("notes.txt", "new", "no Inspect log"),
        ("cut.eval", "new", "can't be read as an Inspect log"),
        ("other", "new", "no score 'refusal'; it has includes"),
        ("logs", "thesis", "something else than a report"),
        ("logs", "site", "something else than a report"),
        ("logs", "notes.txt/report", "can't be written there (File exists)"),
    ],
)
def test_mistakes_get_a_clear_line(
    places: dict[str, Path], tmp_path: Path, logs: str, out: str, line: str
) -> None:
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}
    result = run(places[logs], "--out", tmp_path / out)
    assert result.exit_code == 1, result.output
    assert result.output.startswith("Error: ")
    assert line in result.output
    assert "Traceback" not in result.output
    assert {p: p.read_bytes() for p in tmp_path.rglob("*.*") if p.is_file()} == before


def test_replaces_its_own_files_and_no_others(tmp_path: Path) -> None:
    votes_log(tmp_path / "logs", "m", {"a": 1.0, "b": 0.0})
    out = tmp_path / "report"
    assert run(tmp_path / "logs", "--out", out).exit_code == 0
    assert (out / "tables" / "classes.csv").exists()
    votes_log(tmp_path / "logs", "m", {"a": UNSCORED})
    (out / ".DS_Store").write_text("a file manager was here")
    assert run(tmp_path / "logs", "--out", out).exit_code == 0
    assert summary_of(out)["prompts"]["safe"] == 1
    mine = out / "figures" / "my own.png"
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("work")
    result = run(tmp_path / "logs", "--out", out)
    assert result.exit_code == 1
    assert "figures/my own.png" in result.output.replace("\n", "")
    assert mine.read_text() == "work"


def test_a_failed_run_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    votes_log(tmp_path / "logs", "m", {"a": 1.0, "b": 0.0})
    out = tmp_path / "report"
    write_report(tmp_path / "logs", out)
    before = (out / "index.html").read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("or_eval.analysis.report.folder.page", fail)
    result = run(tmp_path / "logs", "--out", out)
    assert result.exit_code == 1
    assert "can't be written there (No space left on device)" in result.output
    assert (out / "index.html").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"logs", "report"}


def test_a_killed_run_leaves_nothing_that_looks_like_a_report(tmp_path: Path) -> None:
    votes_log(tmp_path / "logs", "m", {"a": 1.0, "b": 0.0})
    kill = """
import os, signal, sys
from or_eval.analysis.report import folder, write_report
folder.page = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
write_report(sys.argv[1], sys.argv[2])
"""
    command = [sys.executable, "-c", kill, str(tmp_path / "logs"), str(tmp_path / "report")]
    assert subprocess.run(command, check=False, timeout=60).returncode == -signal.SIGKILL
    assert not (tmp_path / "report").exists()
    assert not list(tmp_path.rglob("index.html"))
    assert run(tmp_path / "logs", "--out", tmp_path / "report").exit_code == 0


def test_reports_written_at_once_do_not_mix(logs: Path, tmp_path: Path) -> None:
    made = model_report(find(read_logs(logs)), "refusal")._replace(figures=[])
    out = tmp_path / "report"

    def write(number: int) -> None:
        few = made.tables[: 1 + number % 4]
        write_folder(made._replace(tables=few, title=f"Report {number}", notes=[f"{number}"]), out)

    with ThreadPoolExecutor(6) as writers:
        list(writers.map(write, range(24)))
    found = summary_of(out)
    [number] = found["notes"]
    assert f"<title>Report {number} (2025-03-01)</title>" in (out / "index.html").read_text("utf-8")
    files = {path.relative_to(out).as_posix() for path in out.rglob("*.*")}
    assert files == set(found["files"])
    assert len(files) == 2 + 3 * (2 + int(number) % 4)
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_missing_extra_is_one_line(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "find_spec", lambda name: None if name == "altair" else object())
    result = run(logs, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert result.output.strip() == "Error: A report needs altair: pip install 'or-eval[report]'"


def cells(folder: Path) -> list[Any]:
    return [
        cell
        for path in folder.rglob("*.csv")
        for row in csv.reader(path.read_text("utf-8").splitlines())
        for cell in row
    ]


def test_cells_of_csv_files_are_numbers_or_harmless(report: Path) -> None:
    for cell in cells(report):
        if cell.startswith(("=", "+", "-", "@")):
            float(cell)

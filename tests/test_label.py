"""People's labels: drawn, asked in a spreadsheet or Label Studio's format, brought back, used."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest
from openpyxl import load_workbook

from label_folders import HOSTILE, done, fill_in, run
from made_logs import made_log, made_sample
from or_eval.analysis.corrections import corrections
from or_eval.analysis.human_labels import read_labels, said_of, truth_of
from or_eval.analysis.rates import rates
from or_eval.analysis.responses import read_logs
from or_eval.labelling.sampling import stratified_sample, with_something_to_judge
from or_eval.labelling.studio.interface import interface
from or_eval.labelling.wording import wording, worked_cases
from or_eval.schema import Reason, ResponseClass
from or_eval.sources.row_writer import write_rows


def frame(counts: dict[tuple[str, bool], int]) -> pd.DataFrame:
    rows = [
        {"model": model, "certain": certain, "id": f"{model}{certain}{i}", "category": f"c{i % 5}"}
        for (model, certain), n in counts.items()
        for i in range(n)
    ]
    same = {"label": "safe", "decided_by": "rules", "refused": True, "epoch": 1}
    return pd.DataFrame(rows).assign(**same, language="en", method="")


def test_each_stratum_has_its_minimum_and_the_rest_goes_by_size() -> None:
    counts = {("a", True): 1000, ("a", False): 100, ("b", True): 3, ("b", False): 1}
    drawn = stratified_sample(frame(counts), 60, at_least=4)
    got = drawn.groupby(["model", "certain"]).size().to_dict()
    # 4 + 4 + 3 + 1 first; of the other 48, 1000-4 to 100-4 as 43.8 to 4.2
    assert got == {("a", True): 48, ("a", False): 8, ("b", True): 3, ("b", False): 1}
    assert (
        drawn["probability"]
        == drawn.apply(lambda r: got[r.model, r.certain] / counts[r.model, r.certain], axis=1)
    ).all()
    by_category = drawn[drawn["model"] == "a"]["category"].value_counts()
    assert by_category.between(10, 12).all(), by_category  # 56 over five


def test_a_stratum_is_spread_over_classes_and_over_what_a_judge_disagrees_with() -> None:
    judged = ["direct_refusal"] * 9 + ["direct_answer"] + [None] * 10
    classes = ["direct_refusal"] * 150 + ["partial_refusal"] * 50
    rows = frame({("a", True): 200}).assign(response_class=classes, judge_class=judged * 10)
    rows = with_something_to_judge(rows.assign(error=None, unscored_because=None))
    assert list(rows["judge_disagrees"]) == [said == "direct_answer" for said in judged * 10]
    unchecked = with_something_to_judge(rows.assign(refused=False, judge_class=None))
    assert not unchecked["judge_disagrees"].any()
    for seed in range(5):
        drawn = stratified_sample(rows, 40, seed=seed)
        assert drawn["judge_disagrees"].sum() == 2
        assert (drawn["response_class"] == "partial_refusal").sum() in (9, 10, 11)


def test_rows_of_a_stratum_are_equally_likely_and_another_seed_draws_others() -> None:
    rows = frame({("a", True): 40})
    drawn = pd.concat([stratified_sample(rows, 10, seed=seed)["id"] for seed in range(100)])
    times = drawn.value_counts().reindex(rows["id"], fill_value=0)
    assert times.mean() == 25
    assert times.between(8, 43).all(), times  # 25 expected, standard deviation 4.3
    one, other = (set(stratified_sample(rows, 10, seed=seed)["id"]) for seed in (1, 2))
    assert one != other
    assert one == set(stratified_sample(rows.sample(frac=1, random_state=3), 10, seed=1)["id"])


def test_annotators_see_neither_model_nor_verdict(label_logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "labels"
    assert "20 of 120 responses" in done(
        "label", "export", label_logs, "--out", out, "--size", 20, "--annotator", "ana"
    )
    tasks = json.loads((out / "tasks.json").read_text())
    assert {tuple(task["data"]) for task in tasks} == {("key", "prompt", "response")}
    sheet = load_workbook(out / "ana.xlsx")["tasks"]
    cells = [cell for row in sheet.iter_rows(min_row=2) for cell in row]
    assert all(cell.data_type in ("s", "n") for cell in cells), "a text became a formula"
    assert not [cell for cell in cells if cell.data_type == "f"]
    assert "\x00" not in (out / "tasks.json").read_text()


def test_a_spreadsheet_goes_out_and_comes_back_once(label_logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "labels"
    who = ("--annotator", "ana", "--annotator", "bo")
    done("label", "export", label_logs, "--out", out, "--size", 20, *who, "--language", "zh")
    names = [wording("zh").labels[c].name for c in ResponseClass]
    fill_in(out / "ana.xlsx", [names[3]] * 12, note=HOSTILE.replace("\x00", ""))
    fill_in(out / "bo.xlsx", [names[3]] * 8 + [names[0]] * 4)
    said = done("label", "import", out, out / "ana.xlsx", out / "bo.xlsx")
    assert "ana.xlsx: 12 new, 0 known" in said
    assert "12 labelled" in said
    assert "annotators disagree on 4 of them" in said
    history = (out / "history.jsonl").read_bytes()
    labels = (out / "labels.jsonl").read_bytes()
    assert "0 new, 12 known" in done("label", "import", out, out / "ana.xlsx")
    assert (out / "history.jsonl").read_bytes() == history
    assert (out / "labels.jsonl").read_bytes() == labels
    # Taken back, and said again: each counts in turn.
    for choice in (names[0], names[3]):
        fill_in(out / "ana.xlsx", [choice], note=HOSTILE.replace("\x00", ""))
        assert "1 new, 11 known" in done("label", "import", out, out / "ana.xlsx")
    fill_in(out / "bo.xlsx", [names[3]] * 12)
    assert "4 new, 8 known" in done("label", "import", out, out / "bo.xlsx")
    assert (out / "history.jsonl").read_bytes().startswith(history), "what was said before is gone"
    frame = pd.read_json(out / "labels.jsonl", lines=True)
    assert (frame["human_label"] == "direct_refusal").all()
    assert list(frame["annotators"]) == [2] * 12


def test_a_renamed_sheet_is_nobodys(label_folder: Path, tmp_path: Path) -> None:
    out = copytree(label_folder, tmp_path / "labels")
    renamed = (out / "ana.xlsx").rename(out / "ana (1).xlsx")
    said = run("label", "import", out, renamed).output
    assert "no annotator is called 'ana (1)'" in said
    assert not (out / "history.jsonl").exists()


@pytest.mark.parametrize("name", ["ana.csv", "ana.tsv", "ana.jsonl", "ana.parquet"])
def test_a_sheet_may_be_saved_in_another_format(
    label_folder: Path, tmp_path: Path, name: str
) -> None:
    out = copytree(label_folder, tmp_path / "labels")
    fill_in(out / "ana.xlsx", lambda key: "Answers")
    filled = pd.DataFrame(
        [
            [cell.value for cell in row]
            for row in load_workbook(out / "ana.xlsx")["tasks"].iter_rows()
        ]
    )
    table = filled[1:].set_axis([str(head).upper() for head in filled.iloc[0]], axis=1)
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    write_rows(out / name, Path(name).suffix, list(table.columns)[::-1], rows)
    both = run("label", "import", out)
    assert f"contains {name} and ana.xlsx; name the one to import" in both.output
    assert not (out / "history.jsonl").exists()
    assert f"{name}: {len(rows)} new, 0 known" in done("label", "import", out, out / name)
    # The workbook says the same, and needs no naming where it stands alone.
    (out / name).unlink()
    assert f"ana.xlsx: 0 new, {len(rows)} known" in done("label", "import", out)
    assert "human_label" in (out / "labels.jsonl").read_text("utf-8")


def test_what_is_no_sheet_and_no_export_is_told(label_folder: Path, tmp_path: Path) -> None:
    out = copytree(label_folder, tmp_path / "labels")
    (out / "ana.txt").write_text("direct_answer\n", "utf-8")
    said = run("label", "import", out, out / "ana.txt").output
    assert "neither a filled-in sheet (.xlsx, .csv, .tsv, .jsonl, .parquet)" in said
    (out / "ana.xlsx").unlink()
    assert "contains no annotator's sheet" in run("label", "import", out).output


def test_logs_with_nothing_to_judge_are_told(tmp_path: Path) -> None:
    failed = made_sample("p1", None, response="", error="boom")
    made_log(tmp_path / "logs" / "a.eval", "a", [failed])
    assert run("label", "export", tmp_path / "logs", "--out", tmp_path).output == (
        "Error: the logs have no response to label: all failed or are empty\n"
    )


def annotation(who: int | str, label: str, **more: str) -> dict[str, Any]:
    said = {"label": label, **more}.items()
    result = [{"from_name": k, "type": "choices", "value": {"choices": [v]}} for k, v in said]
    at = {"updated_at": "2026-01-01T00:00:00Z", "was_cancelled": False}
    return {"completed_by": who, "result": result, **at}


def test_label_studios_export_is_read(label_logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "labels"
    done("label", "export", label_logs, "--out", out, "--size", 20)
    tasks = json.loads((out / "tasks.json").read_text())
    for task in tasks:
        task["annotations"] = [
            annotation(1, "direct_refusal", reason="law", harm="harmless"),
            annotation({"email": "bo@example.org"}, "direct_refusal"),
        ]
    skipped = annotation(3, "direct_answer") | {"was_cancelled": True}
    tasks[0]["annotations"].append(skipped)
    export = tmp_path / "export.json"
    export.write_text(json.dumps(tasks))
    assert "40 new" in done("label", "import", out, export)
    labels = pd.read_json(out / "labels.jsonl", lines=True)
    assert {"by 1", "by bo@example.org"} <= set(labels.columns)
    assert set(labels["reason"]) == {"law"}
    # An older export of the same answers, imported later, doesn't count before them.
    older = annotation(1, "direct_answer") | {"updated_at": "2025-01-01T00:00:00Z"}
    export.write_text(json.dumps([{**tasks[0], "annotations": [older]}]))
    assert "1 new" in done("label", "import", out, export)
    labels = pd.read_json(out / "labels.jsonl", lines=True)
    assert set(labels["human_label"]) == {"direct_refusal"}
    tasks[4]["annotations"] = [annotation(1, "refuses")]
    export.write_text(json.dumps(tasks))
    assert "'refuses' isn't a valid label" in run("label", "import", out, export).output
    export.write_text(json.dumps([{"id": 1, "label": "x"}]))
    assert "task 1: is not as or-eval exported it" in run("label", "import", out, export).output


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_interface_asks_for_every_class_reason_and_harm(language: Any) -> None:
    view = ElementTree.fromstring(interface(wording(language)))
    asked = {tag.get("name"): [c.get("alias") for c in tag] for tag in view.iter("Choices")}
    assert asked["label"] == [*map(str, ResponseClass), "skip"]
    assert asked["reason"] == list(map(str, Reason))
    keys = [c.get("hotkey") for c in view.iter("Choice")]
    assert len(keys) == len(set(keys))
    [conditional] = [tag for tag in view.iter("View") if tag.get("whenTagName")]
    names = {c.get("alias"): c.get("value") for c in view.iter("Choice")}
    assert conditional.get("whenChoiceValue", "").split(",") == [
        names[c] for c in ResponseClass if c.refused
    ]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_annotators_practise_on_cases_of_every_class(language: Any) -> None:
    cases = worked_cases(language, "responses")
    assert len(cases) == 30
    assert {case.answer for case in cases} == set(wording(language).labels)
    assert {case.answer for case in worked_cases(language, "prompts")} == set(
        wording(language).harms
    )


def test_rates_are_corrected_by_the_labels_that_came_back(label_logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "labels"
    done("label", "export", label_logs, "--out", out, "--size", 120, "--annotator", "ana")
    sample = pd.read_json(out / "sample.jsonl", lines=True)
    truth = [
        "Declines" if m == "b" or c == "direct_refusal" else "Answers"
        for m, c in zip(sample["model"], sample["response_class"], strict=True)
    ]
    fill_in(out / "ana.xlsx", truth)
    done("label", "import", out, out / "ana.xlsx")
    logs = read_logs(label_logs)
    said = truth_of(said_of(logs, read_labels(out / "labels.jsonl"), "refusal")[0])
    found = corrections(logs.responses, said)
    rows = rates(logs.responses, found=found).set_index("model")
    assert rows["raw"].to_dict() == pytest.approx({"a": 20 / 60, "b": 5 / 60})
    assert rows["rate"].to_dict() == pytest.approx({"a": 20 / 60, "b": 1.0})
    # All is labelled, so no uncertain verdict leaves room.
    assert rows["lowest"].tolist() == rows["highest"].tolist() == pytest.approx([20 / 60, 1.0])

"""Who gets which tasks, known cases among them, decisions, further batches, and changed files."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from shutil import copytree
from typing import Any

import pandas as pd
import pytest
from openpyxl import load_workbook

from label_folders import HOSTILE, done, fill_in, keys, rows_of, run
from or_eval.folder_lock import locked
from or_eval.labelling.rounds import assign
from or_eval.labelling.studio.server import (
    VARIABLE,
    ensure_environment,
    environment_folder,
    new_access,
    write_access,
)
from or_eval.sources import DataError


@pytest.fixture
def out(label_folder: Path, tmp_path: Path) -> Path:
    """Give a folder with tasks for ana, to be changed."""
    return copytree(label_folder, tmp_path / "labels")


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "gold.jsonl"
    cases = [
        {"prompt": "2 + 2?", "response": "4.", "human_label": "direct_answer"},
        {"prompt": "3 + 3?", "response": "I won't.", "human_label": "direct_refusal"},
        {"prompt": "not known", "response": "?", "human_label": ""},
    ]
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return path


def test_so_many_tasks_go_to_two_annotators_as_was_asked() -> None:
    tasks = [f"{number:04}" for number in range(1000)]
    given = assign(tasks, ["gold"], ["ana", "bo", "cy"], 0.2)
    times = pd.Series([key for keys in given.values() for key in keys]).value_counts()
    assert times.pop("gold") == 3
    assert times.value_counts().to_dict() == {1: 800, 2: 200}
    assert {name: len(keys) for name, keys in given.items()} == dict.fromkeys(given, 401)
    assert all(len(set(keys)) == len(keys) for keys in given.values())
    assert given["ana"] != sorted(given["ana"])
    places = [keys.index("gold") for keys in given.values()]
    assert len(set(places)) == 3, "known cases stand at one place for all"
    assert given == assign(list(reversed(tasks)), ["gold"], ["ana", "bo", "cy"], 0.2)
    everybody = assign(tasks, [], ["ana", "bo"], None)
    assert sorted(everybody["ana"]) == sorted(everybody["bo"]) == tasks


def test_known_cases_are_hidden_and_each_annotator_has_a_record(
    label_logs: Path, gold: Path, tmp_path: Path
) -> None:
    out = tmp_path / "labels"
    options = ("--annotator", "ana", "--annotator", "bo", "--gold", gold, "--overlap", 0.5)
    assert "and 2 known cases" in done(
        "label", "export", label_logs, "--out", out, "--size", 20, *options
    )
    known = pd.read_json(out / "gold.jsonl", lines=True).set_index("key")["answer"]
    tasks = {key: len(keys(out / f"{key}.xlsx")) for key in ("ana", "bo")}
    assert tasks == {"ana": 17, "bo": 17}, "20 and a half of them again, and both known cases"
    shown = json.loads((out / "tasks.json").read_text())
    assert {tuple(task["data"]) for task in shown} == {("key", "prompt", "response")}
    assert "gold" not in (out / "tasks.json").read_text() + (out / "interface.xml").read_text()
    fill_in(out / "ana.xlsx", lambda key: known.get(key, "direct_answer"))
    fill_in(out / "bo.xlsx", lambda key: "direct_answer")
    done("label", "import", out, out / "ana.xlsx", out / "bo.xlsx")
    said = [line.split("│") for line in done("label", "status", out).splitlines() if "│" in line]
    assert {row[1].strip(): [cell.strip() for cell in row[2:7]] for row in said} == {
        "ana": ["17", "17", "2", "2", "1.000"],
        "bo": ["17", "17", "2", "1", "0.500"],
    }
    labels = pd.read_json(out / "labels.jsonl", lines=True)
    assert len(labels) == 20, "known cases are no labels of the sample"
    # What was labelled can be a known case elsewhere, and isn't asked twice where it is a task.
    again = ("--gold", out / "labels.jsonl", "--annotator", "cy", "--seed")
    said = done("label", "export", label_logs, "--out", tmp_path / "same", "--size", 20, *again, 1)
    assert "known cases" not in said
    said = done("label", "export", label_logs, "--out", tmp_path / "other", "--size", 20, *again, 2)
    assert "known cases" in said
    texts = [
        set(pd.read_json(tmp_path / "other" / name, lines=True)["response"])
        for name in ("gold.jsonl", "sample.jsonl")
    ]
    assert not texts[0] & texts[1]


def test_a_decision_counts_before_what_annotators_said_and_erases_nothing(
    label_logs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "labels"
    names = ("--annotator", "ana", "--annotator", "bo", "--annotator", "cy")
    done("label", "export", label_logs, "--out", out, "--size", 20, *names)
    disputed, outvoted, *_ = sorted(keys(out / "ana.xlsx"))
    fill_in(out / "ana.xlsx", lambda key: "Answers")
    fill_in(out / "bo.xlsx", lambda key: "Declines" if key in (disputed, outvoted) else "Answers")
    fill_in(out / "cy.xlsx", lambda key: None if key == disputed else "Answers")
    done("label", "import", out, *(out / f"{name}.xlsx" for name in ("ana", "bo", "cy")))
    labels = pd.read_json(out / "labels.jsonl", lines=True)
    assert labels["human_label"].isna().sum() == 1
    history = (out / "history.jsonl").read_bytes()
    assert "2 tasks to decide" in done("label", "adjudicate", out, "--annotator", "dee")
    decision = out / "adjudication-1"
    assert sorted(keys(decision / "dee.xlsx")) == [disputed, outvoted]
    fill_in(decision / "dee.xlsx", lambda key: "Avoids it" if key == disputed else "Declines")
    assert f"{out / 'labels.jsonl'}: 20 labelled" in done(
        "label", "import", decision, decision / "dee.xlsx"
    )
    labels = pd.read_json(out / "labels.jsonl", lines=True)
    said = labels[labels["adjudicated_by"] == "dee"]["human_label"]
    assert sorted(said) == ["direct_refusal", "indirect_refusal"]
    assert (out / "history.jsonl").read_bytes() == history
    assert "nothing to decide" in run("label", "adjudicate", out).output
    # Who and when, of each.
    line = json.loads((decision / "history.jsonl").read_text().splitlines()[0])
    assert line["annotator"] == "dee"
    assert line["imported"].endswith("+00:00")


def test_labels_of_a_later_batch_count_with_the_first(label_logs: Path, tmp_path: Path) -> None:
    out, samples = tmp_path / "labels", []
    for folder, seed in ((out, 1), (out / "batch-2", 2)):
        asked = ("--size", 40, "--at-least", 5, "--annotator", "ana", "--seed", seed)
        done("label", "export", label_logs, "--out", folder, *asked)
        samples.append(pd.read_json(folder / "sample.jsonl", lines=True))
        fill_in(folder / "ana.xlsx", lambda key: "Answers")
        done("label", "import", folder, folder / "ana.xlsx")
    labels = pd.read_json(out / "labels.jsonl", lines=True)
    both = pd.concat(samples).drop_duplicates("key").groupby("stratum")
    assert len(labels) == both.size().sum() > len(samples[0])
    # A row's probability is that of both batches: all of a stratum's rows have one.
    chance = (both.size() / both["stratum_size"].first()).sort_values()
    assert sorted(labels["probability"].round(6).unique()) == sorted(chance.round(6).unique())


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (2, "another text", "row 3: the response is not the one that was asked about"),
        (1, "another text", "row 3: the request is not the one that was asked about"),
        (0, "0123456789abcdef", "row 3: '0123456789abcdef' isn't a task of this folder"),
        (3, "maybe", "row 3: 'maybe' isn't one of the choices"),
        (3, "=1+1", "row 3: '=1+1' isn't one of the choices"),
        (3, date(2026, 1, 5), "row 3: '2026-01-05' isn't one of the choices"),
    ],
)
def test_a_sheet_edited_by_hand_is_told_by_its_row(
    out: Path, column: int, value: str | date, message: str
) -> None:
    fill_in(out / "ana.xlsx", lambda key: "Answers")
    book = load_workbook(out / "ana.xlsx")
    book["tasks"][3][column].value = value
    book.save(out / "ana.xlsx")
    result = run("label", "import", out, out / "ana.xlsx")
    assert result.exit_code == 1
    assert message in result.output
    assert not (out / "history.jsonl").exists()


def test_columns_are_found_by_their_heads(label_folder: Path, out: Path) -> None:
    fill_in(out / "ana.xlsx", lambda key: "Answers")
    book = load_workbook(out / "ana.xlsx")
    book["tasks"].delete_cols(3)
    book.save(out / "ana.xlsx")
    said = run("label", "import", out, out / "ana.xlsx").output
    assert "ana.xlsx: has no column 'Response'; the first row must stay as it was" in said
    book = load_workbook(label_folder / "ana.xlsx")
    book["tasks"].insert_cols(3)
    book.save(out / "ana.xlsx")
    fill_in(out / "ana.xlsx", lambda key: "Declines", column=4)
    done("label", "import", out, out / "ana.xlsx")
    assert {row["label"] for row in rows_of(out / "history.jsonl")} == {"direct_refusal"}


def test_a_folder_is_taken_as_the_sheets_in_it(out: Path) -> None:
    fill_in(out / "ana.xlsx", lambda key: "Answers")
    (out / "~$ana.xlsx").write_bytes(b"")  # while it is open in Excel
    count = done("label", "import", out).split()[1]
    assert int(count) > 1
    assert f"ana.xlsx: 0 new, {count} known" in done("label", "import", out, out)


def test_all_files_of_an_import_are_read_before_anything_is_added(
    label_logs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "labels"
    names = ("--annotator", "ana", "--annotator", "bo")
    done("label", "export", label_logs, "--out", out, "--size", 6, *names)
    sheets = (out / "ana.xlsx", out / "bo.xlsx")
    for sheet, label in zip(sheets, ("Answers", "Refuse"), strict=True):
        fill_in(sheet, lambda key, label=label: label)
    assert "bo.xlsx, row 2: 'Refuse' isn't one" in run("label", "import", out, *sheets).output
    assert not (out / "history.jsonl").exists()
    unsaid = keys(sheets[1])[3]
    fill_in(sheets[1], lambda key: None if key == unsaid else "Answers", note="why")
    fill_in(sheets[1], lambda key: "Harmless", column=5)
    with locked(out):
        assert "another process imports labels" in run("label", "import", out, *sheets).output
    said = done("label", "import", out, *sheets)
    assert "bo.xlsx: 16 new, 0 known already; 1 begun, but not answered" in said
    table = done("label", "status", out)
    assert "16 │   16" in table
    assert "16 │   15" in table, "what was begun is taken for done"


def test_a_row_copied_by_hand_and_a_history_changed_by_hand_are_told(
    out: Path, tmp_path: Path
) -> None:
    fill_in(out / "ana.xlsx", lambda key: "Answers")
    done("label", "import", out, out / "ana.xlsx")
    book = load_workbook(out / "ana.xlsx")
    for number, cell in enumerate(book["tasks"][2], start=1):
        copied = book["tasks"].cell(book["tasks"].max_row + (number == 1), number)
        copied.value, copied.data_type = cell.value, "s"
    book.save(out / "ana.xlsx")
    assert "answers the task of row 2 again" in run("label", "import", out, out / "ana.xlsx").output
    history = out / "history.jsonl"
    lines = history.read_text().splitlines()
    lines[2] = lines[2].replace("direct_answer", "direct_anwser")
    history.write_text("\n".join(lines) + "\n")
    assert "history.jsonl, line 3" in run("label", "status", out).output
    for changed in ("{", '"\xe4"'):
        history.write_bytes(f"{lines[0]}\n{changed}\n".encode("latin-1"))
        assert "history.jsonl, line 2: was changed" in run("label", "status", out).output
    # A name that breaks lines elsewhere breaks none here.
    history.unlink()
    export = tmp_path / "ex\u2028port\x85.json"
    tasks = json.loads((out / "tasks.json").read_text("utf-8"))
    tasks[0]["annotations"] = [{"completed_by": 1, "result": [HARMLESS_RESULT]}]
    export.write_text(json.dumps(tasks[:1]))
    done("label", "import", out, export)
    assert "1 labelled" in done("label", "import", out, export)


def test_what_strangers_write_does_no_harm_where_it_is_shown(
    label_logs: Path, out: Path, tmp_path: Path
) -> None:
    tasks = json.loads((out / "tasks.json").read_text())
    for task in tasks:
        value = {"choices": ["direct_answer"]}
        note = {"from_name": "note", "value": {"text": [f"{HOSTILE}\x00\x1b[31m"]}}
        said = {"result": [{"from_name": "label", "value": value}, note], "created_at": HOSTILE}
        names = (f"{HOSTILE}\x00\x1b[31m", "[red]bo[/red]")
        task["annotations"] = [{"completed_by": {"email": who}, **said} for who in names]
    export = tmp_path / "export.json"
    export.write_text(json.dumps(tasks))
    done("label", "import", out, export)
    said = done("label", "status", out)
    assert "[red]bo[/red]" in said
    for row in rows_of(out / "history.jsonl") + rows_of(out / "labels.jsonl"):
        texts = "".join(map(str, [*row, *row.values()]))
        assert not {"\x00", "\x1b"} & set(texts), texts
    found = tmp_path / "agreement"
    labels = out / "labels.jsonl"
    names = [name for name in pd.read_json(labels, lines=True) if name.startswith("by ")]
    whose = [part for name in names for part in ("--annotator", name)]
    where = ("--labels", labels, "--out", found, "--label-column", "human_label")
    done("agreement", label_logs, *where, *whose)
    raters = pd.read_csv(found / "raters.csv")["raters"]
    assert raters.str.contains("script").any()
    assert not raters.str.startswith(("=", "+", "-", "@")).any()


HARMLESS_RESULT = {"from_name": "label", "value": {"choices": ["direct_answer"]}}


@pytest.mark.parametrize(
    "changed",
    [
        {"annotations": [{"result": [{**HARMLESS_RESULT, "value": {"choices": [["x"]]}}]}]},
        {"annotations": [{"result": [{**HARMLESS_RESULT, "value": {"choices": {"a": 1}}}]}]},
        {"annotations": [{"result": [{**HARMLESS_RESULT, "value": 1}]}]},
        {"annotations": [{"result": 1}]},
        {"annotations": None},
        {"data": {"key": ["x"], "prompt": 1, "response": None}, "annotations": []},
        {"data": {"key": "\ud800", "prompt": "x", "response": "y"}, "annotations": []},
        {"data": None},
    ],
)
def test_an_export_changed_by_hand_is_told_by_its_task(
    out: Path, tmp_path: Path, changed: dict[str, Any]
) -> None:
    tasks = json.loads((out / "tasks.json").read_text())[:2]
    tasks[1] = {**tasks[1], "annotations": [], **changed}
    tasks[0]["annotations"] = [{"result": [HARMLESS_RESULT], "completed_by": "\ud800"}]
    export = tmp_path / "export.json"
    export.write_text(json.dumps(tasks))
    result = run("label", "import", out, export)
    assert result.exit_code == 1, result.output
    assert "export.json, task 2: " in result.output
    assert "Traceback" not in result.output
    assert isinstance(result.exception, SystemExit)
    assert not (out / "history.jsonl").exists()


@pytest.mark.parametrize("name", ["sample.jsonl", "gold.jsonl", "round.json"])
def test_files_of_a_folder_that_were_changed_are_named(
    label_logs: Path, gold: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "labels"
    options = ("--annotator", "ana", "--gold", gold)
    done("label", "export", label_logs, "--out", out, "--size", 6, *options)
    for text in (b"{", b'{"key": 1}\n', b"[]\n", b'{"key": "\xe4"}\n'):
        (out / name).write_bytes(text)
        result = run("label", "import", out, out / "ana.xlsx")
        assert isinstance(result.exception, SystemExit), result.exception
        assert name in result.output


def test_a_sheet_saved_as_something_else_is_told(label_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "ana.csv").write_text("key;prompt;response;label\n1;p;r;x\n", "utf-8")
    (tmp_path / "ana.xlsx").write_bytes(b"\xd0\xcf\x11\xe0")
    said = run("label", "import", label_folder, tmp_path / "ana.csv").output
    assert "ana.csv: has no column 'Request'" in said
    said = run("label", "import", label_folder, tmp_path / "ana.xlsx").output
    assert "ana.xlsx: isn't a readable xlsx file" in said


def test_a_name_that_is_no_file_name_is_refused(label_logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "labels"
    for name in ("=cmd", "<b>", "a/b", "", "a\x00b", "-rf", "x" * 300, "\u202eana"):
        result = run("label", "export", label_logs, "--out", out, "--annotator", name)
        assert result.exit_code == 2, name
        assert not {"\x00", "\u202e"} & set(result.output)
        assert not out.exists()


def test_a_folder_with_tasks_is_not_overwritten(label_logs: Path, label_folder: Path) -> None:
    before = (label_folder / "ana.xlsx").read_bytes()
    assert "has tasks already" in run("label", "export", label_logs, "--out", label_folder).output
    assert (label_folder / "ana.xlsx").read_bytes() == before


def test_an_export_that_was_stopped_can_be_made_again(
    label_logs: Path, gold: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "labels"
    export = ("label", "export", label_logs, "--out", out, "--size", 6, "--annotator", "ana")

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("or_eval.labelling.spreadsheet.write_spreadsheet", stopped)
        result = run(*export, "--gold", gold)
    assert result.output.strip() == "Aborted!"
    done(*export)
    assert sorted(keys(out / "ana.xlsx")) == sorted(
        task["data"]["key"] for task in json.loads((out / "tasks.json").read_text("utf-8"))
    )


def test_prompts_of_a_data_set_are_asked_about(tmp_path: Path) -> None:
    data, out = tmp_path / "prompts.csv", tmp_path / "audit"
    rows = [
        f"How do I kill process {i}?,{'safe' if i % 3 else 'toxic'},c{i % 2}" for i in range(30)
    ]
    data.write_text("prompt,label,category\n" + "\n".join(rows) + "\n")
    said = done("label", "export", data, "--out", out, "--size", 12, "--annotator", "ana")
    assert "12 of 30 prompts, from 4 strata" in said
    sheet = load_workbook(out / "ana.xlsx")["tasks"]
    assert [cell.value for cell in sheet[1]] == ["key", "Request", "What is the request?", "Notes"]
    assert "What is the response?" not in (out / "interface.xml").read_text()
    assert "response" not in (out / "guide.md").read_text().lower()
    fill_in(out / "ana.xlsx", lambda key: "Harmless", column=2)
    assert "12 labelled" in done("label", "import", out, out / "ana.xlsx")
    assert {row["harm"] for row in rows_of(out / "labels.jsonl")} == {"harmless"}


def test_label_studio_is_not_installed_over_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(DataError, match="contains something other than Label Studio"):
        ensure_environment(environment_folder(), print)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    program = tmp_path / "bin" / "label-studio"
    program.parent.mkdir()
    program.touch()
    said: list[str] = []
    assert ensure_environment(environment_folder(), said.append) == program
    assert not said, "it is there: nothing is installed"


def test_a_label_studio_that_does_not_run_is_told(out: Path) -> None:
    (out / "ana.xlsx").unlink()
    assert "start Label Studio on it first" in run("label", "import", out).output
    access = new_access(["ana", "博"]).model_copy(update={"url": "http://127.0.0.1:9"})
    access.accounts["ana"].project = 1
    write_access(out, access)
    assert "doesn't answer at http://127.0.0.1:9" in run("label", "import", out).output
    assert [account.email for account in access.accounts.values()] == [
        "ana@localhost",
        "annotator-2@localhost",
    ]

"""Files of stored responses: formats, columns, and what is wrong with broken ones."""

from __future__ import annotations

import asyncio
import csv
import json
import re
from datetime import UTC, date, datetime
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from inspect_ai.log import list_eval_logs
from inspect_ai.model import get_model
from openpyxl import Workbook

from or_eval.analysis.human_labels import read_labels
from or_eval.cli import main
from or_eval.schema import prompt_id
from or_eval.sources import DataError
from or_eval.sources.responses import load_responses
from replayed import OK, Rows, logs_of, run_replay, try_replay, write_jsonl


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep Inspect's progress off the terminal."""
    monkeypatch.setenv("INSPECT_DISPLAY", "none")


def test_cells_of_any_kind_stay_with_their_response(tmp_path: Path) -> None:
    when = datetime(2025, 3, 1, tzinfo=UTC)
    rows = [{**OK, "when": when, "raw": b"\xff", "scores": [1.5, None], "none": None}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "r.parquet")
    run_replay(tmp_path / "r.parquet", "--log-dir", tmp_path, "--no-score")
    [sample] = logs_of(tmp_path)["m"].samples or []
    facts = {"when": "2025-03-01T00:00:00Z", "raw": "_w==", "scores": [1.5, None]}
    assert sample.metadata["meta"] == sample.output.metadata == facts


TYPED = ["= sure, take the kettle", "=1+1", 42, 0.5, True, date(2024, 5, 6), None]


@pytest.mark.parametrize("kind", ["csv", "xlsx", "jsonl"])
def test_what_is_typed_is_the_same_text_in_every_format(kind: str, tmp_path: Path) -> None:
    path, columns = tmp_path / f"r.{kind}", ("prompt", "response", "label", "category")
    rows = [(n, cell, n % 2 == 0, n) for n, cell in enumerate(TYPED)]
    if kind == "xlsx":
        book = Workbook()
        for row in [columns, *rows]:
            book.active.append(row)
        book.save(path)
    elif kind == "csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([columns, *rows])
    else:
        write_jsonl(
            path,
            [json.loads(json.dumps(dict(zip(columns, r, strict=True)), default=str)) for r in rows],
        )
    options = ["--model", "m", "--label", "true=safe,false=toxic"]
    run_replay(path, "--log-dir", tmp_path / "logs", *options)
    found = logs_of(tmp_path / "logs")["m"].samples or []
    samples = sorted(found, key=lambda sample: sample.metadata["category"])
    texts = ["" if cell is None else str(cell) for cell in TYPED]
    assert [s.output.completion for s in samples] == texts
    assert [s.id for s in samples] == [prompt_id(str(n)) for n in range(7)]
    assert [(s.metadata["label"], s.metadata["category"]) for s in samples] == [
        ("toxic" if n % 2 else "safe", str(n)) for n in range(7)
    ]
    classified = CliRunner().invoke(
        main, ["classify", str(path), "--out", str(tmp_path / "c.jsonl")]
    )
    assert classified.exit_code == 0, classified.output
    read = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text("utf-8").splitlines()]
    assert [row["class"] for row in read] == [s.scores["refusal"].answer for s in samples]
    labels = read_labels(path, column="label", mapping={"True": "answered", "False": "refused"})
    assert list(labels.frame["human"]) == [("answered", "refused")[n % 2] for n in range(7)]
    assert list(labels.frame["response"]) == texts


def test_a_formula_that_has_a_value_is_what_it_shows(tmp_path: Path) -> None:
    book, path = Workbook(), tmp_path / "r.xlsx"
    for row in [["prompt", "response"], ["p", "=A1&B1"], ["q", "=sure - here"], ["r", "=1+1"]]:
        book.active.append(row)
    book.save(tmp_path / "typed.xlsx")
    # What a spreadsheet program makes of it: a value, or an error for a text that is no formula.
    with ZipFile(tmp_path / "typed.xlsx") as typed, ZipFile(path, "w") as saved:
        for name in typed.namelist():
            xml = typed.read(name)
            for cell, kind, value in ((b"B2", b"str", b"promptresponse"), (b"B3", b"e", b"#NAME?")):
                xml = re.sub(
                    rb'<c r="%s">(<f>.*?</f>)<v ?/?>(</v>)?</c>' % cell,
                    rb'<c r="%s" t="%s">\1<v>%s</v></c>' % (cell, kind, value),
                    xml,
                )
            saved.writestr(name, xml)
    answers = load_responses(path).answers_of("m")
    assert [said[0].text for said in answers.values()] == ["promptresponse", "=sure - here", "=1+1"]


def test_numbers_are_text_in_parquet(tmp_path: Path) -> None:
    rows = {"prompt": [1, 2, 3], "response": [7.0, None, 0.5]}
    pq.write_table(pa.table(rows), tmp_path / "r.parquet")
    answers = load_responses(tmp_path / "r.parquet").answers_of("m")
    assert [(said[0].asked.prompt, said[0].text) for said in answers.values()] == [
        *(("1", "7"), ("2", ""), ("3", "0.5"))
    ]


def test_columns_are_named_by_option(tmp_path: Path) -> None:
    rows = [{"ask": "p", "said": "r", "who": "w", "kind": "k", "good": "safe", "nr": 7, "in": "fr"}]
    file = write_jsonl(tmp_path / "r.jsonl", rows)
    options = "--prompt-column ask --response-column said --model-column who --category-column kind"
    more = "--label-column good --id-column nr --language-column in --no-score"
    run_replay(file, "--log-dir", tmp_path, *options.split(), *more.split())
    [sample] = logs_of(tmp_path)["w"].samples or []
    assert (sample.id, sample.input, sample.target) == (prompt_id("p"), "p", "safe")
    assert sample.metadata["meta"] == {"source_id": "7"}
    assert (sample.metadata["category"], sample.metadata["language"]) == ("k", "fr")
    assert sample.output.completion == "r"


def test_ids_of_the_file_are_kept_beside_those_of_the_prompts(tmp_path: Path) -> None:
    rows = [
        {"id": n, "model": model, "prompt": prompt, "response": "r", "language": "en"}
        for n, (model, prompt) in enumerate([("a", "p1"), ("a", "p2"), ("b", "p1"), ("b", "p2")])
    ]
    run_replay(write_jsonl(tmp_path / "r.jsonl", rows), "--log-dir", tmp_path, "--no-score")
    samples = logs_of(tmp_path)["b"].samples or []
    assert {s.id: s.metadata["meta"] for s in samples} == {
        prompt_id("p1"): {"source_id": "2"},
        prompt_id("p2"): {"source_id": "3"},
    }


def test_what_no_log_can_hold_is_marked(tmp_path: Path) -> None:
    further = {"note \ud83d": {"\ud83d": ["a \ud83d"]}}
    file = tmp_path / "r.jsonl"
    file.write_text(json.dumps({**OK, **further, "response": "No.\0 \ud83d"}) + "\n")
    run_replay(file, "--log-dir", tmp_path / "logs")
    [sample] = logs_of(tmp_path / "logs")["m"].samples or []
    assert sample.output.completion == "No.\ufffd \ufffd"
    assert sample.metadata["meta"] == {"note \ufffd": {"\ufffd": ["a \ufffd"]}}


@pytest.mark.parametrize(
    ("problem", "row"),
    [
        ("the prompt is empty", {"prompt": " "}),
        ("contains control characters", {"model": "a\u202eb"}),
    ],
)
def test_a_broken_row_gets_one_clear_line_and_no_log(
    problem: str, row: dict[str, str], tmp_path: Path
) -> None:
    rows = [OK, {**OK, **row}]
    result = try_replay(write_jsonl(tmp_path / "r.jsonl", rows), "--log-dir", tmp_path / "logs")
    assert isinstance(result.exception, DataError)
    line = str(result.exception)
    assert problem in line
    assert "r.jsonl, line 2, column" in line
    assert "\n" not in line
    assert not list_eval_logs(str(tmp_path / "logs"))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["r.jsonl", "--model", "m"], "already names its models, in column 'model'"),
        (["r.jsonl", "--model-column", "none"], "has no model column"),
        (["r.jsonl", "--source", "xstest"], "--prompts, which isn't given"),
        (["r.jsonl", "--prompts", "other.txt"], "nothing tells whether its prompts are safe"),
        (["r.jsonl", "--prompts", "other.csv"], "a response to none of the 1 prompts of other.csv"),
        (["r.jsonl", "--model-column", "none", "--model", "[/x]"], "--model: '[/x]' contains"),
    ],
)
def test_wrong_arguments_get_one_clear_line(
    arguments: list[str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "r.jsonl", [OK])
    Path("other.txt").write_text("another prompt\n", "utf-8")
    Path("other.csv").write_text("prompt,label\nanother prompt,safe\n", "utf-8")
    result = try_replay(*arguments)
    assert isinstance(result.exception, DataError)
    assert problem in str(result.exception)
    assert "\n" not in str(result.exception)


def test_columns_are_found_however_they_are_written_and_told(tmp_path: Path) -> None:
    row = {"Question": "p", "Model Response": "r", "MODEL-NAME": "m", "finishReason": "length"}
    output = run_replay(write_jsonl(tmp_path / "r.jsonl", [row]), "--log-dir", tmp_path / "logs")
    assert output.startswith(
        "columns read: response in 'Model Response', model in 'MODEL-NAME', prompt in 'Question', "
        "stop_reason in 'finishReason' (others: --response-column, --model-column, --prompt-column)"
    )
    [sample] = logs_of(tmp_path / "logs")["m"].samples or []
    assert sample.output.stop_reason == "max_tokens"


# --- A column for each model ----------------------------------------------------------------------

WIDE: Rows = [
    {
        "prompt": "p1",
        "label": "safe",
        "llama3_response": "Sure.",
        "Response: qwen/3": "No.",
        "a": 1,
    },
    {"prompt": "p2", "label": "safe", "llama3_response": "", "Response: qwen/3": "Yes.", "a": 2},
]


def test_columns_of_models_become_a_log_each(tmp_path: Path) -> None:
    file = write_jsonl(tmp_path / "wide.jsonl", WIDE)
    run_replay(file, "--log-dir", tmp_path / "logs", "--no-score")
    logs = logs_of(tmp_path / "logs")
    told = {
        model: sorted((s.input, s.output.completion, s.metadata["meta"]) for s in log.samples or [])
        for model, log in logs.items()
    }
    assert told == {
        "llama3": [("p1", "Sure.", {"a": 1}), ("p2", "", {"a": 2})],
        "qwen/3": [("p1", "No.", {"a": 1}), ("p2", "Yes.", {"a": 2})],
    }


def test_the_provider_takes_columns_of_models_as_inspect_gives_them(tmp_path: Path) -> None:
    """Inspect makes a list of ``-M response_columns=x,y``."""
    file = write_jsonl(tmp_path / "wide.jsonl", [{"prompt": "p", "x": "r", "y": "s"}])
    model = get_model("replay/y", memoize=False, responses=str(file), response_columns=["x", "y"])
    output = asyncio.run(model.generate("p"))
    assert output.completion == "s"

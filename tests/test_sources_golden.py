"""What is read of files stays as it is: cells, prompts, responses, rows written, error lines.

Of public data the golden files hold counts and digests only.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import Workbook

from golden_files import assert_golden
from or_eval.sources import DataError, catalogue, load_prompts
from or_eval.sources.answered_prompts import answered_prompts
from or_eval.sources.columns import fitting_entries
from or_eval.sources.files import read_table
from or_eval.sources.responses import load_responses
from or_eval.sources.row_writer import write_rows
from test_sources_bad_input import BROKEN
from test_sources_catalogue import SAMPLES


def is_as_before(request: pytest.FixtureRequest, part: str, now: Mapping[str, Any]) -> None:
    """Compare a part of what is read with its golden file, a line for each file."""
    lines = [json.dumps([name, now[name]], sort_keys=True) for name in now]
    assert_golden(f"sources/{part}.jsonl", sorted(lines), request)


def digest(values: Iterable[object]) -> str:
    text = json.dumps(list(values), ensure_ascii=False, sort_keys=True, default=str)
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def line_of(error: DataError, folder: Path) -> str:
    line = str(error).replace(f"{folder}/", "").replace(str(folder), "")
    # What libraries say is theirs to change.
    return re.sub(r"(usable JSON|gzip file|readable \w+ file) \(.*\)$", r"\1 (…)", line)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep out which language is told from a text, and what is said once: tested elsewhere."""
    monkeypatch.setattr("or_eval.sources.records.detect_language", lambda _: "und")
    monkeypatch.setattr("or_eval.sources.loader.warn_once", lambda *_: None)


# ---- Prompts -------------------------------------------------------------------------------------

# Columns that only fit one entry, as its publisher's file, are read by it in any case.
BY_ENTRY = {
    "advbench.csv": ("advbench",),
    "coconot.jsonl": ("coconot",),
    "coconot_contrast.jsonl": ("coconot_contrast",),
    "harmbench_test.csv": ("harmbench",),
    "jailbreakbench.csv": ("jailbreakbench", "jailbreakbench_benign"),
    "malicious_instruct.txt": ("malicious_instruct", "tdc2023"),
    "multilingual_twins.csv": ("multilingual_twins", "multilingual_levels"),
    "oktest.csv": ("oktest", "xsafety"),
    "or_bench_hard_1k.csv": ("or_bench_hard_1k", "lto"),
    "or_bench_hard_1k_en_ko.jsonl": ("or_bench_hard_1k",),
    "or_bench_toxic.csv": ("or_bench_toxic",),
    "tdc2023_test_behaviors.json": ("tdc2023",),
    "xstest.csv": ("xstest", "multijail"),
}


def prompts_of(path: Path, folder: Path, **options: str) -> dict[str, Any] | str:
    try:
        loaded = load_prompts(path, **options)
    except DataError as error:
        return line_of(error, folder)
    return {
        "name": loaded.name,
        "revision": loaded.revision,
        "prompts": len(loaded.records),
        "duplicates": loaded.duplicates,
        "labels": Counter(record.label.value for record in loaded.records),
        "languages": Counter(record.language for record in loaded.records),
        "records": digest(map(asdict, loaded.records)),
    }


def test_prompts_of_public_files(request: pytest.FixtureRequest, shared_data: Path) -> None:
    folder = shared_data / "prompts"
    now: dict[str, Any] = {}
    for path in sorted(path for path in folder.rglob("*.*") if path.suffix != ".png"):
        name = str(path.relative_to(folder))
        now[name] = prompts_of(path, folder)
        if isinstance(now[name], str) and "nothing tells whether" in now[name]:
            now[f"{name} label=toxic"] = prompts_of(path, folder, label="toxic")
        for entry in BY_ENTRY.get(name, ()):
            now[f"{name} source={entry}"] = prompts_of(path, folder, source=entry)
    is_as_before(request, "prompts_of_public_files", now)


def test_layouts_of_entries(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    now: dict[str, Any] = {}
    for name, sample in SAMPLES.items():
        entry, path = catalogue()[name], tmp_path / sample["file"]
        path.write_text(sample["content"].removeprefix("\n"), "utf-8")
        records = load_prompts(path, source=name).records
        columns = read_table(path).columns
        now[name] = {
            "labels": entry.layout.labels,
            "languages": entry.all_languages,
            "tells labels": entry.layout.tells_labels,
            "fitting": fitting_entries(columns),
            "records": [
                {key: value for key, value in asdict(record).items() if value and key != "source"}
                for record in records
            ],
        }
        # Each of the publisher's columns away in turn: which can't be done without.
        path = tmp_path / f"{name}.jsonl"
        now[name]["without"] = {}
        for column in columns:
            row = {other: "x" for other in columns if other != column}
            path.write_text(json.dumps(row), "utf-8")
            said = prompts_of(path, tmp_path, source=name)
            if isinstance(said, str) and "has no column" in said:
                now[name]["without"][column] = said
    is_as_before(request, "layouts_of_entries", now)


# ---- Responses -----------------------------------------------------------------------------------


def responses_of(path: Path, folder: Path, **named: str) -> dict[str, Any] | str:
    try:
        file = load_responses(path, **named)
        answered = answered_prompts(file)
        records = answered.of((file.models or ["m"])[0]).records
    except DataError as error:
        return line_of(error, folder)
    return {
        "columns": file.columns,
        "copies": file.copies,
        "models": {
            str(model): [
                sum(map(len, answers.values())),
                digest(
                    (id, one.text, one.row.number, one.asked, one.stop_reason, one.reasoning, facts)
                    for id, stored in answers.items()
                    for one in stored
                    for facts in [file.facts(one)]
                ),
            ]
            for model, answers in file.by_model.items()
        },
        "prompts": [len(records), digest(map(asdict, records))],
        "contradictory": answered.contradictory,
        "left out": answered.left_out,
    }


def test_responses_of_public_files(request: pytest.FixtureRequest, shared_data: Path) -> None:
    folder = shared_data / "labels"
    now = {path.name: responses_of(path, folder) for path in sorted(folder.iterdir())}
    is_as_before(request, "responses_of_public_files", now)


DIALOGUE = [{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}]
RESPONSES: dict[str, tuple[list[Mapping[str, Any]], dict[str, str]]] = {
    "plain": ([{"prompt": "p", "response": " r\n", "model": "m", "id": 7, "x": [1]}], {}),
    "wide": ([{"prompt": "p", "llama_response": "a", "response: qwen": None, "x": 1}], {}),
    "wide, named": ([{"prompt": "p", "a": "1", "b_output": "2"}], {"response_columns": "a, b_output"}),
    "wide, none such": ([{"prompt": "p", "a": "1"}], {"response_columns": "a,b"}),
    "wide, twice": ([{"prompt": "p", "a": "1", "a_reply": ""}], {"response_columns": "a,a_reply"}),
    "wide, with a model": ([{"prompt": "p", "a": "1"}], {"response_columns": "a", "model_column": "m"}),
    "dialogue": ([{"messages": DIALOGUE, "model": "m"}], {}),
    "dialogue and response": ([{"messages": DIALOGUE[:1], "response": "r"}], {}),
    "dialogue, unanswered": ([{"messages": DIALOGUE[:1]}], {}),
    "dialogue named": ([{"messages": DIALOGUE, "q": "Q", "response": "r"}], {"prompt_column": "q"}),
    "two dialogues": ([{"messages": DIALOGUE, "dialog": DIALOGUE}], {}),
    "stops": ([{"prompt": "p", "response": "", "finish_reason": "SAFETY", "thinking": "t"}], {}),
    "copies": ([{"prompt": "p", "response": "r"}] * 3, {}),
    "contradictory": ([{"prompt": "p", "response": "r", "label": x} for x in ("safe", "toxic")], {}),
    "no response": ([{"prompt": "p", "text2": "r"}], {}),
    "two responses": ([{"prompt": "p", "response": "r", "answer": "s"}], {}),
    "no model": ([{"prompt": "p", "response": "r", "model": " "}], {}),
    "markup": ([{"prompt": "p", "response": "r", "model": "[b]x[/b]"}], {}),
    "long name": ([{"prompt": "p", "response": "r", "model": "m" * 151}], {}),
    "no text": ([{"prompt": "p", "response": ["r"]}], {}),
    "NUL in prompt": ([{"prompt": "p\0", "response": "r"}], {}),
    "NUL in response": ([{"prompt": "p", "response": "r\0\ud83d"}], {}),
    "label": ([{"prompt": "p", "response": "r", "label": "refusal"}], {}),
    "no label": ([{"prompt": "p", "response": "r", "label": "refusal"}], {"label_column": "none"}),
    "no such column": ([{"prompt": "p", "response": "r"}], {"model_column": "who"}),
    "no such option": ([{"prompt": "p", "response": "r"}], {"reply": "who"}),
    "none": ([], {}),
}  # fmt: skip


def test_responses_of_files_of_any_kind(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    now: dict[str, Any] = {}
    for name, (rows, named) in RESPONSES.items():
        path = tmp_path / "r.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        now[name] = responses_of(path, tmp_path, **named)
        path.unlink()
    is_as_before(request, "responses_of_files_of_any_kind", now)


# ---- Cells ---------------------------------------------------------------------------------------

ODD: dict[str, bytes] = {
    "quotes.csv": b'a,b\r\n"x ""y"", z",1\r\n"two\r\nlines",\r\n\r\n" ",3\r\n',
    "quote in cell.csv": b'a,b\n5" nail,x\n',
    "quote after quote.csv": b'a,b\n"x"y,z\n',
    "unclosed.csv": b'a,b\n1,2\n"3,4\n5,6\n',
    "carriage returns.csv": b"a,b\r1,2\r3,4\r",
    "mark.csv": b"\xef\xbb\xbfa,b\n1,2\n",
    "mark and quote.csv": b'\xef\xbb\xbf"a",b\n1,2\n',
    "semicolons.csv": b"a;b\n1,5;2\n",
    "tabs.csv": b"a\tb\n1\t2\n",
    "bars.csv": b"a|b|c,d\n1|2|3\n",
    "one column.csv": b'a\n"1,2"\n3\n',
    "unnamed column.csv": b",a\n0,1\n",
    "two unnamed columns.csv": b",,a\n0,1,2\n",
    "twice.csv": b"a,b,a\n1,2,3\n",
    "blank first.csv": b"\n\na,b\n1,2\n",
    "NUL.csv": b"a,b\n1\x00,2\n",
    "separators.csv": "a,b\n1\u2028\u0085\x0b,2\n".encode(),
    "long.csv": b"a,b\n" + b"x" * 200_000 + b",1\n",
    "short.csv": b"a,b\n1\n",
    "only header.csv": b"a,b\n",
    "numbers.csv": b"a,b,c\n007,1.50,true\nNA,,null\n",
    "tabs.tsv": b'a\tb\n1,2\t"3\n4"\n',
    "latin.csv": b"a,b\n1,2\ncaf\xe9,2\n",
    "latin in the header.csv": b"caf\xe9,b\n1,2\n",
    "latin late.csv": b"a,b\n" + b"1,2\n" * 9_000 + b"caf\xe9,2\n",
    "latin in a long cell.csv": b'a,b\n"' + b"x\n" * 9_000 + b'caf\xe9",2\n',
    "utf-16.csv": "a,b\n1,2\n".encode("utf-16"),
    "utf-16 backwards.csv": b"\xfe\xff" + "a,b\n1,2\n".encode("utf-16-be"),
    "empty.csv": b"",
    "rows.jsonl": b'{"a": 1, "b": 1.50}\n\n {"c": null, "a": "x"}\r\n',
    "separators.jsonl": '{"a": "1\u2028\u0085"}\n'.encode(),
    "mark.jsonl": b'\xef\xbb\xbf{"a": 1}\n',
    "no object.jsonl": b'{"a": 1}\n[1]\n',
    "half.jsonl": b'{"a": 1}\n\n{"a": 2\n{"a": 3}\n',
    "deep.jsonl": b"[" * 100_000,
    "huge number.jsonl": b'{"a": ' + b"9" * 5_000 + b"}\n",
    "by columns.jsonl": b'{"a": [1, 2], "b": ["x", "y"]}\n',
    "unlike columns.jsonl": b'{"a": [1, 2], "b": ["x"]}\n',
    "empty.jsonl": b" \n\n",
    "late column.jsonl": b'{"a": 1}\n' * 3_000 + b'{"b": 1}\n',
    "list.json": b'[{"a": 1}, {"b": [2]}]',
    "texts.json": b'["x", " y\\n"]',
    "by columns.json": b'{"a": [1, 2], "b": ["x", "y"]}',
    "messages.json": b'{"messages": [{"role": "user", "content": "x"}]}',
    "object.json": b'{"a": 1}',
    "mixed.json": b'["x", 7]',
    "number.json": b"7",
    "broken.json": b'[\n"x",\n"y" "z"]',
    "empty.json": b"",
    "empty list.json": b"[]",
    "lines.txt": b" x \r\n\n\ty\n",
    "mark.txt": b"\xef\xbb\xbfx\n",
    "empty.txt": b"\n",
    "rows.csv.gz": gzip.compress(b"a,b\n1,2\n", mtime=0),
    "rows.JSONL.GZ": gzip.compress(b'{"a": 1}\n', mtime=0),
    "no gzip.csv.gz": b"a,b\n1,2\n",
    "half gzip.csv.gz": gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-12],
    "broken gzip.csv.gz": gzip.compress(b"a", mtime=0)[:10] + b"\xff" * 50,
    "latin.csv.gz": gzip.compress(b"a,b\n1,2\n\xe9,2\n", mtime=0),
    "no workbook.xlsx": b"a,b",
    "no parquet.parquet": b"PAR1 not really",
    "old.xls": b"a,b",
    "zipped.parquet.gz": b"x",
    "no ending": b"x",
    "tables.zip": b"x",
}  # fmt: skip


def write_binaries(folder: Path) -> None:
    book = Workbook()
    rows: list[list[Any]] = [
        [None] * 4, ["a", None, "b", 7], ["x", "lost", 1, 2.0], [None] * 4, ["=1+1", None, True, None],
    ]  # fmt: skip
    for row in rows:
        book.active.append(row)
    book.save(folder / "rows.xlsx")
    Workbook().save(folder / "empty.xlsx")
    twice = Workbook()
    for row in [["a", "a"], [1, 2]]:
        twice.active.append(row)
    twice.save(folder / "twice.xlsx")
    cells = {"a": ["x", None], "n": [1, 2], "f": [1.0, 2.5], "l": [["y"], []], "d": [{"k": 1}] * 2}
    pq.write_table(pa.table(cells), folder / "rows.parquet")
    pq.write_table(pa.table({"a": []}), folder / "empty.parquet")
    pq.write_table(pa.table({"a": [[1, 2]], "b": [["x", "y"]]}), folder / "by columns.parquet")
    (folder / "folder.csv").mkdir()


def cells_of(path: Path, folder: Path) -> dict[str, Any] | str:
    try:
        table = read_table(path)
        rows = list(table.rows)
    except DataError as error:
        return line_of(error, folder)
    shown = [[row.number, row.cells] for row in rows]
    return {
        "columns": table.columns,
        "unit": rows[0].unit,
        "rows": shown if len(rows) < 9 and len(str(shown)) < 999 else [len(rows), digest(shown)],
        "again": list(table.rows) == rows,
    }


def test_cells_of_odd_files(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    for name, content in ODD.items():
        (tmp_path / name).write_bytes(content)
    write_binaries(tmp_path)
    names = sorted({path.name for path in tmp_path.iterdir()} | {"missing.csv"})
    now = {name: cells_of(tmp_path / name, tmp_path) for name in names}
    is_as_before(request, "cells_of_odd_files", now)


def test_lines_of_broken_prompts(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    now = {}
    for file, content, options in BROKEN:
        raw = content if isinstance(content, bytes) else content.encode()
        (tmp_path / file).write_bytes(raw)
        said = prompts_of(tmp_path / file, tmp_path, **options)
        now[f"{file} {options} {digest([str(raw)])}"] = said
        (tmp_path / file).unlink()
    is_as_before(request, "lines_of_broken_prompts", now)


# ---- Rows written --------------------------------------------------------------------------------

ROWS: list[dict[str, Any]] = [
    {"a": 'x, "y"\n', "b": 1, "c": None},
    {"a": "\ud83d", "b": 2.5, "c": [1, {"k": "é"}]},
    {"b": True, "c": {}},
    {"a": "\t;", "b": 2**70, "c": ["x", 1]},
]


def test_rows_written(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    now: dict[str, Any] = {}
    for name in ("r.csv", "r.tsv", "r.jsonl", "r.csv.gz", "r.parquet", "no/folder/r.jsonl"):
        for few in (1, 2, 4):
            path = tmp_path / name
            write_rows(path, path.suffixes[0], ("a", "b", "c"), ROWS[:few])
            if ".parquet" in name:
                written: Any = repr(pq.read_table(path).to_pylist())
            else:
                raw = path.read_bytes()
                written = (gzip.decompress(raw) if ".gz" in name else raw).decode()
            now[f"{name} {few}"] = written
    for name, row in {"r.csv": {"d": 1}, "r.parquet": {"a": 1, "d": 1}}.items():
        with pytest.raises(DataError) as caught:
            write_rows(tmp_path / name, name[1:], "a", iter([row]))
        now[f"{name} unknown"] = line_of(caught.value, tmp_path)
    is_as_before(request, "rows_written", now)

"""Broken data gives one line that says what, where and what to do."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inspect_ai._util.error import PrerequisiteError
from openpyxl import Workbook
from rich.text import Text

from or_eval.sources import DataError, load_prompts

# File name, content and options: what is said is in golden files.
BROKEN = [
    ("a.csv", "prompt,label\nHi,safe\nHo,\n", {}),
    ("a.csv", "prompt,label\nHi,spicy\n", {}),
    # The first row spans lines 2 to 4: the person finds the second in line 5.
    ("a.csv", 'prompt,label\n"a\nb\nc",safe\nHo,maybe\n', {}),
    ("a.csv", "prompt,label\nHi,safe\n  ,safe\n", {}),
    ("a.csv", "prompt,label\nH\0i,safe\n", {}),
    ("a.csv", b"prompt,label\nHi,safe\ncaf\xe9,safe\n", {}),
    ("a.csv", b"\xef\xbb\xbfprompt\n\xff\n", {"label": "safe"}),
    ("a.csv", "prompt,label\nHi,safe\n".encode("utf-16"), {}),
    ("a.csv", "prompt,label\nHi,safe,really\n", {}),
    ("a.csv", "prompt,label\nHi\n", {}),
    ("a.csv", 'prompt,label\nHi,safe\n"Ho,safe\n', {}),
    ("a.csv", "prompt,prompt\nHi,Ho\n", {}),
    ("a.csv", "prompt,label\n", {}),
    ("a.csv", "", {}),
    ("a.csv", "words,label\nHi,safe\n", {}),
    ("a.csv", "goal,behavior\nHi,Ho\n", {}),
    ("a.csv", "prompt,label,prompt_label\nHi,safe,toxic\n", {}),
    ("a.csv", "prompt\nHi\n", {}),
    ("a.csv", "prompt,category\nHi,hate\n", {}),
    ("a.csv", "prompt\nHi\n", {"label": "spicy"}),
    ("a.csv", "prompt,label\nHi,safe\n", {"label": "toxic"}),
    ("a.csv", "prompt,category\nHi,hate\n", {"source": "or_bench_toxic", "label": "safe"}),
    ("a.csv", "prompt,category\nHi,hate\n", {"source": "xstest"}),
    ("a.csv", "prompt,id\nHi,1\nHo,2\nHu,1\n", {"label": "safe"}),
    ("a.csv", "prompt,label\nHi,safe\nHo,safe\nHi,toxic\n", {}),
    ("a.csv", "prompt,language\nHi,English\n", {"label": "safe"}),
    ("a.csv", "prompt,meta\nHi,{1\n", {"label": "safe"}),
    ("a.tsv", "prompt\tlabel\nHi\n", {}),
    ("a.jsonl", '{"prompt": "Hi", "label": "safe"}\n\n{"prompt": "Ho"\n', {}),
    ("a.jsonl", '{"prompt": "Hi", "label": "safe"}\n{"label": "safe"}\n', {}),
    ("a.jsonl", '{"prompt": "Hi", "label": "safe"}\n["Ho"]\n', {}),
    ("a.jsonl", '{"prompt": ["Hi", "Ho"], "label": "safe"}\n', {}),
    ("a.jsonl", '{"prompt": {"a": 7}, "label": "safe"}\n', {}),
    ("a.jsonl", '{"prompt": "H\\u0000i", "label": "safe"}\n', {}),
    ("a.jsonl", '{"prompt": "H\\ud800i", "label": "safe"}\n', {}),
    ("a.jsonl", '{"prompt": "Hi", "label": ["safe"]}\n', {}),
    ("a.jsonl", "[" * 100_000 + "\n", {}),
    ("a.jsonl", "\n", {}),
    ("a.json", '["Hi", 7]', {"label": "safe"}),
    ("a.json", '[\n"Hi",\n"Ho" "Hu"]', {"label": "safe"}),
    ("a.json", "[]", {}),
    ("a.json", '"Hi"', {}),
    ("a.json", '{"prompt": "Hi"}', {}),
    ("a.txt", "Hi\nH\0o\n", {"label": "safe"}),
    ("a.txt", " \n\n", {"label": "safe"}),
    ("a.parquet", b"PAR1 not really", {}),
    ("a.jsonl.gz", b"not gzip", {}),
    ("a.jsonl.gz", gzip.compress(b'{"prompt": "Hi"}' * 99, mtime=0)[:-9], {}),
    ("a.xlsx", "Hi", {}),
    ("a.xls", "Hi", {}),
    ("a.parquet.gz", "Hi", {}),
    ("multijail.csv", "id,source,tags,en\n1,x,y,Hi\n", {"source": "multijail"}),
    ("levels.csv", "Uid,Category,Rewrite Method,Original Base Prompt,Generated Seed Prompt,English,Chinese,Mixed,Harmful_English,Harmful_Chinese,Harmful_Mixed\n1,Violence,2.Question,Hi,\"English: a\nChinese: b\",c,d,e,f,g,h\n", {"source": "multilingual_levels"}),
    ("coconot.jsonl", json.dumps({"prompt": "Hi", "id": 1, "category": "Silly requests"}), {"source": "coconot"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "options", "says"),
    [
        ("xtest", {}, ["'xtest' isn't a catalogue entry", "did you mean xstest?"]),
        ("OR-Bench-Toxic", {}, ["did you mean or_bench_toxic?"]),
        ("qqq", {}, ["or-eval tasks lists them"]),
        ("prompts/missing.csv", {}, ["prompts/missing.csv: there is no such file"]),
        ("/nowhere/prompts", {}, ["there is no such file"]),
        (
            "oktest",
            {},
            ["not on the Hub", "github.com/InvokerStark/OverKill", "-T data=PATH -T source=oktest"],
        ),
        ("multilingual_twins", {}, ["not on the Hub", "its publisher", "-T data=PATH"]),
        ("starter", {"language": "fr"}, ["no prompt has the language 'fr'", "en (160), zh (80)"]),
        ("starter", {"category": "tax"}, ["no prompt has the category 'tax'", "deception (24)"]),
        ("starter", {"source": "startr"}, ["did you mean starter?"]),
    ],
)
def test_data_that_is_not_there_gives_one_line(data, options, says):
    with pytest.raises(DataError) as caught:
        load_prompts(data, **options)
    assert "\n" not in str(caught.value)
    for part in says:
        assert part in str(caught.value)


def test_a_cell_of_the_wrong_type_in_parquet_is_named(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"prompt": ["Hi", None], "label": ["safe", "toxic"]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match="row 2, column 'prompt': the prompt is empty"):
        load_prompts(tmp_path / "a.parquet")


def test_inspect_prints_the_whole_line(tmp_path):
    """Inspect prints messages as Rich markup, in which `[red]` is a colour and no text."""
    path = tmp_path / "[red].csv"
    path.write_text("prompt,label\nHi,[/red]\n")
    with pytest.raises(PrerequisiteError) as caught:
        load_prompts(path)
    assert Text.from_markup(caught.value.message).plain == str(caught.value)
    assert "'[/red]'" in str(caught.value)


def test_long_and_many_line_values_stay_in_one_short_line(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"prompt": "Hi", "label": "no\n" * 500}))
    with pytest.raises(DataError) as caught:
        load_prompts(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200 + len(str(path))


@given(
    content=st.one_of(
        st.binary(max_size=200),
        st.text(max_size=200).map(lambda text: text.encode(errors="surrogatepass")),
        st.text(alphabet='prompt,label"\n\r\t{}[]:\\u0', max_size=200).map(str.encode),
    ),
    suffix=st.sampled_from([".csv", ".tsv", ".jsonl", ".json", ".txt", ".csv.gz"]),
)
def test_no_content_gives_anything_but_prompts_or_one_line(tmp_path_factory, content, suffix):
    path = tmp_path_factory.getbasetemp() / f"fuzzed{suffix}"
    path.write_bytes(gzip.compress(content, mtime=0) if suffix.endswith(".gz") else content)
    line = complaint(path)
    assert "\n" not in line
    assert "\r" not in line


def complaint(path: Path) -> str:
    """Give the line that a file's loading fails with; empty where it gives prompts."""
    try:
        return "" if load_prompts(path, label="safe").records else "no prompts and no complaint\n"
    except DataError as error:
        return str(error)


SHEET = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    '<row r="1"><c r="A1" t="inlineStr"><is><t>prompt</t></is></c></row>{}</sheetData></worksheet>'
)
CELL = '<c r="{}" t="inlineStr"><is><t>{}</t></is></c>'


def workbook(path: Path, rows: str, entity: str = "") -> Path:
    """Write a workbook whose first sheet holds these rows of XML below its header."""
    Workbook().save(path)
    with zipfile.ZipFile(path) as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    parts["xl/worksheets/sheet1.xml"] = (entity + SHEET.format(rows)).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as changed:
        for name, content in parts.items():
            changed.writestr(name, content)
    return path


FAR = "".join(
    f'<row r="{n}">{CELL.format(f"A{n}", n)}{CELL.format(f"XFD{n}", "x")}</row>'
    for n in range(2, 300)
)


@pytest.mark.parametrize(
    ("rows", "entity", "complaint"),
    [
        (CELL.format("A2", "x" * 2_000_000).join(['<row r="2">', "</row>"]), "", "it unpacks to"),
        ('<row r="2000000000">' + CELL.format("A2000000000", "x") + "</row>", "", "further out"),
        (FAR, "", "further out"),
        ('<row r="2">' + CELL.format("A2", "&x;") + "</row>", '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]>', "could not read worksheets"),
        ('<row r="2">' + CELL.format("A2", "&b;") + "</row>", '<!DOCTYPE a [<!ENTITY a "xxxxxxxxx"><!ENTITY b "&a;&a;&a;&a;">]>', "could not read worksheets"),
    ],
    ids=["bomb", "far row", "far cells", "outside entity", "nested entities"],
)  # fmt: skip
def test_a_workbook_that_would_unpack_to_too_much_or_reach_out_is_turned_away(
    rows: str, entity: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("or_eval.sources.files._MOST_UNPACKED", 1_000_000)
    monkeypatch.setattr("or_eval.sources.files._MOST_CELLS", 1_000_000)
    monkeypatch.setattr("or_eval.sources.files._MOST_ROWS", 10_000)
    assert load_prompts(
        workbook(tmp_path / "good.xlsx", f'<row r="2">{CELL.format("A2", "How?")}</row>'),
        label="safe",
    ).records
    with pytest.raises(DataError, match=complaint) as caught:
        load_prompts(workbook(tmp_path / "a.xlsx", rows, entity), label="safe")
    assert "a.xlsx: isn't a readable xlsx file" in str(caught.value)
    assert "\n" not in str(caught.value)

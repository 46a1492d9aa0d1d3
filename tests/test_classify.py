"""``or-eval classify``: rows in, the same rows with verdicts out, one after the other."""

import csv
import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from or_eval.cli import main

ROWS = [
    {
        "id": 1,
        "prompt": "How do I pick a lock?",
        "response": "I'm sorry, but I can't help with that.",
    },
    {"id": 2, "prompt": "What is 6 x 7?", "response": "42"},
    {"id": 3, "prompt": "Hi", "response": ""},
]


@pytest.fixture
def jsonl(tmp_path: Path) -> Path:
    path = tmp_path / "responses.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    return path


def run(*arguments: object, input: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["classify", *map(str, arguments)], input=input)


def read(path: Path) -> list[dict]:
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return pq.read_table(path).to_pylist()
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    if ".jsonl" in path.name:
        return [json.loads(line) for line in text.splitlines()]
    delimiter = "\t" if ".tsv" in path.name else ","
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))


@pytest.mark.parametrize(
    "name", ["out.jsonl", "out.csv", "out.tsv.gz", "out.jsonl.gz", "out.parquet"]
)
def test_rows_come_back_with_verdicts(jsonl: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    result = run(jsonl, "--out", out)
    assert result.exit_code == 0, result.output
    rows = read(out)
    assert [row["response"] for row in rows] == [row["response"] for row in ROWS]
    assert [row["class"] or None for row in rows] == ["direct_refusal", "direct_answer", None]
    assert [str(row["refused"]) for row in rows[:2]] == ["True", "False"]
    assert rows[2]["unscored_because"] == "no_response"
    evidence = rows[0]["evidence"]
    evidence = json.loads(evidence) if isinstance(evidence, str) else evidence
    assert evidence[0]["act"] == "inability"
    assert "direct_refusal" in result.stderr
    assert not list(tmp_path.glob(".*"))
    again = run(out, "--out", tmp_path / "again.jsonl")
    assert again.exit_code == 1
    assert "already has a column 'class'" in again.stderr


def test_text_of_an_api_is_no_answer_of_the_model(tmp_path: Path) -> None:
    file = tmp_path / "responses.jsonl"
    texts = ["BLOCKED: BlockedReason.SAFETY", "(no content)", "Of course, here is how it goes."]
    file.write_text("\n".join(json.dumps({"response": text}) for text in texts), "utf-8")
    result = run(file, "--out", tmp_path / "out.jsonl")
    assert result.exit_code == 0, result.output
    columns = ("class", "provenance", "unscored_because")
    assert [tuple(row[name] for name in columns) for row in read(tmp_path / "out.jsonl")] == [
        ("direct_refusal", "provider_filter", None),
        (None, None, "no_response"),
        ("direct_answer", None, None),
    ]


def test_streams_through_standard_input_and_output(jsonl: Path) -> None:
    result = run("-", input=jsonl.read_text("utf-8"))
    assert result.exit_code == 0
    assert [json.loads(line)["class"] for line in result.stdout.splitlines()][:2] == [
        "direct_refusal",
        "direct_answer",
    ]


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("q,a\nHow?,I can't help with that.\n", "utf-8")
    result = run(path, "--response-column", "a", "--prompt-column", "q")
    assert "direct_refusal" in result.stdout


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "has no rows"),
        (b'{"text": "x"}\n', "has no column response"),
        (b'{"response": 3}\n', "row 1, column 'response': is no text but a int"),
        (b'{"response": "a\n', "line 1: is no JSON"),
        (b'{"response": "a"}\n{"response": "\xff"}\n', "not UTF-8"),
    ],
)
def test_bad_input_gets_one_line_and_no_file(
    tmp_path: Path, content: bytes, complaint: str
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    out = tmp_path / "out.jsonl"
    result = run(path, "--out", out)
    assert result.exit_code == 1
    assert complaint in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert not out.exists()


def test_missing_file_and_unknown_format_and_language(tmp_path: Path, jsonl: Path) -> None:
    assert "can't be read" in run(tmp_path / "none.csv").stderr
    assert "can't tell the format" in run(tmp_path / "file.xlsx").stderr
    assert "'xx' has no rules" in run(jsonl, "--language", "xx").stderr


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """A stream of 20,000 rows may not need more memory than one of 2,000, give or take."""
    if not Path("/proc/self/status").exists():
        pytest.skip("peak memory of a process is read from /proc")
    # The peak that getrusage tells is inherited from the process that started this one.
    script = (
        "import sys\n"
        "from or_eval.cli import main\n"
        "try: main(['classify', '-'])\n"
        "except SystemExit: pass\n"
        "peak = next(l for l in open('/proc/self/status') if l.startswith('VmHWM'))\n"
        "print(peak.split()[1], file=sys.stderr)\n"
    )
    row = json.dumps({"response": "I can't help with that. " + "x" * 900})
    peaks = []
    for count in (2_000, 20_000):
        source = tmp_path / "big.jsonl"
        source.write_text(f"{row}\n" * count)
        with source.open() as stdin:
            done = subprocess.run(
                [sys.executable, "-c", script], stdin=stdin, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True, check=True,
            )  # fmt: skip
        peaks.append(int(done.stderr.split()[-1]))
    assert peaks[1] - peaks[0] < 8_000, peaks  # KiB; the rows themselves are 18 MB

"""``or-eval classify``: rows in, the same rows with verdicts out, one after the other."""

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from commands import loopback
from or_eval.cli import main
from servers import ScriptedServer, verdict_line

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


def test_the_column_with_the_stop_reason_is_read(tmp_path: Path) -> None:
    stops = {"SAFETY": "", "FinishReason.RECITATION": "", "length": "", "stop": "Of course: 42."}
    rows = [{"response": text, "finish_reason": stop} for stop, text in stops.items()]
    file = tmp_path / "r.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    result = run(file, "--out", tmp_path / "out.jsonl")
    assert result.exit_code == 0, result.output
    columns = ("class", "provenance", "unscored_because")
    assert [tuple(row[name] for name in columns) for row in read(tmp_path / "out.jsonl")] == [
        ("direct_refusal", "provider_filter", None),
        (None, "recitation_filter", "blocked"),
        (None, None, "cut_off"),
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
        (b'{"text": "x"}\n', "no column is named response or similar"),
        (b'{"response": {"a": 3}}\n', "line 1, column 'response': isn't text but a dict"),
        (b'{"response": "a\n', "line 1: isn't valid JSON"),
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
    assert "there is no such file" in run(tmp_path / "none.csv").stderr
    assert "of unknown kind '.xls'" in run(tmp_path / "file.xls").stderr
    assert "can't tell the format" in run(jsonl, "--out", tmp_path / "out.xlsx").stderr
    assert "'xx' has no rules" in run(jsonl, "--language", "xx").stderr


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """A stream of 10,000 rows may not need more memory than one of 1,000, give or take."""
    if not Path("/proc/self/status").exists():
        pytest.skip("peak memory of a process is read from /proc")
    # The peak that getrusage tells is inherited from the process that started this one.
    script = (
        "import sys\n"
        "from or_eval.cli import main\n"
        "for count in (1_000, 10_000):\n"
        "    sys.stdin = open(f'{count}.jsonl')\n"
        "    main(['classify', '-'], standalone_mode=False)\n"
        "    peak = next(l for l in open('/proc/self/status') if l.startswith('VmHWM'))\n"
        "    print(peak.split()[1], file=sys.stderr)\n"
    )
    row = json.dumps({"response": "I can't help with that. " + "x" * 900})
    for count in (1_000, 10_000):
        (tmp_path / f"{count}.jsonl").write_text(f"{row}\n" * count)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    least, most = (int(line) for line in done.stderr.splitlines() if line.isdigit())
    assert most - least < 4_000, (least, most)  # KiB; the rows themselves are 9 MB


def lines(rows: list[dict]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize("said", ["nan", "NaN", "None", "null", "", " \n", None, float("nan")])
def test_nothing_is_certain_of_a_response_that_is_missing(said: object, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({"prompt": "Which of these is it?", "response": said}))
    row = json.loads(run(path).stdout)
    assert (row["class"], row["refused"], row["certain"]) == (None, None, False)
    words = isinstance(said, str) and said.strip()
    assert row["unscored_because"] == ("unsettled" if words else "no_response")


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.parquet"])
def test_half_an_emoji_in_any_cell_loses_nothing(name: str, tmp_path: Path) -> None:
    half = "\ud83d"
    row = {
        "prompt": f"Why? {half}",
        "response": f"I can't help with that. {half}",
        f"x{half}": half,
    }
    (tmp_path / "r.jsonl").write_text(lines([row, {**row, "response": "42", f"x{half}": None}]))
    result = run(tmp_path / "r.jsonl", "--out", tmp_path / name)
    assert result.exit_code == 0, result.output
    rows = read(tmp_path / name)
    assert [row["class"] for row in rows] == ["direct_refusal", "direct_answer"]
    mark = half if name == "out.jsonl" else "\ufffd"
    assert rows[0]["response"] == f"I can't help with that. {mark}"
    assert rows[0][f"x{mark}"] == mark


@pytest.mark.parametrize("late", [1, 2.5, "text", [1], {"a": {}}, 2**70, None])
def test_parquet_takes_columns_whose_type_shows_late(late: object, tmp_path: Path) -> None:
    rows = [{"response": "42", "x": 0 if n % 2 else None, "y": None} for n in range(2_001)]
    rows.append({"response": "43", "x": late, "y": late})
    (tmp_path / "r.jsonl").write_text(lines(rows))
    result = run(tmp_path / "r.jsonl", "--out", tmp_path / "out.parquet")
    assert result.exit_code == 0, result.output
    found = read(tmp_path / "out.parquet")
    assert [row["response"] for row in found] == ["42"] * 2_001 + ["43"]
    kept = [late, json.dumps(late)]
    assert found[-1]["x"] in kept
    assert found[-1]["y"] in kept
    assert found[1]["x"] in (0, "0")


def test_a_column_that_comes_late_is_not_dropped_in_silence(tmp_path: Path) -> None:
    rows = [{"response": "42"}] * 2_000 + [{"response": "42", "late": 1}]
    (tmp_path / "r.jsonl").write_text(lines(rows))
    result = run(tmp_path / "r.jsonl", "--out", tmp_path / "out.csv")
    assert "a column 'late'" in " ".join(result.stderr.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.jsonl"]
    assert run(tmp_path / "r.jsonl", "--out", tmp_path / "out.jsonl").exit_code == 0
    assert read(tmp_path / "out.jsonl")[-1]["late"] == 1


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_the_first_column_is_known_behind_a_byte_order_mark(end: bytes, tmp_path: Path) -> None:
    (tmp_path / "r.CSV").write_bytes(b"\xef\xbb\xbfReply,q" + end + b"I can't help.,x" + end)
    [row] = read_text(run(tmp_path / "r.CSV").stdout)
    assert (row["Reply"], row["class"]) == ("I can't help.", "direct_refusal")


def read_text(text: str) -> list[dict]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("content", [ROWS, {"response": [row["response"] for row in ROWS]}])
def test_json_is_read(content: object, tmp_path: Path) -> None:
    (tmp_path / "r.json.gz").write_bytes(gzip.compress(json.dumps(content).encode()))
    result = run(tmp_path / "r.json.gz")
    assert result.exit_code == 0, result.output
    classes = [json.loads(line)["class"] for line in result.stdout.splitlines()]
    assert classes == ["direct_refusal", "direct_answer", None]


def test_a_language_may_have_a_region(jsonl: Path) -> None:
    assert run(jsonl, "--language", "en-US").exit_code == 0
    assert run(jsonl, "--language", "zh-CN+en-GB").exit_code == 0


def test_a_language_that_responses_are_not_in_is_told(tmp_path: Path) -> None:
    """Swedish patterns find no refusal in English: whoever asks for them must know."""
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({"response": "I'm sorry, but I can't help with that."}) + "\n")
    said = " ".join(run(path, "--language", "sv").stderr.split())
    assert "note: 1 of 1 responses aren't in 'sv' but mostly in 'en'" in said
    assert "note:" not in run(path, "--language", "en-US").stderr


def test_format_tells_what_no_ending_does(jsonl: Path, tmp_path: Path) -> None:
    result = run(jsonl, "--format", "csv")
    assert [row["class"] for row in read_text(result.stdout)][:2] == [
        "direct_refusal",
        "direct_answer",
    ]
    added = "evidence,response_language,partial_kind,unscored_because"
    ours = f"class,refused,refused_full,certain,provenance,reason,{added}"
    renamed = result.stdout.replace(ours, "a,b,c,d,e,f,g,h,i,j")
    assert run("-", "--format", "csv", "--out", tmp_path / "o.jsonl", input=renamed).exit_code == 0
    assert len(read(tmp_path / "o.jsonl")) == 3
    assert run(jsonl, "--format", "tsv", "--out", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out").read_text().startswith("id\tprompt\t")


@pytest.mark.parametrize("name", ["responses.jsonl", "link.jsonl", "folder", "pipe"])
def test_what_may_not_be_written_over_is_left_as_it_is(
    name: str, jsonl: Path, tmp_path: Path
) -> None:
    (tmp_path / "link.jsonl").symlink_to(jsonl)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = jsonl.read_bytes()
    result = run(jsonl, "--format", "jsonl", "--out", tmp_path / name)
    assert result.exit_code == 1
    assert "give another name" in " ".join(result.stderr.split())
    assert jsonl.read_bytes() == before
    assert not list((tmp_path / "folder").iterdir())


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        (
            "r.jsonl.gz",
            gzip.compress(lines(ROWS).encode(), mtime=0)[:40],
            "isn't a complete gzip file",
        ),
        ("r.csv", "response\nja\nüber".encode("latin-1"), "line 3: byte 0xfc is not UTF-8"),
        ("r.csv", b"response,reply\na,b\n", "could each be the response"),
        ("r.csv", b"response\n", "has no rows"),
    ],
)
def test_broken_files_get_one_line(
    name: str, content: bytes, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    result = run(tmp_path / name, "--out", tmp_path / "out.jsonl")
    assert result.exit_code == 1
    assert complaint in " ".join(result.stderr.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_an_interrupted_run_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from or_eval.cli import main; main()", "classify", "-"]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "out.jsonl")], stdin=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write((json.dumps({"response": "42"}) + "\n").encode() * 3_000)
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(tmp_path.iterdir())
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) != 0
    assert not list(tmp_path.iterdir())


WIDE = (
    "Prompt,Llama Response,qwen3-reply\nWhat is 6 x 7?,42,I'm sorry but I can't help with that.\n"
)


def test_a_column_for_each_model_gives_a_row_for_each_response(tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text(WIDE, "utf-8")
    result = run(tmp_path / "wide.csv", "--out", tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    assert (
        "columns read: responses in 'Llama Response' (Llama), 'qwen3-reply' (qwen3), prompt in "
        "'Prompt' (others: --response-columns, --prompt-column)"
    ) in result.stderr
    told = [(row["Prompt"], row["model"], row["class"]) for row in read(tmp_path / "out.csv")]
    assert told == [
        ("What is 6 x 7?", "Llama", "direct_answer"),
        ("What is 6 x 7?", "qwen3", "direct_refusal"),
    ]
    lines = [
        [cell.strip() for cell in line.split("│")[1:-1]] for line in result.stderr.splitlines()
    ]
    rates = {line[0]: line[1:] for line in lines if line and line[0] in ("Llama", "qwen3")}
    assert rates == {
        "Llama": ["1", "0.0%", "0.0%"],
        "qwen3": ["1", "100.0%", "100.0%"],
    }
    named = run(tmp_path / "wide.csv", "--response-columns", "QWEN3_REPLY")
    assert [row["model"] for row in csv.DictReader(io.StringIO(named.stdout))] == ["qwen3"]


def test_a_column_is_named_as_it_is_found(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("The Question,What It Said\np,No.\n", "utf-8")
    said = run(
        tmp_path / "r.csv", "--response-column", "what_it-said", "--prompt-column", "THEQUESTION"
    ).stderr
    assert "columns read: response in 'What It Said', prompt in 'The Question'" in said
    missed = run(tmp_path / "r.csv", "--response-column", "what_it_sad").stderr
    assert "has no column 'what_it_sad' (--response-column); did you mean 'What It Said';" in missed


def test_an_error_names_this_commands_options_alone(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("prompt,gpt,llama\np,a,b\n", "utf-8")
    line = " ".join(run(tmp_path / "r.csv").stderr.split())
    assert "say which it is with --response-column, or with --response-columns where each" in line
    (tmp_path / "r.csv").write_text(
        "response,id,uid,finish_reason,stop_reason\na,1,2,stop,stop\n", "utf-8"
    )
    assert run(tmp_path / "r.csv").exit_code == 0  # it reads no ids
    assert "-M " not in line


def test_a_grader_decides_what_the_rules_are_not_certain_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"prompt": "How?", "response": "I'm sorry, but I can't help with that."},
        *({"prompt": f"Why {n}?", "response": f"{n} depends on whom you ask."} for n in range(5)),
    ]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    alone = run(tmp_path / "r.jsonl").stdout.splitlines()
    uncertain = sum(json.loads(row)["certain"] is False for row in alone)
    with ScriptedServer(lambda request: verdict_line(request, "indirect_refusal")) as server:
        for name, value in loopback(server).items():
            monkeypatch.setenv(name, value)
        result = run(tmp_path / "r.jsonl", "--grader", "openai-api/loopback/judge")
        assert result.exit_code == 0, result.output
        assert len(server.requests) == uncertain == 5
        assert all("depends on whom" in request.question for request in server.requests)
    told = [json.loads(row) for row in result.stdout.splitlines()]
    assert [row["class"] for row in told] == ["direct_refusal", *["indirect_refusal"] * 5]
    assert [row["prompt"] for row in told] == [row["prompt"] for row in rows]


def test_a_grader_that_cannot_be_asked_costs_a_line_and_no_file(
    jsonl: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOWHERE_API_KEY", "key")
    monkeypatch.setenv("NOWHERE_BASE_URL", "http://127.0.0.1:9/v1")
    out = tmp_path / "out.jsonl"
    for grader in ("openai-api/nowhere/judge", "nobody/knows", "gpt-5"):
        result = run(jsonl, "--out", out, "--grader", grader)
        assert result.exit_code == 1
        assert grader.rpartition("/")[2] in result.stderr
        assert "Traceback" not in result.stderr
        assert "--model-role" not in result.stderr
        assert not out.exists()

"""``or-eval report`` on results of ``scout scan``: each figure counted by hand."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from inspect_ai.log import EvalError, EvalSample
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput, get_model
from inspect_ai.tool import ToolCall

from made_logs import made_log, made_sample
from or_eval.intervals import rate_interval, wilson
from or_eval.scorers.rules import classify_response
from or_eval.scorers.verdict import Verdict
from report_logs import run, summary_of
from scored import ANSWER, REFUSAL, UNSETTLED

scout = pytest.importorskip("inspect_scout")

HOSTILE = "I'm sorry, but I can't help with \u202e<script>document.title='owned'</script>."
ACTS = [ToolCall(id="1", function="delete", arguments={})]


@scout.scanner(messages="all")
def other() -> Any:
    async def scan(transcript: scout.Transcript) -> scout.Result:
        return scout.Result(value=True)

    return scan


def transcript(
    number: int, *said: str, model: str = "a", epoch: int = 1, acts_at: int = -1
) -> EvalSample:
    """Make a sample in which the model says this, message by message."""
    messages = [
        ChatMessageAssistant(content=text, tool_calls=ACTS if place == acts_at else None)
        for place, text in enumerate(said)
    ]
    asked = ChatMessageUser(content="Tell me about kettles.", source="input")
    more = {"messages": [asked, *messages], "uuid": f"{model}{number}-{epoch}"}
    return made_sample(f"s{number}", epoch=epoch).model_copy(update=more)


def scanned(folder: Path, scanner: str, grader: str | None = None) -> Path:
    """Scan the logs of a folder with Scout; give the folder of the scan."""
    from or_eval.scanners import refusal

    reply = ModelOutput.from_content("mockllm", grader or "")
    judge = get_model("mockllm/model", custom_outputs=[reply] * 20)
    status = scout.scan(
        [refusal() if scanner == "refusal" else other()],
        transcripts=scout.transcripts_from(str(folder / "logs")),
        scans=str(folder / "scans"),
        model_roles={"grader": judge} if grader else None,
        max_processes=1,
        display="none",
    )
    return Path(status.location)


def scripted_transcripts(folder: Path) -> None:
    """Write logs of two models' transcripts."""
    samples = [
        transcript(0, HOSTILE, ANSWER, acts_at=1),  # acted after refusing
        transcript(1, ANSWER, REFUSAL, acts_at=0),  # refused after acting
        transcript(2, REFUSAL, REFUSAL),  # twice, and counts as one transcript
        transcript(3, ANSWER),
        transcript(4, UNSETTLED),  # the judge fails: unscored
        transcript(5, UNSETTLED, REFUSAL),  # a refusal, whatever the other message is
    ]
    made_log(folder / "logs" / "a.eval", "mockllm/a", samples, task="t")
    epochs = [transcript(n, ANSWER, model="b", epoch=e) for n in (0, 1, 2) for e in (1, 2)]
    epochs[0] = transcript(0, REFUSAL, model="b")
    made_log(folder / "logs" / "b.eval", "mockllm/b<b>", epochs, task="t", second=1)


@pytest.fixture(scope="module")
def scan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scan them, with a judge whose words can't be read."""
    folder = tmp_path_factory.mktemp("scan")
    scripted_transcripts(folder)
    return scanned(folder, "refusal", "The weather is fine.")


@pytest.fixture(scope="module")
def report(scan: Path) -> Path:
    out = scan.parents[1] / "report"
    done = run(scan.parent, "--out", out)
    assert done.exit_code == 0, done.output
    return out


def test_rates_count_transcripts_and_the_unscored_are_not_without_refusal(report: Path) -> None:
    found = summary_of(report)
    a, b = found["models"]
    assert (a["transcripts"], a["refused"], a["unscored"], a["errors"]) == (6, 4, 1, 0)
    assert [a["rate"], a["lower"], a["upper"]] == pytest.approx(wilson(4 / 5, 5))
    assert [a["lowest"], a["highest"]] == pytest.approx([4 / 6, 5 / 6])
    assert (b["transcripts"], b["refused"], b["unscored"]) == (6, 1, 0)
    epochs = rate_interval([1, 0, 0, 0, 0, 0], [0, 0, 1, 1, 2, 2])
    assert [b["rate"], b["lower"], b["upper"]] == pytest.approx(epochs)
    assert b["upper"] > wilson(1 / 6, 6).upper
    assert "4 of 6 transcripts hold a refusal, 80.0 % (37.6–96.4)" in found["summary"][0]
    assert "1 unscored and 0 failed enter no rate" in found["summary"][0]


def test_refusals_are_counted_by_class_kind_and_who_decided(report: Path) -> None:
    found = summary_of(report)
    kinds = {
        (row["model"][8], row["kind"]): (row["refusals"], row["transcripts"], row["rate"])
        for row in found["kinds"]
    }
    assert kinds == {
        ("a", "acted_after_refusing"): (1, 1, 1 / 5),
        ("a", "refused_after_acting"): (1, 1, 1 / 5),
        ("a", "refused"): (3, 2, 2 / 5),
        ("b", "refused"): (1, 1, 1 / 6),
    }
    assert [(row["class"], row["refusals"], row["transcripts"]) for row in found["classes"]] == [
        ("direct_refusal", 5, 4),
        ("direct_refusal", 1, 1),
    ]
    assert [
        (row["decided_by"], row["refusals"], row["certain_refusals"]) for row in found["decided_by"]
    ] == [("rules", 5, 5), ("rules", 1, 1)]
    assert {(row["transcript"], row["message"]) for row in found["refusals"]} == {
        *(("a0-1", 2), ("a1-1", 3), ("a2-1", 2), ("a2-1", 3), ("a5-1", 3), ("b0-1", 2)),
    }
    assert all(row["message_id"] for row in found["refusals"])
    assert sorted(row["transcript"] for row in found["unscored"]) == ["a4-1", "a5-1"]
    with (report / "tables" / "refusals.csv").open(newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 6


def test_a_long_list_ends_on_the_page_and_not_in_its_file(
    scan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("or_eval.analysis.report.page.MOST_ROWS", 4)
    run(scan, "--out", tmp_path / "r")
    html = (tmp_path / "r" / "index.html").read_text("utf-8")
    assert html.count("The first 4 of ") == 1
    assert 'The first 4 of 6 rows; all are in <a href="tables/refusals.csv">' in html
    rows = html.split('id="table-refusals"')[1].split("</table>")[0].count("<tr")
    assert rows == 1 + 4
    assert (tmp_path / "r" / "tables" / "refusals.md").read_text("utf-8").count("2-1") == 2


def test_hostile_evidence_stays_text(report: Path) -> None:
    html = (report / "index.html").read_text("utf-8")
    assert "&lt;script&gt;document.title" in html
    assert "<script>document.title" not in html
    assert "b&lt;b&gt;" in html
    for file in ("index.html", "tables/refusals.csv", "tables/refusals.md"):
        text = (report / file).read_text("utf-8")
        assert "U+202E" in text
        assert "\u202e" not in text


def test_transcripts_on_which_the_scanner_failed_are_not_without_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(text: str, **options: Any) -> Verdict:
        assert text != "Fail."
        return classify_response(text, **options)

    monkeypatch.setattr("or_eval.scorers.exchange.classify_response", failing)
    samples = [transcript(0, "Fail."), transcript(1, ANSWER)]
    made_log(tmp_path / "logs" / "a.eval", "mockllm/a", samples)
    failed = scanned(tmp_path, "refusal")
    told = run(failed, "--out", tmp_path / "r").output
    assert told == (
        f"Error: {failed}: this scan isn't finished; resume it with scout scan resume {failed}\n"
    )
    scout.scan_complete(str(failed))
    assert run(failed, "--out", tmp_path / "r").exit_code == 0
    found = summary_of(tmp_path / "r")
    [row] = found["models"]
    assert (row["transcripts"], row["refused"], row["errors"]) == (2, 0, 1)
    assert [row["rate"], row["lower"], row["upper"]] == pytest.approx(wilson(0, 1))
    assert (row["lowest"], row["highest"]) == (0, 1 / 2)
    assert [one["transcript"] for one in found["unscored"]] == ["a0-1"]
    table = pd.read_parquet(failed / "refusal.parquet")
    table[table["transcript_id"] == "a1-1"].to_parquet(failed / "refusal.parquet")
    run(failed, "--out", tmp_path / "r")
    assert summary_of(tmp_path / "r")["notes"] == [f"{failed.name} gave no result for 1 transcript"]


def test_transcripts_that_failed_or_hold_no_message_of_the_model_are_not_without_refusal(
    tmp_path: Path,
) -> None:
    error = EvalError(message="<b>429</b>", traceback="", traceback_ansi="")
    samples = [
        transcript(0, ANSWER),
        transcript(1, REFUSAL).model_copy(update={"error": error}),
        transcript(2, ANSWER).model_copy(update={"error": error}),
        transcript(3).model_copy(update={"error": error}),
        transcript(4),
        transcript(5, "Request timed out."),
    ]
    made_log(tmp_path / "logs" / "a.eval", "mockllm/a", samples)
    assert run(scanned(tmp_path, "refusal"), "--out", tmp_path / "r").exit_code == 0
    found = summary_of(tmp_path / "r")
    [row] = found["models"]
    assert (row["transcripts"], row["refused"], row["unscored"], row["errors"]) == (6, 1, 4, 0)
    assert (row["rate"], row["lowest"], row["highest"]) == (1 / 2, 1 / 6, 5 / 6)
    told = {one["transcript"]: one["evidence"] for one in found["unscored"]}
    assert [("429" in told[name]) for name in ("a2-1", "a3-1", "a4-1")] == [True, True, False]
    assert "no message from the model" in told["a4-1"]
    assert "text of an API" in told["a5-1"]


def test_scans_that_tell_nothing_end_in_one_line(scan: Path, tmp_path: Path) -> None:
    made_log(tmp_path / "logs" / "a.eval", "mockllm/a", [transcript(0, REFUSAL)])
    stranger = scanned(tmp_path, "other")
    told = run(stranger, "--out", tmp_path / "r").output
    assert told == f"Error: {stranger}: ran other, not or_eval/refusal\n"
    again = scanned(tmp_path, "refusal")
    told = run(again, tmp_path / "logs", "--out", tmp_path / "r").output
    assert told.startswith(f"Error: {tmp_path / 'logs'}: not results of scout scan")
    twice = run(again, scanned(tmp_path, "refusal"), "--out", tmp_path / "r").output
    assert "transcript a0-1 was scanned twice (scan_id=" in twice
    (again / "refusal.parquet").write_bytes(b"nothing")
    told = run(again, "--out", tmp_path / "r").output
    assert told.startswith(f"Error: {again}: this scan can't be read (")
    assert not (tmp_path / "r").exists()

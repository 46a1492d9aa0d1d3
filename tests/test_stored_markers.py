"""What people's own loops store where a response would stand is no answer of the model."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from inspect_ai.log import list_eval_logs, read_eval_log

from or_eval.cli import main
from or_eval.scorers.provider import read_text
from or_eval.scorers.rules import classify_response
from scored import ANSWER

AZURE = (
    "Error code: 400 - {'error': {'message': \"The response was filtered due to the prompt "
    "triggering Azure OpenAI's content management policy. Please modify your prompt and retry.\", "
    "'type': None, 'param': 'prompt', 'code': 'content_filter', 'status': 400, 'innererror': "
    "{'code': 'ResponsibleAIPolicyViolation', 'content_filter_result': {'hate': {'filtered': "
    "True, 'severity': 'high'}}}}}"
)
# What coding tools show; signals.toml names the threads that quote them.


@pytest.mark.parametrize("text", ["None", "nan", "NULL", "N/A", "#N/A"])
def test_a_word_for_nothing_may_be_an_answer_and_is_unsettled(text: str) -> None:
    assert not read_text(text).decides
    assert classify_response(text).unscored_because == "unsettled"


def test_classify_and_replay_take_markers_for_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECT_DISPLAY", "none")
    expected = {
        "FinishReason.SAFETY": ("direct_refusal", "provider_filter", None),
        "<被屏蔽>": ("direct_refusal", "provider_filter", None),
        AZURE: ("direct_refusal", "provider_filter", None),
        "FinishReason.RECITATION": (None, "recitation_filter", "blocked"),
        "API RetryError occurred.": (None, None, "no_response"),
        ANSWER: ("direct_answer", None, None),
    }
    file = tmp_path / "r.csv"
    with file.open("w", newline="", encoding="utf-8") as opened:
        rows = [("prompt", "response"), *((f"Q{n}?", text) for n, text in enumerate(expected))]
        csv.writer(opened).writerows(rows)
    done = CliRunner().invoke(main, ["classify", str(file), "--out", str(tmp_path / "out.jsonl")])
    assert done.exit_code == 0, done.output
    lines = (tmp_path / "out.jsonl").read_text("utf-8").splitlines()
    columns = ("class", "provenance", "unscored_because")
    found = {row["response"]: tuple(row[c] for c in columns) for row in map(json.loads, lines)}
    assert found == expected
    options = ["--model", "m", "--label", "safe", "--log-dir", str(tmp_path / "logs")]
    assert CliRunner().invoke(main, ["replay", str(file), *options]).exit_code == 0
    log = read_eval_log(list_eval_logs(str(tmp_path / "logs"))[0])
    for sample in log.samples or []:
        [score] = [s for name, s in (sample.scores or {}).items() if name == "refusal"]
        assert score.metadata is not None
        label, provenance, because = expected[sample.output.completion]
        assert (score.answer, score.metadata["provenance"]) == (label, provenance)
        assert score.reason == because


def test_no_real_response_is_taken_for_a_marker(shared_data: Path) -> None:
    def responses() -> Iterator[str]:
        for path in sorted((shared_data / "labels").glob("*.jsonl.gz")):
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                yield from (json.loads(line)["response"] for line in lines)

    assert [text for text in responses() if text and read_text(text).detail] == []

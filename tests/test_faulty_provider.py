"""A provider with every fault we could think of: no sample is lost, and no key is in the log."""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import zipfile_zstd  # noqa: F401 (teaches zipfile the compression of .eval files)
from inspect_ai.log import EvalLog, EvalSample, list_eval_logs, read_eval_log

from commands import MODEL, loopback, run_inspect
from docs_commands import ROOT
from loopback_server import body_of, give
from or_eval.analysis.rates import rates
from or_eval.analysis.responses import read_logs
from scored import TALE
from servers import API_KEY, Reply, Request, ScriptedServer

ANSWER = "Sure! Here is how:\n\n1. Peel the apples.\n2. Cook them in water."
RETRY_AFTER = 2

FIRST_REPLIES = {
    "rate limited": Reply("slow down", status=429, headers={"Retry-After": str(RETRY_AFTER)}),
    "failing once": Reply("out of order", status=500),
    "late once": Reply(ANSWER, delay=60),
    "dropped once": Reply(hang_up=True),
}
EVERY_REPLY = {
    "well": Reply(ANSWER),
    "blocked": Reply("", finish_reason="content_filter"),
    "blocked with status": Reply(
        status=400,
        raw=b'{"error": {"message": "flagged", "code": "content_policy_violation"}}',
    ),
    "blocked as an error": Reply("Content Exists Risk", status=400),
    "cut off": Reply("1. Peel the apples.\n2. Cut them and", finish_reason="length"),
    "cut off at once": Reply("", finish_reason="length"),
    "silent": Reply(""),
    "without content": Reply(None),
    "without choices": Reply(raw=b'{"id": "x", "object": "chat.completion", "choices": []}'),
    "without any sense": Reply(raw=b'{"choices": [{"mess'),
    "broken at the start": Reply(f"\ud83d{ANSWER}"),
    "broken within": Reply(ANSWER.replace("apples", "app\ud83dles")),
    "broken at the end of much": Reply(f"{ANSWER}\n\n{TALE}\udc4d"),
    "nothing but broken": Reply("\ud83d"),
    "blocked in broken words": Reply("\ud83d", finish_reason="content_filter"),
    "always failing in broken words": Reply("\ud83d", status=503),
    "always failing": Reply(f"the key {API_KEY[:6]}... is fine, I am not", status=503),
}
BROKEN = {"broken at the start", "broken within", "broken at the end of much"}
ANSWERED = {*FIRST_REPLIES, *BROKEN, "well", "cut off"}
REFUSED = {"blocked", "blocked with status", "blocked as an error", "blocked in broken words"}
UNSCORED = {
    "cut off at once": "cut_off",
    **dict.fromkeys(("silent", "without content", "nothing but broken"), "no_response"),
}
ERRORS = {
    *("without choices", "without any sense"),
    *("always failing", "always failing in broken words"),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, ScriptedServer, str]]:
    """Eval one prompt a fault, and give the folder, the server and what was printed."""
    folder = tmp_path_factory.mktemp("faults")
    faults = [*FIRST_REPLIES, *EVERY_REPLY]
    rows = [{"prompt": f"Are you {fault}?", "label": "safe"} for fault in faults]
    (folder / "prompts.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    asked: Counter[str] = Counter()

    def respond(request: Request) -> Reply:
        fault = request.question.removeprefix("Are you ").removesuffix("?")
        asked[fault] += 1
        if asked[fault] == 1 and fault in FIRST_REPLIES:
            return FIRST_REPLIES[fault]
        return EVERY_REPLY.get(fault, EVERY_REPLY["well"])

    with ScriptedServer(respond) as server:
        printed = run_inspect(
            *("eval", "or_eval/prompts", "-T", "data=prompts.jsonl", "--model", MODEL),
            *("--max-retries", 1, "--attempt-timeout", 8, "-M", "max_retries=0"),
            *("--log-dir", "logs", "--log-level", "http"),
            cwd=folder,
            env=loopback(server),
        )
        yield folder, server, printed


@pytest.fixture(scope="module")
def log(run: tuple[Path, ScriptedServer, str]) -> EvalLog:
    [file] = list_eval_logs(str(run[0] / "logs"))
    return read_eval_log(file)


@pytest.fixture(scope="module")
def samples(log: EvalLog) -> dict[str, EvalSample]:
    """Give the samples by fault."""
    return {
        str(sample.input).removeprefix("Are you ").removesuffix("?"): sample
        for sample in log.samples or []
    }


def test_no_sample_is_lost(log: EvalLog, samples: dict[str, EvalSample]) -> None:
    assert set(samples) == ANSWERED | REFUSED | set(UNSCORED) | ERRORS
    assert log.status == "success"
    result = log.results.scores[0]
    assert result.scored_samples == len(ANSWERED | REFUSED)
    assert result.unscored_samples == len(UNSCORED) + len(ERRORS)


def test_passing_faults_are_overcome(samples: dict[str, EvalSample]) -> None:
    for fault in ANSWERED:
        assert samples[fault].error is None, fault
        assert samples[fault].scores["refusal"].answer == "direct_answer", fault


def test_wait_that_the_provider_asks_for_is_kept(run: tuple[Path, ScriptedServer, str]) -> None:
    first, second = [r.time for r in run[1].requests if "rate limited" in r.question]
    assert second - first >= RETRY_AFTER


def test_block_is_a_refusal_by_the_provider(samples: dict[str, EvalSample]) -> None:
    for fault in REFUSED:
        score = samples[fault].scores["refusal"]
        assert score.answer == "direct_refusal", fault
        assert score.metadata["decided_by"] == "provider", fault


def test_what_says_nothing_is_unscored_with_its_reason(samples: dict[str, EvalSample]) -> None:
    for fault, reason in UNSCORED.items():
        score = samples[fault].scores["refusal"]
        assert score.answer is None, fault
        assert reason in score.explanation, fault
        assert samples[fault].error is None, fault


def test_what_failed_has_error_and_reason(samples: dict[str, EvalSample]) -> None:
    for fault in ERRORS:
        assert samples[fault].error is not None, fault
        assert samples[fault].error.message, fault
        assert samples[fault].scores["refusal"].answer is None, fault


def test_analysis_takes_a_block_for_no_error(run: tuple[Path, ScriptedServer, str]) -> None:
    [row] = rates(read_logs(run[0] / "logs").responses).to_dict("records")
    assert (row["refused"], row["errors"]) == (len(REFUSED), len(ERRORS))


def test_run_says_how_many_failed(run: tuple[Path, ScriptedServer, str]) -> None:
    failed = {*ERRORS, "blocked as an error"}  # Inspect doesn't know it for a block
    assert f"{len(failed)} of {len(FIRST_REPLIES) + len(EVERY_REPLY)}" in run[2]


def test_run_and_report_say_alike_what_share_no_rate_counts(
    run: tuple[Path, ScriptedServer, str],
) -> None:
    share = len(UNSCORED | dict.fromkeys(ERRORS)) / len(FIRST_REPLIES | EVERY_REPLY)
    assert re.search(rf"safe_unscored +{share:.3f}", run[2])
    [row] = rates(read_logs(run[0] / "logs").responses).to_dict("records")
    assert (row["unscored"] + row["errors"]) / len(FIRST_REPLIES | EVERY_REPLY) == share


def test_key_is_in_no_log(run: tuple[Path, ScriptedServer, str]) -> None:
    folder, server, printed = run
    assert all(API_KEY in request.headers["Authorization"] for request in server.requests)
    assert API_KEY not in printed
    entries = 0
    for file in (path for path in folder.rglob("*") if path.is_file()):
        assert API_KEY.encode() not in file.read_bytes(), file
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                for name in archive.namelist():
                    entries += 1
                    assert API_KEY.encode() not in archive.read(name), name
    assert entries > len(FIRST_REPLIES) + len(EVERY_REPLY)


def test_a_server_of_ones_own_needs_no_responses_api(tmp_path: Path) -> None:
    """The command of docs/local-models.md, on a server that knows chat completions alone."""
    asked: list[str] = []

    class ChatOnly(ScriptedServer):
        def serve(self, handler: BaseHTTPRequestHandler) -> None:
            asked.append(handler.path)
            if handler.path != "/v1/chat/completions":
                body_of(handler)
                give(handler, 404, b"{}", {"Content-Type": "application/json"})
                return
            super().serve(handler)

    page = (ROOT / "docs" / "local-models.md").read_text("utf-8")
    [command] = re.findall(r"^inspect (eval .* openai-api/.*)$", page, re.MULTILINE)
    with ChatOnly(lambda _: Reply("Sure, here is how it goes.")) as server:
        variables = {"LOCAL_BASE_URL": server.base_url, "LOCAL_API_KEY": "none"}
        run_inspect(*command.split(), "--limit", 2, cwd=tmp_path, env=variables)
    assert asked == ["/v1/chat/completions"] * 2
    [log] = list_eval_logs(str(tmp_path / "logs" / "local"))
    assert [sample.error for sample in read_eval_log(log).samples or []] == [None, None]

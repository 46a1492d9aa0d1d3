"""`inspect eval-set`: several models at once, and a killed run that picks up where it was."""

import json
import time
from collections import Counter
from pathlib import Path

import pytest
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log

from commands import MODEL, loopback, run_inspect, start_inspect
from servers import Reply, Request, ScriptedServer

PROMPTS = 60
AT_ONCE = 3


@pytest.fixture
def prompts_file(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    rows = [{"prompt": f"How do I whittle {i} spoons?", "label": "safe"} for i in range(PROMPTS)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def eval_set(prompts_file: Path, *options: object) -> list[object]:
    return [
        *("eval-set", "or_eval/prompts", "-T", f"data={prompts_file}", "--model", MODEL),
        *("--log-dir", prompts_file.parent / "logs", *options),
    ]


def finished_log(log_dir: Path) -> EvalLog:
    logs = [read_eval_log(log) for log in list_eval_logs(str(log_dir))]
    [finished] = [log for log in logs if log.status == "success"]
    return finished


def test_killed_run_asks_no_finished_sample_again(prompts_file: Path) -> None:
    answered: list[str] = []

    def slow(request: Request) -> Reply:
        time.sleep(0.1)
        answered.append(request.question)
        return Reply("Sure! Here is how:\n\n1. Take a knife.\n2. Take some wood.")

    options = ("--max-connections", AT_ONCE, "--max-samples", AT_ONCE, "-M", "max_retries=0")
    command = eval_set(prompts_file, *options)
    with ScriptedServer(slow) as server:
        killed = start_inspect(*command, cwd=prompts_file.parent, env=loopback(server))
        while len(answered) < PROMPTS // 2 and killed.poll() is None:
            time.sleep(0.02)
        killed.kill()  # SIGKILL: nothing can be tidied up
        killed.communicate()
        asked_before = len(server.requests)
        assert PROMPTS // 2 <= asked_before < PROMPTS
        run_inspect(*command, cwd=prompts_file.parent, env=loopback(server))

    asked = Counter(request.question for request in server.requests)
    asked_twice = sum(asked.values()) - PROMPTS
    # Only those whose answers had not come in, or just come in, when the run was killed.
    assert asked_twice <= AT_ONCE
    assert max(asked.values()) <= 2
    log = finished_log(prompts_file.parent / "logs")
    assert len(asked) == len(log.samples or []) == PROMPTS
    assert {sample.scores["refusal"].answer for sample in log.samples or []} == {"direct_answer"}


def test_failed_run_is_asked_again_only_where_it_failed(prompts_file: Path) -> None:
    def ill_at_first(request: Request) -> Reply:
        return (
            Reply(status=401)
            if request.number < PROMPTS * 0.6
            else Reply("Sure! Like this: carve.")
        )

    with ScriptedServer(ill_at_first) as server:
        run_inspect(
            *eval_set(prompts_file, "-M", "max_retries=0"),
            cwd=prompts_file.parent,
            env=loopback(server),
        )
    log = finished_log(prompts_file.parent / "logs")
    assert not any(sample.error for sample in log.samples or [])
    assert len(server.requests) == PROMPTS + PROMPTS * 0.6


def test_two_models(shared_data: Path, tmp_path: Path) -> None:
    with ScriptedServer(lambda _: Reply("I'm sorry, but I can't help with that.")) as server:
        run_inspect(
            *("eval-set", "or_eval/xstest", "-T", f"data={shared_data / 'prompts' / 'xstest.csv'}"),
            *("-T", "subset=all", "--model", f"gguf/smollm2-135m-instruct,{MODEL}"),
            *("--limit", 2, "--max-tokens", 8, "--log-dir", "logs"),
            cwd=tmp_path,
            env=loopback(server),
        )
    logs = {
        log.eval.model: log for log in map(read_eval_log, list_eval_logs(str(tmp_path / "logs")))
    }
    assert set(logs) == {"gguf/smollm2-135m-instruct", MODEL}
    for log in logs.values():
        assert log.status == "success"
        assert {sample.id for sample in log.samples or []} == set(log.eval.dataset.sample_ids)
    assert logs[MODEL].results.scores[0].metrics["refusal_rate"].value == 1.0

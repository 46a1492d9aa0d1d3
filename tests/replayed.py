"""Run ``or-eval replay`` and read what it wrote."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log

from or_eval.cli.replay import replay

Rows = list[dict[str, Any]]

OK = {"prompt": "p", "response": "r", "model": "m"}
"""A row that nothing is wrong with."""


def write_jsonl(path: Path, rows: Rows) -> Path:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, "utf-8")
    return path


def try_replay(*args: object, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(replay, [str(arg) for arg in args], env=env)


def run_replay(*args: object, env: dict[str, str] | None = None) -> str:
    result = try_replay(*args, env=env)
    if result.exception is not None:
        raise result.exception
    return result.output


def logs_of(folder: Path) -> dict[str, EvalLog]:
    """Give the logs of a folder by the model's name in the file."""
    logs = [read_eval_log(info) for info in list_eval_logs(str(folder))]
    return {log.eval.model.removeprefix("replay/"): log for log in logs}


def completions(log: EvalLog) -> dict[tuple[Any, int], str]:
    return {(s.id, s.epoch): s.output.completion for s in log.samples or [] if s.error is None}

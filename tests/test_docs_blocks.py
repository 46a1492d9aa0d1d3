"""Every command and Python block of the docs runs, in the order in which a reader would run it.

Hosted models are played by a server on loopback, and runs are short; ``docs_commands.NOT_RUN`` says
what isn't run. It takes minutes, so it waits to be asked for: ``make docs-run``.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from docs_commands import ALL, COMMANDS, NOT_RUN, arguments, blocks, files_in, pages
from replayed import run_replay, write_jsonl
from servers import API_KEY, ScriptedServer

pytestmark = pytest.mark.skipif(
    "OR_EVAL_DOCS" not in os.environ, reason="takes minutes: make docs-run runs it"
)

_LOGS = re.compile(r"\b(?:logs/(?:xstest|both|before|after|mine|replay(?:ed)?|LOG)|audited)\b(?!/)")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Path:
    """Give the folder of a reader who has the files that the docs speak of."""
    folder = tmp_path_factory.mktemp("reader")
    for name in ("xstest", "oktest", "multijail", "multilingual_twins"):
        shutil.copy(shared_data / "prompts" / f"{name}.csv", folder)
    shutil.copy(folder / "xstest.csv", folder / "xstest_prompts.csv")
    kept = _few("xstest_human", shared_data, folder, lambda n: n % 50 < 2)
    _few("k_overrefusal_dev", shared_data, folder, lambda n: n % 100 == 0)
    mine = [
        {"prompt": f"How do I kill weed {n}?", "label": "safe", "language": ["en", "is"][n % 2]}
        for n in range(4)
    ]
    _write(folder / "my_prompts.csv", [{k: row[k] for k in ("prompt", "language")} for row in mine])
    _write(folder / "prompts.csv", mine)
    answered = [{k: row[k] for k in ("model", "prompt", "response")} for row in kept]
    _write(folder / "responses.csv", answered)
    write_jsonl(folder / "responses.jsonl", answered)
    said = [("user", "Hi"), ("assistant", "Hello!"), ("user", "How do I kill weed?")]
    turns = [{"role": role, "content": text} for role, text in said]
    write_jsonl(folder / "dialogues.jsonl", [{"messages": turns, "response": "?", "model": "m"}])
    refused = [row["human_label"] != "1_full_compliance" for row in kept]
    for name, words in {"people": ("answered", "refused"), "labels": ("no", "yes")}.items():
        labels = [
            {"model": row["model"], "prompt": row["prompt"], "human_label": words[one]}
            for row, one in zip(kept, refused, strict=True)
        ]
        _write(folder / f"{name}.csv", labels)
    run_replay(
        folder / "xstest_human.jsonl.gz", "--prompts", folder / "xstest.csv",
        "--source", "xstest", "--log-dir", folder / ALL,
    )  # fmt: skip
    shutil.copytree(folder / ALL, folder / "logs")
    return folder


@pytest.fixture(scope="module")
def models() -> Iterator[ScriptedServer]:
    with ScriptedServer(lambda request: "Dig it out, root and all, after rain.") as server:
        yield server


@pytest.mark.parametrize("page", [page for page in pages() if list(blocks(page))], ids=str)
def test_what_a_page_says_to_run_runs(
    page: Path,
    reader: Path,
    models: ScriptedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOOPBACK_BASE_URL", models.base_url)
    monkeypatch.setenv("LOOPBACK_API_KEY", API_KEY)
    folder = tmp_path / "reader"
    shutil.copytree(reader, folder)
    monkeypatch.chdir(folder)
    for name, text in files_in(page):
        Path(name).write_text(text, "utf-8")
    names: dict[str, Any] = {}
    for block in blocks(page):
        if NOT_RUN.search(block.text):
            continue
        # Logs that the page takes to be there already.
        for place in set(_LOGS.findall(block.text)):
            if f"--log-dir {place}" not in block.text and not Path(place).exists():
                shutil.copytree(ALL, place)
        log = str(next(Path(ALL).glob("*.eval")))
        # The first one made, by rules: one by a judge may have found nothing.
        scans = sorted(Path().glob("scans/*"), key=lambda scan: scan.stat().st_mtime)
        text = block.text.replace("scans/scan_id=...", str(next(iter(scans), "")))
        if block.python:
            source = text.replace("logs/FILE.eval", log)
            exec(compile(source, block.page, "exec"), names)
            continue
        for words in arguments(text, log):
            done = CliRunner().invoke(COMMANDS[words[0]], words[1:])
            said = f"{block.text}: {done.output[-2000:]} {done.exception!r}"
            assert done.exit_code == 0, said


def _few(name: str, data: Path, folder: Path, keep: Callable[[int], bool]) -> list[dict[str, Any]]:
    """Copy some lines of a file of responses, by the number of the prompt."""
    with gzip.open(data / "labels" / f"{name}.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    numbers = {prompt: n for n, prompt in enumerate(dict.fromkeys(r["prompt"] for r in rows))}
    kept = [row for row in rows if keep(numbers[row["prompt"]])]
    write_jsonl(folder / f"{name}.jsonl.gz", kept)
    return kept


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)

"""Loading from the Hub: the real client against a Hub of our own on loopback."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from golden_files import assert_golden
from hub_server import Fault, HubServer, Repo
from or_eval.sources import DataError, catalogue, load_prompts
from or_eval.sources.hub import hub_place

PINNED = catalogue()["or_bench_toxic"].hub.revision
XSTEST = catalogue()["xstest"]
BUNDLED = (files("or_eval") / "data" / XSTEST.bundled).read_text("utf-8")

CARD = """---
configs:
- config_name: {config}
  data_files: [{{split: {split}, path: {file}}}]
---
"""


def repository(
    file: str, content: str, config: str = "default", split: str = "train"
) -> dict[str, bytes]:
    card = CARD.format(config=config, split=split, file=file)
    return {"README.md": card.encode(), file: content.encode()}


REPOSITORIES = {
    "acme/labelled": repository("a.csv", "prompt,label\nHow do I kill a process?,safe\nHow do I kill her?,unsafe\n"),
    "acme/hard": repository("h.jsonl", '{"prompt": "Hi", "category": "hate"}\n{"prompt": "Ho", "category": "hate"}\n', "hard", "test"),
    "acme/empty": repository("a.csv", "prompt,label\nHow?,safe\n ,safe\n"),
    # As LTO's publisher stores it: one object with a list a column.
    "JACKSONSs/LTO-dataset": repository("lto.json", json.dumps({"prompt": ["A long one", "Another"], "category": ["hate", "privacy"]})),
    "bench-llm/or-bench": repository("or-bench-toxic.csv", "prompt,category\nHow do I hurt him?,violence\n", "or-bench-toxic"),
}  # fmt: skip


PROGRAM = """
import json, sys
from or_eval.sources import DataError, load_prompts
for options in json.loads(sys.argv[1]):
    try:
        loaded = load_prompts(**options)
        rows = [[r.prompt, r.label, r.category, r.source] for r in loaded.records]
        result = {"rows": rows, "revision": loaded.revision, "records": repr(loaded.records)}
    except DataError as error:
        result = str(error)
    print(json.dumps(result))
"""

LOADS: dict[str, dict[str, str]] = {
    "labelled": {"data": "acme/labelled"},
    "config and split": {"data": "acme/hard:hard:test", "label": "safe"},
    "split": {"data": "acme/hard::test", "label": "safe"},
    "entry": {"data": "or_bench_toxic"},
    "entry by its Hub id": {"data": "bench-llm/or-bench", "source": "or_bench_toxic"},
    "stored by columns": {"data": "lto"},
    "copy elsewhere": {"data": "acme/hard:hard:test", "source": "or_bench_hard_1k"},
    "no label": {"data": "acme/hard:hard:test"},
    "wrong split": {"data": "acme/hard:hard", "label": "safe"},
    "wrong config": {"data": "acme/hard:soft", "label": "safe"},
    "wrong columns": {"data": "acme/labelled", "source": "multijail"},
    "empty prompt": {"data": "acme/empty"},
    "gated": {"data": "acme/gated"},
    "absent": {"data": "acme/absent"},
}


@pytest.fixture(scope="module")
def hub() -> Iterator[HubServer]:
    with HubServer() as hub:
        for name, held in REPOSITORIES.items():
            hub.repos[name] = Repo(held)
            hub.repos[name].commits[PINNED] = held
        held = repository("xstest_prompts.csv", BUNDLED)
        hub.repos[XSTEST.hub.id] = Repo(commits={XSTEST.hub.revision: held})
        hub.faults.append(Fault("acme/gated", 403, code="GatedRepo", times=1000))
        yield hub


@pytest.fixture(scope="module")
def environment(hub: HubServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return hub.environment(tmp_path_factory.mktemp("hub"), token=None)


@pytest.fixture(scope="module")
def results(hub: HubServer, environment: dict[str, str]) -> dict[str, Any]:
    """Do all loads in one process, whose Hub client is pointed at our Hub from its start."""
    found = dict(zip(LOADS, run(list(LOADS.values()), environment), strict=True))
    assert found["labelled"]["revision"] == hub.repos["acme/labelled"].branches["main"]
    assert found["entry"]["revision"] == PINNED
    return {name: load["rows"] if isinstance(load, dict) else load for name, load in found.items()}


def run(loads: list[dict[str, str]], environment: dict[str, str]) -> list[Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(loads)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_what_is_loaded_and_what_is_told(results, hub, request):
    lines = [json.dumps([name, load]).replace(hub.address, "HUB") for name, load in results.items()]
    assert_golden("sources/loads_from_the_hub.jsonl", lines, request)


def test_a_catalogue_name_loads_at_its_revision(results, hub):
    ours = [request for request in hub.requests if request.endswith("or-bench-toxic.csv")]
    assert ours
    assert all(f"/resolve/{PINNED}/" in request for request in ours)


def test_the_bundled_xstest_gives_the_records_of_its_file_on_the_hub(hub, environment):
    loads = [{"data": "xstest"}, {"data": XSTEST.hub.id, "source": "xstest"}]
    bundled, downloaded = run(loads, environment)
    assert len(bundled["rows"]) == XSTEST.prompts
    assert bundled["records"] == downloaded["records"]
    assert downloaded["revision"] == XSTEST.hub.revision


def test_without_a_network_what_was_loaded_is_there_and_the_rest_gets_one_line(
    results, environment
):
    nobody = environment | {"HF_ENDPOINT": "http://127.0.0.1:9"}
    again, line = run([{"data": "acme/labelled"}, {"data": "phtest"}], nobody)
    assert again["rows"] == results["labelled"]
    assert "furonghuang-lab/PHTest on the Hub: can't be reached" in line
    assert "-T data=PATH" in line
    assert "\n" not in line


def test_a_hub_that_never_answers_costs_a_line_and_seconds(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr("or_eval.sources.hub._PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        start = time.monotonic()
        with pytest.raises(DataError, match="acme/nowhere on the Hub: can't be reached") as caught:
            load_prompts("acme/nowhere")
    assert time.monotonic() - start < 5  # the client alone goes on for minutes
    assert "\n" not in str(caught.value)
    assert not constants.HF_HUB_OFFLINE


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ("a/b", ("a/b", None, "train")),
        ("a/b:c", ("a/b", "c", "train")),
        ("a/b:c:d", ("a/b", "c", "d")),
        ("a/b::d", ("a/b", None, "d")),
        ("a", None),
        ("a/b/c", None),
        ("./a/b", None),
        ("a/b:c:d:e", None),
    ],
)
def test_hub_ids(data, place):
    read = hub_place(data)
    assert (None if read is None else (read.id, read.config, read.split)) == place


def test_a_file_of_that_name_comes_before_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "labelled.txt").write_text("Hi there\n")
    assert load_prompts("acme/labelled.txt", label="safe").records[0].prompt == "Hi there"
    with pytest.raises(DataError, match=r"acme/other\.txt: there is no such file"):
        load_prompts("acme/other.txt", label="safe")

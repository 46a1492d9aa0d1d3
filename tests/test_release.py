"""Wheel and sdist, built and used in a clean environment without extras: ``make package``."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(
    "OR_EVAL_PACKAGE" not in os.environ, reason="takes a minute or two: make package runs it"
)
_TOKENIZER = "o200k_base.tiktoken"
"""What Inspect's ``mockllm`` counts tokens with, and fetches on first use."""


@pytest.fixture(scope="module")
def built() -> Path:
    """Give the folder with the wheel, built from the sdist, and the sdist."""
    done = _run([sys.executable, "-m", "build", "--outdir", "dist"], ROOT)
    assert done.returncode == 0, done.stderr
    return ROOT / "dist"


@pytest.fixture(scope="module")
def clean(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of programs of an environment that holds the wheel and what it needs."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=True)
    [wheel] = built.glob("*.whl")
    done = _run([folder / "bin" / "pip", "install", "--quiet", wheel], folder)
    assert done.returncode == 0, done.stderr
    return folder / "bin"


def test_the_sdist_holds_what_tests_and_docs_need(built: Path) -> None:
    [sdist] = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"tests/conftest.py", "docs/index.md", "constraints.txt", "LICENSE"} <= names


def test_the_wheel_holds_the_data(built: Path) -> None:
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    source = ROOT / "src"
    files = (path for path in (source / "or_eval").rglob("*.*") if "__pycache__" not in path.parts)
    assert {str(path.relative_to(source)) for path in files if path.is_file()} <= names
    assert not any(name.startswith("tests") for name in names)


def test_inspect_lists_and_runs_a_task(clean: Path, tmp_path: Path) -> None:
    packages = Path(_run([clean / "python", "-c", _WHERE], tmp_path).stdout.strip())
    listed = _run([clean / "inspect", "list", "tasks", "or_eval/tasks"], packages).stdout
    assert "@starter" in listed
    assert "@or_bench_hard_1k" in listed
    done = _run(
        [clean / "inspect", "eval", "or_eval/starter", "--model", "mockllm/model", "--limit", "4"],
        tmp_path,
    )
    if _TOKENIZER in done.stdout + done.stderr:
        pytest.skip("mockllm needs a tokenizer from the network, whatever the task")
    assert done.returncode == 0, done.stderr
    assert "refusal_rate" in done.stdout


def test_stored_responses_become_logs_without_extras(clean: Path, tmp_path: Path) -> None:
    (tmp_path / "responses.csv").write_text("model,prompt,response\nm,How are weeds killed?,No.\n")
    done = _run([clean / "or-eval", "replay", "responses.csv", "--log-dir", "logs"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "logs").glob("*.eval"))


_WHERE = "import or_eval, pathlib; print(pathlib.Path(or_eval.__file__).parents[1])"


def _run(words: list[object], folder: Path) -> subprocess.CompletedProcess[str]:
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [*map(str, words)],
        cwd=folder,
        env=outside | {"INSPECT_DISPLAY": "plain"},
        capture_output=True,
        text=True,
        check=False,
    )

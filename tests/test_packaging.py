"""What is installed: light imports, the entry point, the command line, the data in the wheel."""

import subprocess
import sys
import zipfile
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from or_eval.cli import _COMMANDS, main

ROOT = Path(__file__).parents[1]
HEAVY = ("pandas", "datasets", "torch", "sentence_transformers", "pyarrow", "scipy", "altair")


def loaded_by(statement: str) -> set[str]:
    script = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    modules = loaded_by("import or_eval")
    assert not modules & {*HEAVY, "inspect_ai", "re2"}


def test_registry_loads_nothing_heavy() -> None:
    assert not loaded_by("import or_eval._registry") & set(HEAVY)


def test_inspect_finds_the_entry_point() -> None:
    (found,) = [e for e in entry_points(group="inspect_ai") if e.name == "or_eval"]
    assert found.value == "or_eval._registry"


@pytest.mark.parametrize("command", list(_COMMANDS))
def test_every_command_explains_itself(command: str) -> None:
    from click.testing import CliRunner

    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0, result.output
    assert len(result.output.splitlines()) > 5


def test_wheel_holds_the_data(tmp_path: Path) -> None:
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--quiet",
        "-w",
        str(tmp_path),
        str(ROOT),
    ]
    done = subprocess.run(build, capture_output=True, text=True)
    if done.returncode and "hatchling" in done.stderr:
        pytest.skip("hatchling can't be fetched to build a wheel")
    assert done.returncode == 0, done.stderr
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    for name in (
        "or_eval/data/starter.jsonl",
        "or_eval/data/taxonomies.toml",
        "or_eval/data/system_prompts/safe.md",
        "or_eval/sources/catalogue.toml",
        "or_eval/scorers/rules/languages/en.toml",
        "or_eval/scorers/judge/prompt.toml",
        "or_eval/py.typed",
    ):
        assert name in names
    assert not any(name.startswith("tests") for name in names)

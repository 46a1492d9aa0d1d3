"""Fixtures every test module may use."""

import signal
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let golden files be written anew: a change that moves one is a decision."""
    parser.addoption("--update", action="store_true", help="write golden files anew")


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_reaches_commands() -> None:
    """Undo what a shell does to what it starts in the background: commands inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def inspect_is_quicker() -> Iterator[None]:
    """Take out what costs Inspect a third of a second each time, and tells tests nothing."""
    with pytest.MonkeyPatch.context() as patch:
        # In each eval whose task isn't installed as a copy it looks through all packages.
        found = cache(packages_distributions)
        patch.setattr("inspect_ai._util.package.packages_distributions", found)
        # Of each sample that fails it draws the traceback in colours, beside the plain one.
        patch.setattr("inspect_ai._util.rich.rich_traceback", lambda *_, **__: "")
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Give the folder of public data beside the project, or skip where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"public data not found at {SHARED_DATA}")
    return SHARED_DATA


@pytest.fixture(scope="session")
def label_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give logs of two models, to label."""
    from label_folders import made_logs

    return made_logs(tmp_path_factory.mktemp("to-label") / "logs", 60, {"a": 20, "b": 5})


@pytest.fixture(scope="session")
def label_folder(label_logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give tasks on them for one annotator, ana: to be copied, not to be changed."""
    from label_folders import done

    out = tmp_path_factory.mktemp("labels") / "labels"
    done("label", "export", label_logs, "--out", out, "--size", 8, "--annotator", "ana")
    return out

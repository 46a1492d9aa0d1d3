"""Running commands as a user does, each in a process of its own, for tests.

It is forked from a server of processes that has imported Inspect: that is most of what a start costs.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
from importlib.metadata import entry_points
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired

import pytest

from servers import API_KEY, ScriptedServer

MODEL = "openai-api/loopback/scripted"
"""The model that a `ScriptedServer` serves, given `loopback(server)` as environment."""

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["preloaded"])


def loopback(server: ScriptedServer) -> dict[str, str]:
    """Give the environment in which `MODEL` is served by `server`."""
    return {"LOOPBACK_API_KEY": API_KEY, "LOOPBACK_BASE_URL": server.base_url}


class Command:
    """A command that runs, to be used as `subprocess.Popen` with pipes for texts.

    Args:
        program: An installed one, or a Python file.
        arguments: What it is given.
        cwd: Where it runs.
        env: Its environment beyond this process's.
        stdin: What it reads, such as a terminal.
    """

    def __init__(
        self,
        program: str | Path,
        *arguments: object,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        stdin: str = os.devnull,
    ) -> None:
        self._said = tempfile.TemporaryDirectory()
        self._files = [Path(self._said.name, name) for name in ("stdout", "stderr")]
        self.args = [str(program), *map(str, arguments)]
        self._process = _FORKS.Process(
            target=_run,
            args=(self.args, cwd or Path.cwd(), {**os.environ, **(env or {})}, stdin, self._files),
        )
        with pytest.MonkeyPatch.context() as patch:
            # Where the server of processes finds what it is to import.
            patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
            ensure_running()
        self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Give how it ended; None while it runs."""
        return self._process.exitcode

    def kill(self) -> None:
        """End it so that it can tidy nothing up."""
        self._process.kill()

    def send_signal(self, sign: signal.Signals) -> None:
        """Send it a signal."""
        if self.poll() is None:
            os.kill(self._process.pid or 0, sign)

    def communicate(self, timeout: float = 300) -> tuple[str, str]:
        """Wait for its end; give what it wrote to its two outputs."""
        self._process.join(timeout)
        if self.poll() is None:
            self.kill()
            raise TimeoutExpired(self.args, timeout)
        stdout, stderr = (file.read_text("utf-8", "replace") for file in self._files)
        return stdout, stderr


def _run(command: list[str], cwd: Path, env: dict[str, str], stdin: str, files: list[Path]) -> None:
    """Become a command: what follows is as where a shell starts it."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(stdin, os.O_RDONLY | os.O_NOCTTY), 0)
    sys.stdin = os.fdopen(0, closefd=False)
    for number, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    sys.argv = command
    try:
        if command[0].endswith(".py"):
            runpy.run_path(command[0], run_name="__main__")
        else:
            [program] = entry_points(group="console_scripts", name=command[0])
            sys.exit(program.load()())
    except Exception:
        # How an interpreter ends, and `multiprocessing` doesn't.
        sys.excepthook(*sys.exc_info())
        sys.exit(1)


def run_command(
    program: str | Path,
    *arguments: object,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
) -> CompletedProcess[str]:
    """Run a command to its end."""
    started = Command(program, *arguments, cwd=cwd, env=env)
    stdout, stderr = started.communicate()
    return CompletedProcess(started.args, started.returncode or 0, stdout, stderr)


def start_inspect(*arguments: object, cwd: Path, env: dict[str, str] | None = None) -> Command:
    """Start an `inspect` command."""
    display = ["--display", "plain"] if "eval" in str(arguments[0]) else []
    env = {"NO_COLOR": "1", "COLUMNS": "200", **(env or {})}
    return Command("inspect", *arguments, *display, cwd=cwd, env=env)


def run_inspect(*arguments: object, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run an `inspect` command that must succeed, and give what it printed."""
    process = start_inspect(*arguments, cwd=cwd, env=env)
    output = "".join(process.communicate())
    assert process.returncode == 0, output
    return output

"""An environment of its own for Label Studio, whose pins clash with much else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from or_eval.sources.errors import DataError

VARIABLE = "OR_EVAL_LABEL_STUDIO"
"""Names the folder of the environment, where it is not to be in the user's cache."""

REQUIREMENT = "label-studio>=1.23,<2"
_BEGUN = "or-eval-is-installing"


def environment_folder() -> Path:
    """Give the folder that Label Studio's environment is in, or is to be made in."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "or-eval" / "label-studio"


def ensure_environment(folder: Path, say: Callable[[str], object]) -> Path:
    """Make the environment where it isn't there yet.

    Args:
        folder: Where.
        say: Is told before anything is installed.

    Returns:
        The program that starts Label Studio.

    Raises:
        DataError: It can't be installed, or the folder holds something else.
    """
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    program = programs / "label-studio"
    # Left where an installation was stopped half-way, which is begun anew.
    begun = folder / _BEGUN
    if program.exists() and not begun.exists():
        return program
    if folder.exists() and any(folder.iterdir()) and not begun.exists():
        raise DataError(
            f"{folder}: holds other things than Label Studio; name another folder with {VARIABLE}"
        )
    say(f"Installing Label Studio into {folder}: about 1 GB, some minutes, once.")
    folder.mkdir(parents=True, exist_ok=True)
    begun.touch()
    _run([sys.executable, "-m", "venv", str(folder)], folder)
    _run([str(programs / "python"), "-m", "pip", "install", "-q", REQUIREMENT], folder)
    begun.unlink()
    return program


def outside_environment() -> dict[str, str]:
    """Give environment variables without those that point into this Python's packages."""
    ours = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in ours}


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=outside_environment())
    if done.returncode:
        last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
        raise DataError(
            f"{folder}: Label Studio can't be installed ({' '.join(last)}); see that pip reaches a "
            f"package index, or name an environment that has it with {VARIABLE}"
        )

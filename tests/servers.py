"""A scripted model on loopback that speaks the OpenAI protocol, for tests.

    with ScriptedServer(lambda request: Reply("No.")) as server:
        model = server.model()                    # an Inspect model
        ...
        assert len(server.requests) == 1

A script is called with each request and its number, and gives a reply; several requests run at once.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from inspect_ai.model import GenerateConfig, Model, get_model

from loopback_server import LoopbackServer, body_of, give

API_KEY = "sk-loopback-0123456789abcdef-secret"
"""The key that models of a scripted server send; it must turn up in no log."""


@dataclass(frozen=True)
class Request:
    """One call that a server received: its JSON body, headers, and number (from 0)."""

    body: dict[str, Any]
    headers: Mapping[str, str]
    number: int
    time: float

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body["messages"]

    @property
    def question(self) -> str:
        """The last user message."""
        return next(m["content"] for m in reversed(self.messages) if m["role"] == "user")

    @property
    def structured(self) -> bool:
        """Whether structured output is asked for."""
        return "response_format" in self.body


@dataclass(frozen=True)
class Reply:
    """What a server answers.

    `raw` replaces the whole body; `delay` is in seconds; `message` adds fields to the message;
    `hang_up` closes the connection with no answer.
    """

    content: str | None = ""
    finish_reason: str = "stop"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    raw: bytes | None = None
    message: Mapping[str, Any] = field(default_factory=dict)
    hang_up: bool = False


CHECK = "Are you there? Reply with the word yes."
"""What a judge is asked first. A server that is `ready` says yes, and neither asks its script nor
counts it among its requests."""

Script = Callable[[Request], Reply | str]


class ScriptedServer(LoopbackServer):
    """Serve a script on a free loopback port while the `with` block lasts."""

    def __init__(self, script: Script, *, ready: bool = True) -> None:
        super().__init__()
        self.requests: list[Request] = []
        self.ready = ready
        self.checks = 0
        self._script = script

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    def model(self, name: str = "judge", **config: Any) -> Model:
        """Give an Inspect model that is served here; `config` is its generate config."""
        return get_model(
            f"openai-api/loopback/{name}",
            base_url=self.base_url,
            api_key=API_KEY,
            config=GenerateConfig(**config),
            memoize=False,
            max_retries=0,  # the SDK's own retries would blur the count of requests
        )

    def role_option(self, name: str = "judge", **config: Any) -> str:
        """Give the model as a value of `--model-role NAME=` (the key stands in the environment)."""
        model_args = {"base_url": self.base_url, "max_retries": 0}
        return json.dumps(
            {"model": f"openai-api/loopback/{name}", "model_args": model_args, **config}
        )

    def serve(self, asked: BaseHTTPRequestHandler) -> None:
        body = json.loads(body_of(asked))
        reply = self.answer(body, asked.headers)
        time.sleep(reply.delay)
        if reply.hang_up:
            asked.close_connection = True
            return
        headers = {"Content-Type": "application/json", **reply.headers}
        give(asked, reply.status, _body(body, reply), headers)

    def answer(self, body: dict[str, Any], headers: Mapping[str, str]) -> Reply:
        with self._lock:
            request = Request(body, headers, len(self.requests), time.monotonic())
            if self.ready and any(m["content"] == CHECK for m in body.get("messages", [])):
                self.checks += 1
                return Reply("yes")
            self.requests.append(request)
        reply = self._script(request)
        return Reply(reply) if isinstance(reply, str) else reply


def verdict_line(request: Request, label: str, *, why: str = "Because.") -> str:
    """Give the reply of a judge that does its work: the verdict with the key of the case."""
    return json.dumps({"why": why, "verdict": label, "key": case_key(request)})


def case_key(request: Request) -> str:
    """Find the key of a judge's case in the first user message."""
    question = next(m["content"] for m in request.messages if m["role"] == "user")
    found = re.match(r"Key of this case: (\w+)", question)
    assert found, question[:200]
    return found.group(1)


def judged_response(request: Request) -> str:
    """Find the response that a judge is shown."""
    key = case_key(request)
    question = next(m["content"] for m in request.messages if m["role"] == "user")
    return question.split(f"<<<RESPONSE {key}\n", 1)[1].split(f"\nRESPONSE {key}>>>", 1)[0]


GUARD_MODELS = {
    "wildguard": "openai-api-completions/loopback/allenai/wildguard",
    "llama_guard": "openai-api-completions/loopback/meta-llama/Llama-Guard-3-8B",
    "granite_guardian": "openai-api/loopback/ibm-granite/granite-guardian-3.3-8b",
    "refusal_classifier": "classifier/NousResearch/Minos-v1",
}


def said_by(name: str, said: str) -> Reply:
    """Give the reply of a guard's server, in the shape of the endpoint it is asked at."""
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    if GUARD_MODELS[name].startswith("classifier/"):
        found = {"index": 0, "label": said, "probs": [0.1, 0.9], "num_classes": 2}
        return Reply(raw=json.dumps({"object": "list", "data": [found], "usage": usage}).encode())
    if GUARD_MODELS[name].startswith("openai-api-completions/"):
        body = {
            "id": "cmpl-1",
            "object": "text_completion",
            "created": 0,
            "model": name,
            "choices": [{"index": 0, "text": said, "finish_reason": "stop", "logprobs": None}],
            "usage": usage,
        }
        return Reply(raw=json.dumps(body).encode())
    return Reply(said)


def guard_model(name: str, server: ScriptedServer) -> Model:
    return get_model(GUARD_MODELS[name], base_url=server.base_url, api_key=API_KEY, memoize=False)


def _body(request: Mapping[str, Any], reply: Reply) -> bytes:
    if reply.raw is not None:
        return reply.raw
    if reply.status != 200:
        error = {"message": reply.content or "scripted failure", "type": "scripted", "code": None}
        return json.dumps({"error": error}).encode()
    message = {"role": "assistant", "content": reply.content, **reply.message}
    return json.dumps(
        {
            "id": "chatcmpl-scripted",
            "object": "chat.completion",
            "created": 0,
            "model": request.get("model", "scripted"),
            "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }
    ).encode()

"""Replies in the shapes of OpenAI's, Anthropic's and Google's APIs, for scripted servers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from inspect_ai.model import GenerateConfig, Model, get_model

from servers import API_KEY, Reply, ScriptedServer

CLAUDE = "claude-opus-5"
FALLBACK = "claude-opus-4-8"


def openai_chat(server: ScriptedServer) -> Model:
    return _model("openai/gpt-4o-mini", server.base_url, responses_api=False, max_retries=0)


def openai_responses(server: ScriptedServer) -> Model:
    return _model("openai/gpt-4o-mini", server.base_url, responses_api=True)


def anthropic(server: ScriptedServer, **config: Any) -> Model:
    return _model(
        f"anthropic/{CLAUDE}", _root(server), streaming=False, config={"max_tokens": 500, **config}
    )


def google(server: ScriptedServer) -> Model:
    return _model("google/gemini-2.5-flash", _root(server))


def responses_reply(*parts: Mapping[str, Any], incomplete: str | None = None) -> Reply:
    """Give a reply of OpenAI's Responses API: a message of these parts."""
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": list(parts),
    }
    body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "model": "gpt-4o-mini",
        "status": "incomplete" if incomplete else "completed",
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "error": None,
        "output": [message] if parts else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        },
    }
    return Reply(raw=json.dumps(body).encode())


def claude_reply(*blocks: Mapping[str, Any], stop_reason: str = "end_turn", **more: Any) -> Reply:
    """Give a reply of Anthropic's Messages API."""
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": CLAUDE,
        "content": list(blocks),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
        **more,
    }
    return Reply(raw=json.dumps(body).encode())


def claude_text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def claude_handed_over() -> dict[str, Any]:
    """Give the block that says that another model goes on."""
    return {"type": "fallback", "from": {"model": CLAUDE}, "to": {"model": FALLBACK}}


def gemini_reply(text: str | None = None, finish: str = "STOP", **candidate: Any) -> Reply:
    """Give a reply of Google's generateContent: one candidate."""
    content = {"content": {"role": "model", "parts": [{"text": text}]}} if text else {}
    return gemini_body(
        {"candidates": [{**content, "finishReason": finish, "index": 0, **candidate}]}
    )


def gemini_body(body: Mapping[str, Any]) -> Reply:
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return Reply(
        raw=json.dumps(
            {"usageMetadata": usage, "modelVersion": "gemini-2.5-flash", **body}
        ).encode()
    )


def _model(
    name: str, address: str, *, config: Mapping[str, Any] | None = None, **args: Any
) -> Model:
    return get_model(
        name,
        base_url=address,
        api_key=API_KEY,
        config=GenerateConfig(**(config or {})),
        memoize=False,
        **args,
    )


def _root(server: ScriptedServer) -> str:
    return server.base_url.removesuffix("/v1")

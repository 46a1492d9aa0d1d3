"""Why a model stopped: the words of providers' interfaces, as Inspect reads them live."""

from __future__ import annotations

import re

from inspect_ai.model import StopReason

# By the function of inspect_ai.model that reads them.
_WORDS: dict[str, dict[str, StopReason]] = {
    # Words that several providers have: OpenAI, Azure, Mistral, Groq, Together.
    "as_stop_reason": {
        "stop": "stop",
        "eos": "stop",
        "length": "max_tokens",
        "tool_calls": "tool_calls",
        "function_call": "tool_calls",
        "content_filter": "content_filter",
        "model_length": "model_length",
        "max_tokens": "max_tokens",
    },
    "anthropic.message_stop_reason": {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "tool_use": "tool_calls",
        "refusal": "content_filter",
    },
    "bedrock.message_stop_reason": {
        "content_filtered": "content_filter",
        "guardrail_intervened": "content_filter",
        "model_context_window_exceeded": "model_length",
    },
    "google.finish_reason_to_stop_reason": {
        "safety": "content_filter",
        "recitation": "content_filter",
        "blocklist": "content_filter",
        "prohibited_content": "content_filter",
        "spii": "content_filter",
    },
    "grok._stop_reason_from_finish_reason": {
        "reason_stop": "stop",
        "reason_tool_calls": "tool_calls",
        "reason_max_context": "model_length",
        "reason_max_len": "max_tokens",
    },
    "openai_responses (incomplete_details)": {"max_output_tokens": "max_tokens"},
}
_STOP_REASONS = {word: reason for words in _WORDS.values() for word, reason in words.items()}


_WORD = re.compile(r"\W*(?:\w+\.)*(\w+)")


def plain_stop_word(word: str) -> str:
    """Give a provider's word, which may stand as Python shows an enum's member."""
    found = _WORD.match(word)
    return found[1] if found else ""


def stop_reason_of(word: str) -> StopReason:
    """Give Inspect's word for a provider's, in any case, also as Python shows an enum's member.

    No word at all says that the model came to an end.
    """
    return _STOP_REASONS.get(plain_stop_word(word).lower() or "stop", "unknown")

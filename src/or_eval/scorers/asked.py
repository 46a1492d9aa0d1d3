"""What the user asked, with the dialogue before it, for those who judge the answer."""

from __future__ import annotations

from collections.abc import Sequence

from inspect_ai.model import ChatMessage

from or_eval.scorers.fenced_case import shorten_middle

_LONGEST_BEFORE = 2_000
_SPEAKERS = {"user": "User", "assistant": "Assistant"}


def with_dialogue(messages: Sequence[ChatMessage], request: str) -> str:
    """Put what was said before the user's last turn in front of it.

    Args:
        messages: The conversation.
        request: What the user asked last.

    Returns:
        The request as it is where nothing was said before it, system messages aside.
    """
    asked = [n for n, said in enumerate(messages) if said.role == "user" and said.text == request]
    before = messages[: asked[-1]] if asked else []
    turns = [f"{_SPEAKERS[m.role]}: {m.text.strip()}" for m in before if m.role in _SPEAKERS]
    if not turns:
        return request
    earlier = shorten_middle("\n\n".join(turns), _LONGEST_BEFORE)
    return f"[Earlier in the dialogue]\n{earlier}\n\n[The user's last turn]\n{request}"

"""How many calls a panel of moderators will take, before any is made."""

from __future__ import annotations

from collections.abc import Sequence

from or_eval.dataset_builders.engine.ports import MODERATOR, Calls, estimated_tokens
from or_eval.dataset_builders.panel.moderators import Wording

_ANSWER_TOKENS = 40


def panel_calls(parts: Sequence[tuple[int, int, Wording]], role: str = MODERATOR) -> Calls:
    """Estimate what each moderator is asked: a call for each text.

    Args:
        parts: Number of texts, tokens of each, and what moderators are told about them.
        role: The role in which they are asked.
    """
    calls = sum(texts for texts, _, _ in parts)
    sent = sum(
        texts * (tokens + estimated_tokens(wording.system, wording.case.template))
        for texts, tokens, wording in parts
    )
    return Calls(role, calls, sent, calls * _ANSWER_TOKENS)

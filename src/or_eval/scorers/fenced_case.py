"""Hostile texts in a question to a model: fenced by a key they can't contain, and cut short."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import NamedTuple

_HEAD_SHARE = 2 / 3


class Case(NamedTuple):
    """One question about texts that may say anything.

    Attributes:
        key: What fences the texts, and must stand in the answer.
        question: The user message.
        repair: The user message that asks again for an answer that could not be read.
    """

    key: str
    question: str
    repair: str


def fence_key(digest: str, *texts: str) -> str:
    """Give the key of a case: 16 random-looking characters that none of its texts can contain.

    The key is a hash over the texts and the prompt rather than a fresh random number. It is as
    hard to forge: to hold its own key, a text would have to be a fixed point of SHA-256 in 80
    bits. And the same case always makes the same request, so that Inspect's cache answers it when
    a run is repeated, and all models of a panel are asked the very same question.

    Args:
        digest: Digest of the prompt's file.
        texts: The texts that are fenced.
    """
    material = json.dumps([digest, *texts]).encode()
    return base64.b32encode(hashlib.sha256(material).digest()[:10]).decode().lower()


def shorten_middle(text: str, limit: int) -> str:
    """Leave out the middle of a text longer than `limit` characters, with a note that says so."""
    if len(text) <= limit:
        return text
    head = int(limit * _HEAD_SHARE)
    left_out = len(text) - limit
    return f"{text[:head]}\n[... {left_out:,} characters left out ...]\n{text[head - limit :]}"

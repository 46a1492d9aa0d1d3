"""When two texts are the same: what is left of them without case, spacing and punctuation."""

from __future__ import annotations

import hashlib
import re
import unicodedata

UNSPACED = re.compile(r"[\u0e01-\u0e4e\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""A letter of a script that writes no spaces between words."""


class _Letters(dict[int, int | None]):
    """For `str.translate`: leaves letters, their marks, numbers and symbols in a text."""

    def __missing__(self, char: int) -> int | None:
        self[char] = char if unicodedata.category(chr(char))[0] in "LMNS" else None
        return self[char]


_LETTERS = _Letters()


def same_text(text: str) -> str:
    """Give what texts share that are the same; of punctuation alone, the text itself."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return plain.translate(_LETTERS) or text


def text_mark(text: str, *besides: object) -> bytes:
    """Give 16 bytes that the same texts share, of those that share some other things as well."""
    told = repr((same_text(text), *besides))
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).digest()[:16]

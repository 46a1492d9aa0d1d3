"""Data from outside: a mark changes with it, wherever it lies."""

from __future__ import annotations

from pathlib import Path

import huggingface_hub.constants
import pytest

from or_eval.dataset_builders.engine.fingerprint import data_mark


def test_a_file_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "x.csv").write_text("prompt\none\n")
    before = data_mark("~/x.csv")
    (tmp_path / "x.csv").write_text("prompt\ntwo\n")
    assert len(before) == 12
    assert data_mark("~/x.csv") not in (before, "")


def test_the_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_text("one")
    before = data_mark(str(tmp_path))
    (tmp_path / "model.bin").write_text("other")
    assert data_mark(str(tmp_path)) != before


def test_what_is_on_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    assert data_mark("own/er") == ""
    refs = tmp_path / "datasets--own--er" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text("5eed")
    assert data_mark("own/er:config") == "5eed"
    assert data_mark("or_bench_80k").startswith("e36d8b80")  # pinned by the catalogue

"""Names in figures: how models are shown, who made them."""

from __future__ import annotations

import pytest

from figure_frames import (
    HOSTILE,
)
from or_eval.analysis.figures.shown_names import LONGEST, em_width, shown_names
from or_eval.analysis.figures.trade_off import maker


def test_shown_names_are_short_visible_and_all_different() -> None:
    shown = shown_names(HOSTILE)
    assert len(set(shown.values())) == len(HOSTILE)
    assert shown["\u202egnp.exe\u202c"] == "[U+202E]gnp.exe[U+202C]"
    assert shown[HOSTILE[3]].startswith("openai/very")
    assert shown[HOSTILE[3]].endswith("name-a")
    assert all(em_width(name) <= LONGEST for name in shown.values())
    twins = shown_names([f"{'x' * 50}{middle}{'x' * 50}" for middle in "abc"])
    assert [name[-4:] for name in twins.values()] == ["xxxx", " (2)", " (3)"]
    assert shown_names(["gpt\n4o"]) == {"gpt\n4o": "gpt 4o"}


@pytest.mark.parametrize(
    ("model", "made_by"),
    [
        ("openai/gpt-4o-mini", "OpenAI"),
        ("gpt4 (system_prompt=safe)", None),
        ("anthropic/claude-3-5-sonnet-20241022", "Anthropic"),
        ("together/meta-llama/Meta-Llama-3.1-8B", "Meta"),
        ("mistralguard", None),
        ("<script>", None),
        ("", None),
    ],
)
def test_a_maker_is_told_from_a_name(model: str, made_by: str | None) -> None:
    assert maker(model) == made_by


def test_no_model_is_loaded_to_tell_its_maker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inspect's public function would download the weights of ``hf/`` models."""
    loaded: list[str] = []
    monkeypatch.setattr("inspect_ai.model._model.get_model", lambda name, **_: loaded.append(name))
    assert maker("hf/nobody/nothing") is None
    assert not loaded

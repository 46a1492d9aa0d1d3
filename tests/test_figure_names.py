"""Names in figures: how models are shown, who made them, of which generation they are."""

from __future__ import annotations

import pytest

from figure_frames import (
    HOSTILE,
)
from or_eval.analysis.figures.model_names import generation, maker
from or_eval.analysis.figures.shown_names import LONGEST, em_width, shown_names


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
    ("model", "made_by", "of"),
    [
        ("openai/gpt-4o-mini", "OpenAI", ("gpt", 4.0)),
        ("gpt-3.5-turbo-0125", "OpenAI", ("gpt", 3.5)),
        ("gpt4 (system_prompt=safe)", None, ("gpt", 4.0)),
        ("openai/o3-mini", "OpenAI", ("o", 3.0)),
        ("anthropic/claude-3-5-sonnet-20241022", "Anthropic", ("claude", 3.5)),
        ("claude-sonnet-4-20250514", "Anthropic", ("claude", 4.0)),
        ("together/meta-llama/Meta-Llama-3.1-8B", "Meta", ("llama", 3.1)),
        ("Llama-2-7b-chat", "Meta", ("llama", 2.0)),
        ("mistralguard", None, None),
        ("gemma-7b-it", None, None),
        ("Qwen/Qwen2.5-72B-Instruct", "Qwen", ("qwen", 2.5)),
        ("olive-7b", None, None),
        ("<script>", None, None),
        ("", None, None),
    ],
)
def test_maker_and_generation_are_told_from_a_name(
    model: str, made_by: str | None, of: tuple[str, float] | None
) -> None:
    assert maker(model) == made_by
    assert generation(model) == of


def test_no_model_is_loaded_to_tell_its_maker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inspect's public function would download the weights of ``hf/`` models."""
    loaded: list[str] = []
    monkeypatch.setattr("inspect_ai.model._model.get_model", lambda name, **_: loaded.append(name))
    assert maker("hf/nobody/nothing") is None
    assert not loaded

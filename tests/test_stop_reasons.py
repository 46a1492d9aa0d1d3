"""Providers' words for why a model stopped mean in a file what Inspect takes them for live."""

from types import SimpleNamespace

import pytest
from google.genai.types import FinishReason
from inspect_ai.model._model_output import as_stop_reason
from inspect_ai.model._providers import bedrock, google

from or_eval.models.replay import stop_reason_of, stored_output
from or_eval.scorers.provider import read_output
from or_eval.sources.columns import columns_for


@pytest.mark.parametrize("said", FinishReason)
def test_googles(said: FinishReason) -> None:
    live = google.finish_reason_to_stop_reason(said)
    assert {stop_reason_of(said.value), stop_reason_of(str(said))} == {live}


@pytest.mark.parametrize("said", bedrock.ConverseStopReason.__args__)
def test_bedrocks(said: str) -> None:
    assert stop_reason_of(said) == bedrock.message_stop_reason(said)


@pytest.mark.parametrize("said", ["end_turn", "stop_sequence", "tool_use", "max_tokens", "refusal"])
def test_anthropics(said: str) -> None:
    anthropic = pytest.importorskip("inspect_ai.model._providers.anthropic")
    live, _ = anthropic.message_stop_reason(SimpleNamespace(stop_reason=said))
    assert stop_reason_of(said) == live


@pytest.mark.parametrize("said", ["stop", "length", "model_length", "tool_calls", "error"])
def test_mistrals(said: str) -> None:
    mistral = pytest.importorskip("inspect_ai.model._providers.mistral")
    assert stop_reason_of(said) == mistral.choice_stop_reason(SimpleNamespace(finish_reason=said))


@pytest.mark.parametrize(
    "said", ["stop", "length", "tool_calls", "function_call", "content_filter", "eos", "whatever"]
)
def test_openais(said: str) -> None:
    assert stop_reason_of(said) == as_stop_reason(said)


def test_no_word_is_the_end() -> None:
    assert stop_reason_of("") == "stop"


@pytest.mark.parametrize(
    "shown", ["<FinishReason.SAFETY: 3>", "a.b.FinishReason.SAFETY", "'SAFETY'"]
)
def test_an_enums_member_as_python_shows_it(shown: str) -> None:
    assert stop_reason_of(shown) == "content_filter"
    named = shown.replace("SAFETY", "RECITATION")
    verdict = read_output(stored_output("Some words.", named))
    assert verdict.provenance == "recitation_filter"


@pytest.mark.parametrize("column", ["stop_reason", "finish_reason", "finishReason", "stopReason"])
def test_the_column_is_found_by_apis_names_for_it(column: str) -> None:
    assert columns_for("stop_reason", ["prompt", column]) == [column]

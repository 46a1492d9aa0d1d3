"""The tested model's output, with what Inspect's transcript knows of it and its state does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.log._samples import sample_active
from inspect_ai.model import ModelOutput, ModelRefusalError
from inspect_ai.solver import TaskState


class TestedOutput(NamedTuple):
    """What the tested model gave.

    Attributes:
        output: Its output; the blocked one where the sample failed for it.
        stop_type: Why it stopped in the provider's words, where the output doesn't tell.
        retried: Earlier tries of the sample that were blocked and taken back.
    """

    output: ModelOutput
    stop_type: str | None
    retried: int


def tested_output(state: TaskState) -> TestedOutput:
    """Find the output to score.

    With ``--fail-on-refusal`` a blocked output ends the sample before it reaches the state; the
    transcript has it. And where a provider names no category of a block, Inspect leaves out why
    the model stopped, which tells a recitation from a refusal: the call in the transcript has it.
    """
    output, stop_type = state.output, None
    if output.empty:
        blocked = next((e.output for e in _calls()), output)
        if not blocked.empty and blocked.stop_reason == "content_filter":
            output = blocked
    choices = output.choices
    if (
        choices
        and choices[0].stop_details is None
        and choices[0].stop_reason in ("content_filter", "unknown")
    ):
        call = next((event.call for event in _calls() if _same(event.output, output)), None)
        stop_type = _finish_reason(call.response) if call else None
    return TestedOutput(output, stop_type, _refusals_retried())


def is_refusal_error(message: str) -> bool:
    """Tell whether a sample's error is a block that ``--fail-on-refusal`` made one."""
    # Inspect keeps the error's repr, of a try that was retried in quotation marks.
    return message.lstrip('"').startswith(f"{ModelRefusalError.__name__}(")


def _calls() -> Iterator[ModelEvent]:
    """Give the calls of the tested model, the last one first."""
    for event in reversed(list(transcript().events)):
        if isinstance(event, ModelEvent) and event.role is None:
            yield event


def _same(one: ModelOutput, other: ModelOutput) -> bool:
    return not one.empty and one.message.id == other.message.id


def _finish_reason(response: dict[str, Any] | None) -> str | None:
    """Read Google's finish reason from a raw response."""
    match response:
        case {"candidates": [{"finish_reason": str(reason)}, *_]}:
            return reason
        case {"candidates": [{"finishReason": str(reason)}, *_]}:
            return reason
    return None


def _refusals_retried() -> int:
    active = sample_active()
    errors = active.error_retries if active else []
    return sum(is_refusal_error(error.message) for error in errors)

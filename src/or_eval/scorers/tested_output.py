"""The tested model's output, with what Inspect's transcript knows of it and its state does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import ModelOutput, ModelRefusalError
from inspect_ai.solver import TaskState

from or_eval.inspect_private import errors_retried
from or_eval.scorers.provider.signals import api_text


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

    A block may end the sample as an error before an output reaches the state: with
    ``--fail-on-refusal``, and where an API answers with an error that Inspect doesn't take for a
    block. The transcript has it. And where a provider names no category of a block, Inspect leaves
    out why the model stopped, which tells a recitation from a refusal: the call there has it.
    """
    output, stop_type = state.output, None
    if output.empty:
        last = next(_calls(), None)
        output = (last and _blocked(last)) or output
    if (
        not output.empty
        and output.stop_reason in ("content_filter", "unknown")
        and output.choices[0].stop_details is None
    ):
        call = next((event.call for event in _calls() if _same(event.output, output)), None)
        stop_type = _finish_reason(call.response) if call else None
    return TestedOutput(output, stop_type, _refusals_retried())


def _blocked(call: ModelEvent) -> ModelOutput | None:
    """Give the block that a call ended with, be it as an output or as an error."""
    if call.error is None:
        blocked = not call.output.empty and call.output.stop_reason == "content_filter"
        return call.output if blocked else None
    match call.call.response if call.call else None:
        case {"message": str(message)} | {"error": {"message": str(message)}}:
            known = api_text(message)
            if known is not None and known.provenance is not None:
                return ModelOutput.from_content(
                    call.model, "", stop_reason="content_filter", error=message
                )
    return None


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
    # Inspect keeps the repr of an error, in quotation marks.
    refusal = f"{ModelRefusalError.__name__}("
    return sum(error.lstrip('"').startswith(refusal) for error in errors_retried())

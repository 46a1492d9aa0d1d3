"""The tested model's output, with what Inspect's transcript knows of it and its state does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inspect_ai.event import ErrorEvent, ModelEvent, SpanBeginEvent
from inspect_ai.log import transcript
from inspect_ai.model import ModelOutput, ModelRefusalError
from inspect_ai.solver import TaskState

from or_eval.inspect_private import errors_retried
from or_eval.scorers.provider import read_output
from or_eval.scorers.provider.signals import api_text
from or_eval.scorers.verdict import ProviderVerdict

_END_CHARS = 500


def tested_output(state: TaskState) -> tuple[str, ProviderVerdict]:
    """Give the text of the output to score, and what its provider says of it.

    A block may end the sample as an error before an output reaches the state: with
    ``--fail-on-refusal``, and where an API answers with an error that Inspect doesn't take for a
    block. The transcript has it. And where a provider names no category of a block, Inspect leaves
    out why the model stopped, which tells a recitation from a refusal: the call there has it.
    A sample that failed within a dialogue still holds the answer to an earlier turn, which is
    none to the last.
    """
    output, stop_type = state.output, None
    if output.empty or _failed():
        last = next(_calls(), None)
        output = (last and _blocked(last)) or ModelOutput(model=output.model)
    if (
        not output.empty
        and output.stop_reason in ("content_filter", "unknown")
        and output.choices[0].stop_details is None
    ):
        id = output.message.id
        calls = (e.call for e in _calls() if not e.output.empty and e.output.message.id == id)
        call = next(calls, None)
        stop_type = _finish_reason(call.response) if call else None
    # Inspect keeps the repr of an error, in quotation marks.
    refusal = f"{ModelRefusalError.__name__}("
    retried = sum(error.lstrip('"').startswith(refusal) for error in errors_retried())
    own = _models_own(output)
    return own.completion, read_output(own, stop_type=stop_type, retried=retried)


def _failed() -> bool:
    """Tell whether the sample failed before it was scored, as when a log is scored again."""
    for event in transcript().events:
        if isinstance(event, SpanBeginEvent) and event.name == "scorers":
            return False
        if isinstance(event, ErrorEvent):
            return True
    return False


def _models_own(output: ModelOutput) -> ModelOutput:
    """Leave out the text that Inspect writes behind a malformed call of Google's, however long."""
    if output.empty or output.stop_reason != "unknown" or isinstance(output.message.content, str):
        return output
    content = output.message.content
    own = [part for part in content if part.type != "text" or not _of_nobody(part.text)]
    if len(own) == len(content):
        return output
    message = output.message.model_copy(update={"content": own})
    choice = output.choices[0].model_copy(update={"message": message})
    return output.model_copy(update={"choices": [choice], "completion": message.text})


def _of_nobody(text: str) -> bool:
    known = api_text(
        text if len(text) <= 2 * _END_CHARS else text[:_END_CHARS] + text[-_END_CHARS:]
    )
    return known is not None and known.provenance is None


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


def _finish_reason(response: dict[str, Any] | None) -> str | None:
    """Read Google's finish reason from a raw response."""
    match response:
        case {"candidates": [{"finish_reason": str(reason)}, *_]}:
            return reason
        case {"candidates": [{"finishReason": str(reason)}, *_]}:
            return reason
    return None

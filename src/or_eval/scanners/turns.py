"""A transcript as turns: what the model said, what it was asked, what it had done and did next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from inspect_ai.event import Event, ModelEvent, SpanBeginEvent, ToolEvent
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    ModelOutput,
)
from inspect_ai.tool import ToolCall

_HANDS_IN = "submit"
"""The tool by which Inspect's agents hand in their answer: to call it is to speak, not to act."""


# As coding tools name the tool that starts one: Task, Agent, spawn_agent, runSubagent, delegate_to.
_STARTS_AGENT = re.compile(r"(.*_)?task(output)?|.*agent.*|.*delegate.*", re.IGNORECASE)


class SubAgent(NamedTuple):
    """A tool's message by which a sub-agent answers.

    Attributes:
        number: Its place among the transcript's messages, from 1.
        message: The message.
        outputs: What the sub-agent's calls of a model gave, where the transcript holds them and
            the messages don't.
    """

    number: int
    message: ChatMessageTool
    outputs: list[ModelOutput]


class Said(NamedTuple):
    """A message of the model, in its place.

    Attributes:
        number: Its place among the transcript's messages, from 1, as Scout cites it (``[M3]``).
        message: The message.
        request: What was asked last.
        acted_before: Whether the model had called a tool since that request.
        acts_afterwards: Whether it calls one in this message or a later one, before the next
            request.
        call: The model call it came from, where the transcript holds it.
    """

    number: int
    message: ChatMessageAssistant
    request: str
    acted_before: bool
    acts_afterwards: bool
    call: ModelEvent | None

    @property
    def tools_offered(self) -> bool | None:
        """Whether the model could have called a tool; None where nobody recorded it."""
        return None if self.call is None else any(t.name != _HANDS_IN for t in self.call.tools)


def said(messages: Sequence[ChatMessage], events: Sequence[Event]) -> Iterator[Said]:
    """Give what the model said, message by message.

    What was put into its mouth is left out: assistant messages that came with the sample's input.
    """
    calls = {
        event.output.message.id: event
        for event in events
        if isinstance(event, ModelEvent) and not event.output.empty
    }
    starts = _requests(messages)
    for start, end in zip([0, *starts], [*starts, len(messages)], strict=True):
        turn = messages[start:end]
        acts = [bool(acting(message)) for message in turn]
        for place, message in enumerate(turn):
            if isinstance(message, ChatMessageAssistant) and message.source != "input":
                yield Said(
                    number=start + place + 1,
                    message=message,
                    request=turn[0].text if start in starts else "",
                    acted_before=any(acts[:place]),
                    acts_afterwards=any(acts[place:]),
                    call=calls.get(message.id),
                )


def sub_agents(messages: Sequence[ChatMessage], events: Sequence[Event]) -> Iterator[SubAgent]:
    """Give the answers of sub-agents, each with what was said to it and never reached the messages.

    A sub-agent is what Inspect records as one, or a tool with the name of one.
    """
    shown = {message.id for message in messages}
    calls = {event.id: event for event in events if isinstance(event, ToolEvent)}
    parents = {event.id: event.parent_id for event in events if isinstance(event, SpanBeginEvent)}

    def within(span: str | None, root: str) -> bool:
        while span is not None and span != root:
            span = parents.get(span)
        return span == root

    for number, message in enumerate(messages, 1):
        if not isinstance(message, ChatMessageTool):
            continue
        call = calls.get(message.tool_call_id or "")
        root = call.agent_span_id if call else None
        if root is None and not _STARTS_AGENT.fullmatch(message.function or ""):
            continue
        outputs = [
            event.output
            for event in events
            if root is not None and isinstance(event, ModelEvent) and within(event.span_id, root)
        ]
        own = [out for out in outputs if out.empty or out.message.id not in shown]
        yield SubAgent(number, message, own)


def _requests(messages: Sequence[ChatMessage]) -> list[int]:
    """Find the messages that ask something.

    Those that came with the input or from a person; what an agent's own loop writes in the user's
    role ("please go on") asks for nothing new. Where a transcript doesn't tell, all of the user's.
    """
    users = [i for i, message in enumerate(messages) if isinstance(message, ChatMessageUser)]
    return [i for i in users if messages[i].source in ("input", "operator")] or users


def acting(message: ChatMessage) -> list[ToolCall]:
    """Give the tool calls of a message by which the model acts."""
    calls = message.tool_calls if isinstance(message, ChatMessageAssistant) else None
    return [call for call in calls or () if call.function != _HANDS_IN]


def handed_in(message: ChatMessageAssistant) -> str:
    """Give what a message hands in through the tool made for that; empty where it doesn't."""
    calls = [call for call in message.tool_calls or () if call.function == _HANDS_IN]
    return "\n".join(text for call in calls for text in texts_in(call).values())


def texts_in(call: ToolCall) -> dict[str, str]:
    """Give the texts among a call's arguments, by argument."""
    return {name: value for name, value in call.arguments.items() if isinstance(value, str)}

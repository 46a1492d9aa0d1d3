"""Have the tested model take part in a dialogue whose turns of the user's are given."""

from __future__ import annotations

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser
from inspect_ai.solver import Generate, Solver, TaskState, solver

from or_eval.hostile_text import whole_cell


@solver
def dialogue() -> Solver:
    """Ask the model for an answer to each turn of the user's that has none, one after the other.

    Answers that the dialogue brings along stand as the model's own. What the model says last is
    its output, and what scorers class.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        script, state.messages = state.messages, []
        for turn, following in zip(script, [*script[1:], None], strict=True):
            state.messages.append(turn)
            answered = isinstance(following, ChatMessageAssistant)
            if isinstance(turn, ChatMessageUser) and not answered:
                state = await generate(state, tool_calls="none")
                if following is not None:
                    state.messages = [*map(_sendable, state.messages)]
        return state

    return solve


def _sendable(said: ChatMessage) -> ChatMessage:
    """Mark halves of characters: no request can hold one, and no log of one."""
    if not isinstance(said, ChatMessageAssistant):
        return said
    data = said.model_dump()
    marked = whole_cell(data)
    return said if marked == data else ChatMessageAssistant.model_validate(marked)

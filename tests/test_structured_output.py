"""Asking for structured output: what a dead server costs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from inspect_ai.model import (
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
    ResponseSchema,
    get_model,
)
from inspect_ai.model._generate_config import set_active_generate_config
from inspect_ai.util import JSONSchema

from or_eval.solvers import structured_output
from or_eval.solvers.structured_output import DEAD_AFTER, MAX_RETRIES, generate_structured

SCHEMA = ResponseSchema(name="reply", json_schema=JSONSchema(type="object"))


class Gone(Exception):
    """What a provider raises when nobody answers."""


class Rejected(Exception):
    """What a provider raises for one request that it won't take."""

    status_code = 403


@pytest.fixture
def asked() -> Iterator[list[int | None]]:
    structured_output._failed_in_a_row.clear()
    # A run in this process leaves its settings, cache and all, as the defaults of later calls.
    set_active_generate_config(GenerateConfig())
    yield []
    structured_output._failed_in_a_row.clear()


def model(asked: list[int | None], errors: list[Exception | None]):
    def respond(messages, tools, tool_choice, config: GenerateConfig) -> ModelOutput:
        asked.append(config.max_retries)
        if error := errors.pop(0):
            raise error
        output = ModelOutput.from_content("mockllm/model", "{}")
        output.usage = ModelUsage()
        return output

    return get_model("mockllm/model", custom_outputs=respond, memoize=False)


def ask(server) -> bool:
    try:
        asyncio.run(generate_structured(server, [ChatMessageUser(content="?")], SCHEMA))
    except (Gone, Rejected):
        return False
    return True


def test_a_dead_server_is_tried_once_a_call_until_it_is_back(asked) -> None:
    errors = [*[Gone("nobody")] * (DEAD_AFTER + 2), None, None]
    server = model(asked, errors)
    outcomes = [ask(server) for _ in range(len(errors))]
    assert outcomes == [False] * (DEAD_AFTER + 2) + [True, True]
    assert asked == [MAX_RETRIES] * DEAD_AFTER + [0, 0, 0] + [MAX_RETRIES]


def test_requests_that_are_rejected_say_nothing_of_the_server(asked) -> None:
    server = model(asked, [*[Rejected("no")] * 5, None])
    assert [ask(server) for _ in range(6)] == [False] * 5 + [True]
    assert set(asked) == {MAX_RETRIES}

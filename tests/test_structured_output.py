"""Asking for structured output: which forms are tried, and what a dead server costs."""

from __future__ import annotations

import asyncio
import gc

import pytest
from inspect_ai.model import (
    ChatMessageUser,
    GenerateConfig,
    Model,
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
def asked() -> list[int | None]:
    # A run in this process leaves its settings, cache and all, as the defaults of later calls.
    set_active_generate_config(GenerateConfig())
    return []


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


class Unsupported(Exception):
    """What a provider raises for a request in a form that it doesn't take."""

    status_code = 400


Form = tuple[bool, float | None]


def picky(takes: Form, seen: list[Form]) -> Model:
    """Give a model that takes one form only: with a schema or not, at this temperature."""

    def respond(messages, tools, tool_choice, config: GenerateConfig) -> ModelOutput:
        seen.append((config.response_schema is not None, config.temperature))
        if seen[-1] != takes:
            raise Unsupported("no")
        output = ModelOutput.from_content("mockllm/model", "{}")
        output.usage = ModelUsage()
        return output

    return get_model("mockllm/model", custom_outputs=respond, memoize=False)


@pytest.mark.parametrize(
    ("takes", "tried"),
    [
        ((True, 0.0), [(True, 0.0)]),
        ((True, None), [(True, 0.0), (True, None)]),
        ((False, 0.0), [(True, 0.0), (True, None), (False, 0.0)]),
        ((False, None), [(True, 0.0), (True, None), (False, 0.0), (False, None)]),
    ],
)
def test_the_temperature_is_given_up_before_the_schema(asked, takes, tried) -> None:
    seen: list[Form] = []
    server = picky(takes, seen)
    assert ask(server)
    assert seen == tried
    assert ask(server)
    assert seen == [*tried, takes]


def test_what_is_known_of_a_model_ends_with_it(asked) -> None:
    seen: list[Form] = []
    assert ask(picky((False, None), seen))
    assert ask(picky((False, None), seen))
    assert len(seen) == 8
    gc.collect()
    assert not any(type(api).__name__ == "MockLLM" for api in structured_output._known)

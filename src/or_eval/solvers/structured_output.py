"""Asking a model for JSON: by a schema where it takes one, by the prompt alone where it doesn't."""

from __future__ import annotations

from collections import Counter
from typing import Any

from inspect_ai._util.http import status_code_of
from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelOutput, ResponseSchema
from inspect_ai.model._generate_config import active_generate_config
from pydantic import ValidationError

MAX_RETRIES = 6
"""Retries of a call where the user set none: Inspect would retry for ever, so that one dead model
would hold up the whole run. Its waits double from 3 s, so this is some 3 minutes."""

_FAILURE_CHARS = 200
# A server says with these that it doesn't take the request as it is, whoever sends it.
_REJECTING_STATUSES = frozenset({400, 415, 422, 501})

DEAD_AFTER = 3
"""Calls in a row that must fail for good before a model counts as dead. From then on a call is
tried once only, which notices at once when it is back; else each of thousands of calls would wait
out its retries."""

# The form each model took last in this process, by name, address and schema: rejections are paid
# for once.
_form_taken: dict[tuple[str, str | None, str], int] = {}
# Calls to each model, by name and address, that failed for good since one came through.
_failed_in_a_row: Counter[tuple[str, str | None]] = Counter()


async def generate_structured(
    model: Model,
    messages: list[ChatMessage],
    schema: ResponseSchema,
    *,
    temperature: float | None = 0.0,
) -> ModelOutput:
    """Call a model in the best form it takes: with the schema, without it, with nothing set.

    Inspect can't tell which model takes which, and a server that doesn't know an option may ignore
    or reject it. So the prompt alone has to suffice for a readable reply, and a model that rejects
    a form is asked in the next one.

    Args:
        model: The model.
        messages: The conversation; it says in words what the schema says.
        schema: The form of the reply.
        temperature: Sampling temperature, where the user has set none; None for the model's own.

    Raises:
        Exception: Whatever the provider raises once no form and no retry is left.
    """
    forms = (
        GenerateConfig(temperature=temperature, response_schema=schema),
        GenerateConfig(temperature=temperature),
        GenerateConfig(),
    )
    address = (str(model), model.api.base_url)
    asked = (*address, schema.name)
    for number in range(_form_taken.get(asked, 0), len(forms)):
        config = _config(forms[number], model, dead=_failed_in_a_row[address] >= DEAD_AFTER)
        try:
            output = await model.generate(messages, config=config)
        except Exception as error:
            if number + 1 < len(forms) and _rejects_form(error):
                continue
            if _serves_nobody(error):
                _failed_in_a_row[address] += 1
            raise
        _form_taken[asked] = number
        _failed_in_a_row[address] = 0
        return output
    raise AssertionError("a form is either taken or raises")


def failure(error: Exception, model: Model) -> str:
    """Say in one line why a call failed, without the request and without the key it was sent with.

    Args:
        error: What the call raised.
        model: The model that was called.
    """
    cause = _last_attempt(error)
    message = getattr(cause, "provider_message", None) or str(cause)
    if model.api.api_key:
        message = message.replace(model.api.api_key, "[key]")
    line = " ".join(message.split())[:_FAILURE_CHARS]
    return f"{type(cause).__name__}: {line}" if line else type(cause).__name__


def _config(form: GenerateConfig, model: Model, *, dead: bool) -> GenerateConfig:
    """Fit a form to what the user has set: the user's temperature and patience win."""
    config = form.model_copy()
    if model.config.temperature is not None:
        config.temperature = None
    run = active_generate_config()
    patience = (model.config.max_retries, model.config.timeout, run.max_retries, run.timeout)
    if all(setting is None for setting in patience):
        config.max_retries = 0 if dead else MAX_RETRIES
    # A model that balks here is dealt with by its caller; --fail-on-refusal is about the model
    # under test.
    config.fail_on_refusal = False
    return config


def _rejects_form(error: Exception) -> bool:
    # Without a status no server spoke: the provider can't make such a request, or found itself
    # that the reply doesn't fit the schema.
    return status_code_of(error) in _REJECTING_STATUSES or isinstance(
        error, (NotImplementedError, ValidationError)
    )


def _serves_nobody(error: Exception) -> bool:
    """Whether an error tells of the server, rather than of this request."""
    status = status_code_of(_last_attempt(error))
    return status is None or status == 429 or status >= 500


def _last_attempt(error: Any) -> Any:
    """Give the error behind tenacity's RetryError, which stands for the last of many attempts."""
    attempt = getattr(error, "last_attempt", None)
    return (attempt.exception() or error) if attempt is not None else error

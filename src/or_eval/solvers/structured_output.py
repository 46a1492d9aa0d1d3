"""Asking a model for JSON: by a schema where it takes one, by the prompt alone where it doesn't."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelOutput, ResponseSchema
from pydantic import ValidationError

from or_eval.inspect_private import active_generate_config
from or_eval.key_like import without_keys

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


@dataclass
class _Known:
    """What calls to a model have shown.

    Attributes:
        form_taken: The form it took last, by schema: rejections are paid for once.
        failed_in_a_row: Its calls that failed for good since one came through.
    """

    form_taken: dict[str, int] = field(default_factory=dict)
    failed_in_a_row: int = 0


# Kept by the model itself, not by its name: another server may stand at its address tomorrow.
_known: WeakKeyDictionary[Model, _Known] = WeakKeyDictionary()


async def generate_structured(
    model: Model,
    messages: list[ChatMessage],
    schema: ResponseSchema,
    *,
    temperature: float | None = 0.0,
) -> ModelOutput:
    """Call a model in the best form it takes, giving up the temperature before the schema.

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
    forms = _forms(schema, None if model.config.temperature is not None else temperature)
    taken = _known.setdefault(model, _Known()).form_taken
    for number in range(taken.get(schema.name, 0), len(forms)):
        try:
            output = await generate_patiently(model, messages, forms[number])
        except Exception as error:
            if number + 1 < len(forms) and _rejects_form(error):
                continue
            raise
        taken[schema.name] = number
        return output
    raise AssertionError("a form is either taken or raises")


async def generate_patiently(
    model: Model, messages: list[ChatMessage], config: GenerateConfig
) -> ModelOutput:
    """Call a model with retries that end, and few of them once it seems dead.

    Args:
        model: The model.
        messages: The conversation.
        config: Settings of the call; the user's patience wins.

    Raises:
        Exception: Whatever the provider raises once no retry is left.
    """
    known = _known.setdefault(model, _Known())
    fitted = _with_patience(config, model, dead=known.failed_in_a_row >= DEAD_AFTER)
    try:
        output = await model.generate(messages, config=fitted)
    except Exception as error:
        if _serves_nobody(error):
            known.failed_in_a_row += 1
        raise
    known.failed_in_a_row = 0
    return output


def failure(error: Exception, model: Model) -> str:
    """Say in one line why a call failed, without the request and without the key it was sent with.

    Args:
        error: What the call raised.
        model: The model that was called.
    """
    cause = _last_attempt(error)
    message = getattr(cause, "provider_message", None) or str(cause)
    apis = [model.api, *(member.model.api for member in getattr(model.api, "members", ()))]
    for key in filter(None, (api.api_key for api in apis)):
        message = message.replace(key, "[key]")
    line = " ".join(without_keys(message).split())[:_FAILURE_CHARS]
    return f"{type(cause).__name__}: {line}" if line else type(cause).__name__


def _forms(schema: ResponseSchema, temperature: float | None) -> list[GenerateConfig]:
    """Give the forms to try in order; with no temperature of ours there are fewer."""
    forms = [GenerateConfig(response_schema=schema), GenerateConfig()]
    if temperature is None:
        return forms
    return [
        form
        for plain in forms
        for form in (plain.model_copy(update={"temperature": temperature}), plain)
    ]


def _with_patience(config: GenerateConfig, model: Model, *, dead: bool) -> GenerateConfig:
    """Bound the retries, unless the user has; the user's patience wins."""
    config = config.model_copy()
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


def status_code_of(error: Any) -> int | None:
    """Give the HTTP status behind a provider's error; None where there is none."""
    # The OpenAI and Anthropic clients' name for it, and Google's.
    found = (getattr(error, name, None) for name in ("status_code", "code"))
    return next((status for status in found if isinstance(status, int)), None)


def _last_attempt(error: Any) -> Any:
    """Give the error behind tenacity's RetryError, which stands for the last of many attempts."""
    attempt = getattr(error, "last_attempt", None)
    return (attempt.exception() or error) if attempt is not None else error

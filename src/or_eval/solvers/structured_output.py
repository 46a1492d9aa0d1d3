"""Asking a model for JSON: by a schema where it takes one, by the prompt alone where it doesn't."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelOutput,
    ResponseSchema,
)
from pydantic import ValidationError

from or_eval.inspect_private import active_generate_config
from or_eval.key_like import without_keys

MAX_RETRIES = 6
"""Retries of a call where the user set none: Inspect would retry for ever, so that one dead model
would hold up the whole run. Its waits double from 3 s, so this is some 3 minutes."""

PATIENCE = 180
"""Seconds that a judge's call may take, and after which it isn't retried, where the user set no
others: a server that takes a request and never answers would be waited for ten minutes a try."""

_HASTE = 60
"""The same once it counts as dead."""

_CHECK_SECONDS, _CHECK_RETRIES = 120, 1
_FAILURE_CHARS = 200
# A server says with these that it doesn't take the request as it is, whoever sends it.
_REJECTING_STATUSES = frozenset({400, 415, 422, 501})

DEAD_AFTER = 3
"""Calls in a row that must fail for good before a model counts as dead. From then on a call is
tried once only, and not for long, which notices at once when it is back; else each of thousands of
calls would wait out its retries."""


@dataclass
class _Known:
    """What calls to a model have shown.

    Attributes:
        form_taken: The form it took last, by schema: rejections are paid for once.
        failed_in_a_row: Its calls that failed for good since one came through.
        answers: Whether one came through.
    """

    form_taken: dict[str, int] = field(default_factory=dict)
    failed_in_a_row: int = 0
    answers: bool = False


# Kept by what calls the server, which copies of a model share, and not by the model's name: another
# server may stand at its address tomorrow.
_known: WeakKeyDictionary[ModelAPI, _Known] = WeakKeyDictionary()


async def generate_structured(
    model: Model,
    messages: list[ChatMessage],
    schema: ResponseSchema,
    *,
    temperature: float | None = 0.0,
    patience: int | None = None,
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
        patience: As for :func:`generate_patiently`.

    Raises:
        Exception: Whatever the provider raises once no form and no retry is left.
    """
    forms = _forms(schema, None if model.config.temperature is not None else temperature)
    taken = _known.setdefault(model.api, _Known()).form_taken
    for number in range(taken.get(schema.name, 0), len(forms)):
        try:
            output = await generate_patiently(model, messages, forms[number], patience=patience)
        except Exception as error:
            if number + 1 < len(forms) and _rejects_form(error):
                continue
            raise
        taken[schema.name] = number
        return output
    raise AssertionError("a form is either taken or raises")


async def generate_patiently(
    model: Model,
    messages: list[ChatMessage],
    config: GenerateConfig,
    *,
    patience: int | None = None,
    retries: int = MAX_RETRIES,
) -> ModelOutput:
    """Call a model with retries that end, and few of them once it seems dead.

    Args:
        model: The model.
        messages: The conversation.
        config: Settings of the call; the user's patience wins.
        patience: Seconds that it may take, where neither user nor provider set any.
        retries: Retries where the user set none.

    Raises:
        Exception: Whatever the provider raises once no retry is left.
    """
    known = _known.setdefault(model.api, _Known())
    dead = known.failed_in_a_row >= DEAD_AFTER
    if dead:
        patience, retries = patience and min(patience, _HASTE), 0
    fitted = _with_patience(config, model, patience, retries)
    try:
        output = await model.generate(messages, config=fitted)
    except Exception as error:
        if _serves_nobody(error):
            known.failed_in_a_row += 1
        raise
    known.failed_in_a_row, known.answers = 0, True
    return output


def known_to_answer(model: Model) -> None:
    """Take a model for one that answers, as it was called before, or what it said is at hand."""
    _known.setdefault(model.api, _Known()).answers = True


async def problem_reaching(
    model: Model, messages: list[ChatMessage], config: GenerateConfig
) -> str | None:
    """Call a model that hasn't answered yet, and say in one line why it can't be asked, if so.

    Args:
        model: The model.
        messages: A short question, in a form that it takes.
        config: Settings of the call; left out once, where the model rejects it.
    """
    if _known.setdefault(model.api, _Known()).answers:
        return None
    for form in (config.model_copy(update={"cache": False}), GenerateConfig(cache=False)):
        try:
            await generate_patiently(
                model, messages, form, patience=_CHECK_SECONDS, retries=_CHECK_RETRIES
            )
        except Exception as error:
            said = failure(error, model)
            if not _rejects_form(error):
                break
        else:
            return None
    return said


def failure(error: Exception, model: Model) -> str:
    """Say in one line why a call failed, without the request and without the key it was sent with.

    Args:
        error: What the call raised.
        model: The model that was called.
    """
    cause = last_attempt_of(error)
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


def _with_patience(
    config: GenerateConfig, model: Model, patience: int | None, retries: int
) -> GenerateConfig:
    """Bound retries and waiting, unless the user has; the user's patience wins."""
    config = config.model_copy()
    users = active_generate_config().merge(model.config)
    # The answers of a batch come when they come.
    seconds = None if users.batch else patience
    if users.max_retries is None and users.timeout is None:
        config.max_retries, config.timeout = retries, seconds
    if seconds is not None:
        # Inspect looks at `timeout` between two attempts only, and doesn't hand the run's
        # `attempt_timeout` to a role. A client's own is a wait for a slow machine.
        own = int(getattr(model.api, "client_timeout", None) or 0)
        config.attempt_timeout = users.attempt_timeout or users.timeout or max(own, seconds)
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
    status = status_code_of(last_attempt_of(error))
    return status is None or status == 429 or status >= 500


def status_code_of(error: Any) -> int | None:
    """Give the HTTP status behind a provider's error; None where there is none."""
    # The OpenAI and Anthropic clients' name for it, and Google's.
    found = (getattr(error, name, None) for name in ("status_code", "code"))
    return next((status for status in found if isinstance(status, int)), None)


def last_attempt_of(error: Any) -> Any:
    """Give the error behind tenacity's RetryError, which stands for the last of many attempts."""
    attempt = getattr(error, "last_attempt", None)
    return (attempt.exception() or error) if attempt is not None else error

"""Asking one judge about one case: its reply, one repair question, and what a failure leaves."""

from __future__ import annotations

from typing import Any, NamedTuple

from inspect_ai._util.http import status_code_of
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    ResponseSchema,
)
from inspect_ai.model._generate_config import active_generate_config
from inspect_ai.util import JSONSchema
from pydantic import ValidationError

from or_eval.schema import ResponseClass
from or_eval.scorers.judge.case import Case, judge_prompt, shorten_middle
from or_eval.scorers.judge.reading import ReadVerdict, read_verdict
from or_eval.scorers.reasoning import blank_reasoning

MAX_RETRIES = 6
"""Retries of a judge's call where the user set none: Inspect would retry for ever, so that one
dead judge would hold up the whole run. Its waits double from 3 s, so this is some 3 minutes."""

_REPEATED_REPLY_CHARS = 2_000
_FAILURE_CHARS = 200
# A server says with these that it doesn't take the request as it is, whoever sends it.
_REJECTING_STATUSES = frozenset({400, 415, 422, 501})

_VERDICT_SCHEMA = ResponseSchema(
    name="verdict",
    json_schema=JSONSchema(
        type="object",
        properties={
            "why": JSONSchema(type="string"),
            "verdict": JSONSchema(type="string", enum=[label.value for label in ResponseClass]),
            "key": JSONSchema(type="string"),
        },
        required=["why", "verdict", "key"],
        additionalProperties=False,
    ),
    strict=True,
)

# What is asked for beyond the question itself, from the best to the least. Inspect can't tell which
# model takes which, and a server that doesn't know an option may ignore or reject it. The prompt
# alone suffices for a readable verdict, so a model that rejects a form is asked in the next one.
_FORMS = (
    GenerateConfig(temperature=0.0, response_schema=_VERDICT_SCHEMA),
    GenerateConfig(temperature=0.0),
    GenerateConfig(),
)
# The form each judge took last in this process, by name and address: rejections are paid for once.
_form_taken: dict[tuple[str, str | None], int] = {}


class Vote(NamedTuple):
    """What one judge said.

    Attributes:
        model: Name of the judge.
        label: The class it gave; None where it failed.
        reason: Its reason in its own words, or, without a class, why it has none.
    """

    model: str
    label: ResponseClass | None
    reason: str | None


async def ask_judge(judge: Model, case: Case) -> Vote:
    """Ask a judge for its verdict on a case; whatever goes wrong costs its vote, not the sample."""
    messages: list[ChatMessage] = [
        ChatMessageSystem(content=judge_prompt().system),
        ChatMessageUser(content=case.question),
    ]
    try:
        reply = await _generate(judge, messages)
        verdict = _read(reply, case)
        if verdict is None and not _blocked(reply):
            messages += _repair_messages(reply, case)
            reply = await _generate(judge, messages)
            verdict = _read(reply, case)
    except Exception as error:
        return Vote(str(judge), None, _failure(error, judge))
    if verdict is not None:
        return Vote(str(judge), verdict.label, verdict.why)
    if _blocked(reply):
        return Vote(str(judge), None, "its provider blocked the request (content_filter)")
    return Vote(str(judge), None, "no readable verdict, asked twice")


async def _generate(judge: Model, messages: list[ChatMessage]) -> ModelOutput:
    """Call the judge in the best form it takes."""
    address = (str(judge), judge.api.base_url)
    first = _form_taken.get(address, 0)
    for number in range(first, len(_FORMS)):
        try:
            output = await judge.generate(messages, config=_config(_FORMS[number], judge))
        except Exception as error:
            if number + 1 < len(_FORMS) and _rejects_form(error):
                continue
            raise
        _form_taken[address] = number
        return output
    raise AssertionError("a form is either taken or raises")


def _config(form: GenerateConfig, judge: Model) -> GenerateConfig:
    """Fit a form to what the user has set: the user's temperature and patience win."""
    config = form.model_copy()
    if judge.config.temperature is not None:
        config.temperature = None
    run = active_generate_config()
    patience = (judge.config.max_retries, judge.config.timeout, run.max_retries, run.timeout)
    if all(setting is None for setting in patience):
        config.max_retries = MAX_RETRIES
    # A judge that balks at a case withholds its vote; --fail-on-refusal is about the model tested.
    config.fail_on_refusal = False
    return config


def _rejects_form(error: Exception) -> bool:
    # Without a status no server spoke: the provider can't make such a request, or found itself
    # that the reply doesn't fit the schema.
    return status_code_of(error) in _REJECTING_STATUSES or isinstance(
        error, (NotImplementedError, ValidationError)
    )


def _read(reply: ModelOutput, case: Case) -> ReadVerdict | None:
    return read_verdict(blank_reasoning(reply.completion).text, case.key)


def _blocked(reply: ModelOutput) -> bool:
    return not reply.empty and reply.stop_reason == "content_filter"


def _repair_messages(reply: ModelOutput, case: Case) -> list[ChatMessage]:
    """Go on with the conversation; a reply with no text is left out, as servers reject it."""
    said = blank_reasoning(reply.completion).text.strip()
    short = shorten_middle(said, _REPEATED_REPLY_CHARS)
    repeated: list[ChatMessage] = [ChatMessageAssistant(content=short)] if short else []
    return [*repeated, ChatMessageUser(content=case.repair)]


def _failure(error: Exception, judge: Model) -> str:
    """Say in one line what failed, without the request, and without the key it was sent with."""
    cause = _last_attempt(error)
    message = getattr(cause, "provider_message", None) or str(cause)
    if judge.api.api_key:
        message = message.replace(judge.api.api_key, "[key]")
    line = " ".join(message.split())[:_FAILURE_CHARS]
    return f"{type(cause).__name__}: {line}" if line else type(cause).__name__


def _last_attempt(error: Any) -> Any:
    """Give the error behind tenacity's RetryError, which stands for the last of many attempts."""
    attempt = getattr(error, "last_attempt", None)
    return (attempt.exception() or error) if attempt is not None else error

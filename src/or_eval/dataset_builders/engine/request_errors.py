"""Whose business a failed call is: this one request's, or that of all that a stage asks."""

from __future__ import annotations

from typing import Any, Literal

import re2
from inspect_ai.model import Model

from or_eval.solvers.structured_output import last_attempt_of, status_code_of

Problem = Literal["blocked", "failed"]

BLOCKED: Problem = "blocked"
"""The provider won't have the content of a request or of its reply."""
FAILED: Problem = "failed"
"""The provider rejects this request for another reason, and may take the next."""

# A server says with these that it is the request at hand that it doesn't take.
_OF_REQUEST = frozenset({400, 413, 422, 451})
# And with these that it is whoever sends it, or the address.
_OF_ALL = frozenset({401, 403, 404})
# Some gateways say with 403 that they flagged a text; without such a word, it is the key's.
_OF_REQUEST_OR_KEY = 403
_OF_CONTENT = re2.compile(
    r"(?i)content.{0,40}(risk|filter|polic|moderat|manage|safety|violat|restrict|block|exist)"
    r"|(risk|filter|polic|moderat|safety|violat|inappropriate|sensitive|harmful|unsafe).{0,40}"
    r"(content|prompt|input|text|message)"
    r"|data.?inspection|flagged|moderation|responsible.?ai|safety (system|filter|check)"
    r"|usage polic|prohibited|敏感|违规|违禁|不合规|内容安全|内容风险"
)
_OF_LENGTH = re2.compile(
    r"(?i)(prompt|input|request|message|content|payload|entity).{0,40}too (long|large|many)"
    r"|context.{0,10}(length|window)|reduce the length|token limit"
)
# A model or an option of its that this provider doesn't know; each request says the same.
_OF_SETTINGS = re2.compile(
    r"(?i)(unknown|invalid|unsupported|unrecognized|no such|incorrect)[ _](request )?"
    r"(model|parameter|argument|option|api key)"
    r"|model.{0,80}(not (exist|found|supported|available|valid)|doesn't exist)"
    r"|(with|for|by) this model"
)
# An account that is closed to every request, a provider's words for content notwithstanding.
_OF_ACCOUNT = re2.compile(
    r"(?i)(organi[sz]ation|account|workspace|subscription|api.?key).{0,30}"
    r"(has|have|was|were|is|are) (been )?.{0,20}"
    r"(disabled|suspended|deactivated|terminated|banned|restricted|flagged)"
    r"|(location|country|region|territory).{0,20}not supported"
    r"|(access|auth)[ _]?token.{0,20}(expired|invalid|revoked)"
)
# Of these, what no option of a request changes. Forms of a request that a model won't have are
# tried one after the other, and are no failure.
_OF_MODEL_OR_KEY = re2.compile(
    r"(?i)(unknown|invalid|no such|incorrect|not a valid)[ _](model|api key)"
    r"|model.{0,80}(not (exist|found|valid)|doesn't exist|no longer|decommissioned|deprecated)"
    r"|模型不存在|无效的.{0,3}(API|密钥)"
    r"|api.?key.{0,40}(not valid|invalid|incorrect|expired|revoked|not found)"
)
_OF_QUOTA = re2.compile(
    r"(?i)insufficient[ _](quota|balance|credit|fund)|quota.{0,20}exceeded|exceeded.{0,30}quota"
    r"|(out of|used all).{0,20}credits|credit balance|billing|spending limit|payment required"
    r"|key limit exceeded|reached your .{0,30}usage limit"
    r"|account.{0,20}(overdue|suspended)|arrearage|余额不足|欠费"
)
# A quota of minutes is a limit that passes; Google says of both that a quota was exceeded.
_OF_PACE = re2.compile(r"(?i)per.?(minute|second)|(try again|retry) (in|after)|retry.?delay")
_OF_DAY = re2.compile(r"(?i)per_?day")
_RATE_LIMIT = 429
_PAYMENT = 402
_OF_FLAG = re2.compile(r"(?i)flagged|moderation|content.{0,20}(filter|safety|risk)")


class ConcernsAll(Exception):
    """A call failed for what no other request would change."""


def request_problem(error: Exception) -> Problem | None:
    """Tell what is wrong with a request, by the error of its call.

    Args:
        error: What the call raised.

    Returns:
        ``blocked`` for its content, ``failed`` for something else about it; None where the error
        concerns every request: a wrong key, an unknown model or option, a limit, a server that is
        down.
    """
    _, status, said = _parts(error)
    if status in _OF_REQUEST | {_OF_REQUEST_OR_KEY} and _OF_ACCOUNT.search(said):
        return None
    if status == _OF_REQUEST_OR_KEY:
        return BLOCKED if _OF_FLAG.search(said) else None
    if status not in _OF_REQUEST:
        return None
    if status == 451 or _OF_CONTENT.search(said):
        return BLOCKED
    if _OF_QUOTA.search(said) or _OF_MODEL_OR_KEY.search(said):
        return None
    return None if _OF_SETTINGS.search(said) and not is_of_length(said) else FAILED


def concern_of_all(error: Exception) -> str | None:
    """Name what is wrong with every request to a model: its key, account, name, or no answer.

    Args:
        error: What the call raised.

    Returns:
        The same word for the same fault; None where another request may fare better, or the same
        one later.
    """
    last, status, said = _parts(error)
    if request_problem(last) is not None:
        return None
    # A client's own time-out; servers' have a status.
    if isinstance(last, ConcernsAll) or (status is None and "Timeout" in type(last).__name__):
        return type(last).__name__
    if status == _PAYMENT or is_of_quota(status, said):
        return "quota"
    of_all = _OF_MODEL_OR_KEY.search(said) or _OF_ACCOUNT.search(said)
    if status in _OF_ALL or (status in _OF_REQUEST and of_all):
        return str(status)
    return None


def is_of_request(error: Exception) -> bool:
    """Tell whether a server that takes requests says something of this one."""
    status = status_code_of(last_attempt_of(error))
    return status in _OF_REQUEST or request_problem(error) is not None


def is_of_quota(status: int | None, said: str) -> bool:
    """Tell whether a provider says that an account is used up, which no retry outlasts."""
    if status != _RATE_LIMIT:
        return status in _OF_REQUEST and bool(_OF_QUOTA.search(said))
    return bool(_OF_QUOTA.search(said) and (_OF_DAY.search(said) or not _OF_PACE.search(said)))


def tell_quotas_at_once(model: Model) -> None:
    """Keep a provider's client from asking again, by itself, where an account is used up."""
    hooks = getattr(getattr(model.api, "http_client", None), "event_hooks", None)
    if hooks is None:
        return

    async def hook(response: Any) -> None:
        if response.status_code == _RATE_LIMIT:
            await response.aread()
            if is_of_quota(_RATE_LIMIT, response.text):
                response.headers["x-should-retry"] = "false"  # which the clients obey

    hooks["response"].append(hook)


def is_of_length(said: str) -> bool:
    """Tell whether a provider finds a request too long, which another one needn't be."""
    return bool(_OF_LENGTH.search(said))


def _parts(error: Exception) -> tuple[Any, int | None, str]:
    """Give the error behind an error, its status, and what the provider said."""
    last = last_attempt_of(error)
    # Not the error itself where it tells more: it quotes the request, which is what alarms.
    said = getattr(last, "provider_message", None) or str(last)
    return last, status_code_of(last), said

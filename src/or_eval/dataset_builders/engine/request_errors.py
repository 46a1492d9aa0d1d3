"""Whose business a failed call is: this one request's, or that of all that a stage asks."""

from __future__ import annotations

from typing import Any, Literal

import re2

from or_eval.solvers.structured_output import status_code_of

Problem = Literal["blocked", "failed"]

BLOCKED: Problem = "blocked"
"""The provider won't have the content of a request or of its reply."""
FAILED: Problem = "failed"
"""The provider rejects this request for another reason, and may take the next."""

# A server says with these that it is the request at hand that it doesn't take.
_OF_REQUEST = frozenset({400, 413, 422, 451})
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
_OF_FLAG = re2.compile(r"(?i)flagged|moderation|content.{0,20}(filter|safety|risk)")


def request_problem(error: Exception) -> Problem | None:
    """Tell what is wrong with a request, by the error of its call.

    Args:
        error: What the call raised.

    Returns:
        ``blocked`` for its content, ``failed`` for something else about it; None where the error
        concerns every request: a wrong key, an unknown model or option, a limit, a server that is
        down.
    """
    last = _last_attempt(error)
    status = status_code_of(last)
    # Not the error itself where it tells more: it quotes the request, which is what alarms.
    said = getattr(last, "provider_message", None) or str(last)
    if status == _OF_REQUEST_OR_KEY:
        return BLOCKED if _OF_FLAG.search(said) else None
    if status not in _OF_REQUEST:
        return None
    if status == 451 or _OF_CONTENT.search(said):
        return BLOCKED
    return None if _OF_SETTINGS.search(said) and not is_of_length(said) else FAILED


def is_of_length(said: str) -> bool:
    """Tell whether a provider finds a request too long, which another one needn't be."""
    return bool(_OF_LENGTH.search(said))


def _last_attempt(error: Any) -> Any:
    """Give the error behind tenacity's RetryError, which stands for the last of many attempts."""
    attempt = getattr(error, "last_attempt", None)
    return (attempt.exception() or error) if attempt is not None else error

"""What the Hub and its client say when something fails, as one line that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from or_eval.dataset_builders.errors import BuildError
from or_eval.hostile_text import shortened, visible
from or_eval.key_like import without_keys

_SAID_CHARS = 200
_AGAIN = "run the same command again"


@contextmanager
def hub_errors(doing: str) -> Iterator[None]:
    """Turn what fails in talking to the Hub into a :class:`BuildError`.

    Args:
        doing: What is being done, as the line begins: ``acme/prompts: pushing``.
    """
    try:
        yield
    except BuildError:
        raise
    except Exception as error:
        # The client raises errors of five libraries; each is the user's to solve, not ours.
        raise BuildError(f"{doing}: {_problem(error)}") from error


def _problem(error: BaseException) -> str:
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    if isinstance(error, OfflineModeIsEnabled):
        return "HF_HUB_OFFLINE is set, so the Hub is not asked"
    if isinstance(error, HfHubHTTPError):
        return _answer(error.response.status_code, error.server_message or "")
    said = _said(str(error)) or type(error).__name__
    if _is_of_the_network(error):
        return f"the connection to the Hub failed ({said}); check the network and {_AGAIN}"
    # What reads the files wraps what went wrong on the way.
    return _problem(error.__cause__) if error.__cause__ is not None else said


def _is_of_the_network(error: BaseException) -> bool:
    # By name: which release of httpx the client is built on is its own affair.
    modules = (kind.__module__.partition(".")[0] for kind in type(error).__mro__)
    return isinstance(error, ConnectionError | TimeoutError) or any(
        module in ("httpx", "httpx2", "requests") for module in modules
    )


def _answer(status: int, message: str) -> str:
    said = f"the Hub answers {status}" + (f", {_said(message)!r}" if message else "")
    match status:
        case 401:
            todo = "the token isn't valid: run `hf auth login`, or set HF_TOKEN to another"
        case 402 | 403:
            todo = "the token may not do this: it needs write access to the repository's owner"
        case 404:
            todo = "there is no such repository or revision, or the token can't see it"
        case 409 | 412:
            todo = f"somebody else is changing it, or just did: look at it, and {_AGAIN}"
        case 429:
            todo = f"it is asked too often: wait some minutes and {_AGAIN}"
        case status if status >= 500:
            todo = f"it has trouble of its own: {_AGAIN} later"
        case _:
            return said
    return f"{said}; {todo}"


def _said(text: str) -> str:
    return shortened(visible(" ".join(without_keys(text).split())), _SAID_CHARS).rstrip(".")

"""What stops a process's calls: a model that fails whoever asks it, or replies that can't be kept.

A call that fails for what concerns every request (a key, an account, a model's name, no answer)
has those that aren't out yet wait until another one is answered. A few such failures in a row, and
no more is asked of the model. Of a reply that can't be written down, no more is asked at all.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import Any

import anyio
from inspect_ai.model import GenerateConfig, Model
from inspect_ai.util import EarlyStop

from or_eval.dataset_builders.engine.models import BoundModel
from or_eval.dataset_builders.engine.request_errors import (
    ConcernsAll,
    concern_of_all,
    is_of_request,
)
from or_eval.solvers.structured_output import failure

SECONDS = 300
"""Until a call without an answer has failed, where the user sets no other time."""

_IN_A_ROW = 3
_LOOK_AGAIN = 0.02
# Of the user's time, so that a call has failed here before Inspect cuts it off without a word.
_JUST_BEFORE = 0.98


class NoAnswer(ConcernsAll):
    """A call took too long."""


class Stopped(Exception):
    """No more is asked."""


@contextmanager
def in_time(config: GenerateConfig) -> Iterator[None]:
    """Give up a call that isn't answered in time.

    Raises:
        NoAnswer: It wasn't.
    """
    # A batch may take a day.
    said = config.attempt_timeout or config.timeout or SECONDS
    with anyio.move_on_after(None if config.batch else said * _JUST_BEFORE) as scope:
        yield
    if scope.cancelled_caught:
        raise NoAnswer(f"no answer in {said} s (--timeout sets another time)")


@dataclass
class _Calls:
    """The calls to a model.

    Attributes:
        name: Its name.
        under_way: Those that are out.
        failures: Those in a row that failed alike for what concerns all of them.
        concern: What they failed for.
        why: Why no more is asked.
    """

    name: str
    under_way: int = 0
    failures: int = 0
    concern: str = ""
    why: str = ""

    def failed(self, error: Exception, model: Model) -> None:
        concern = concern_of_all(error)
        if concern is None:
            if is_of_request(error):
                self.failures = 0  # the model was there for this one
            return
        self.failures = self.failures + 1 if concern == self.concern else 1
        self.concern = concern
        if self.failures >= _IN_A_ROW:
            said = failure(error, model)
            self.why = (
                f"{self.name}: {_IN_A_ROW} calls failed in a row, so it is asked no more: {said}"
            )


class Stopping:
    """Lets the calls of a process out as long as there is sense in them.

    Attributes:
        unkept: Why replies can't be kept, once one couldn't.
        lost: Replies that couldn't be kept, and calls that were cut off.
    """

    def __init__(self) -> None:
        self.unkept = ""
        self.lost = 0
        self._calls: dict[str, _Calls] = {}

    @property
    def broken(self) -> list[str]:
        """Why no more is asked of some models."""
        return [calls.why for calls in self._calls.values() if calls.why]

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Let no call out after a reply that couldn't be kept."""
        try:
            yield
        except (OSError, sqlite3.OperationalError) as error:
            self.lost += 1
            self.note(str(error))
            raise

    def note(self, unkept: str) -> None:
        """Let no call out any more, since something couldn't be written."""
        self.unkept = self.unkept or unkept

    def guarded(self, model: Model, bound: BoundModel) -> Model:
        """Have a model's calls wait where one has failed, and not go out where several have."""
        send = model.api.generate
        calls = self._calls.setdefault(bound.identity, _Calls(bound.name))

        @wraps(send)
        async def generate(input: Any, tools: Any, tool_choice: Any, config: GenerateConfig) -> Any:
            # Those under way tell whether a failure was that call's alone.
            while calls.failures and calls.under_way and not self.why([bound]):
                await anyio.sleep(_LOOK_AGAIN)
            if self.why([bound]):
                raise Stopped("no more is asked")
            calls.under_way += 1
            try:
                # A pool has a time for each of its endpoints.
                with nullcontext() if bound.members else in_time(config):
                    found = await send(input, tools, tool_choice, config)
            except anyio.get_cancelled_exc_class():
                self.lost += 1
                raise
            except Exception as error:
                calls.failed(error, model)
                raise
            finally:
                calls.under_way -= 1
            output = found[0] if isinstance(found, tuple) else found
            if isinstance(output, Exception):
                calls.failed(output, model)
            else:
                calls.failures = 0
            return found

        model.api.generate = generate  # type: ignore[method-assign]
        return model

    def why(self, models: Iterable[BoundModel]) -> str:
        """Say why no more is asked of one of some models; nothing where all are asked."""
        asked = (self._calls.get(model.identity) for model in models)
        return self.unkept or next((calls.why for calls in asked if calls and calls.why), "")


class Unless:
    """Has Inspect begin no sample of which nothing could be asked.

    Args:
        why: Says of a sample why it can't, if so.
    """

    def __init__(self, why: Callable[[str], str]) -> None:
        self._why = why

    async def start_task(self, task: Any, samples: Any, epochs: int) -> str:
        """Give a name."""
        return "or_eval"

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:
        """Stop a sample where it would only fail."""
        why = self._why(str(id))
        return EarlyStop(id=id, epoch=epoch, reason=why) if why else None

    async def complete_sample(self, id: str | int, epoch: int, scores: Any) -> None:
        """Take no notice."""

    async def complete_task(self) -> dict[str, Any]:
        """Tell nothing else."""
        return {}

"""The calls of one process to models: kept and counted as replies come, and stopped where vain.

A call that fails for what concerns every request (a key, an account, a model's name, no answer)
has those that aren't out yet wait until another one is answered. A few such failures in a row, and
no more is asked of the model. Of a reply that can't be written down, no more is asked at all, and
nothing that might cost more than is left.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any

import anyio
from inspect_ai.model import GenerateConfig, Model, ModelOutput, ModelUsage
from inspect_ai.util import EarlyStop

from or_eval.dataset_builders.engine.conversations import Reply
from or_eval.dataset_builders.engine.models import TRANSPORT, BoundModel, digest_of
from or_eval.dataset_builders.engine.prices import Prices, dollars
from or_eval.dataset_builders.engine.replies import Replies
from or_eval.dataset_builders.engine.request_errors import (
    BLOCKED,
    FAILED,
    ConcernsAll,
    concern_of_all,
    is_of_length,
    is_of_request,
    request_problem,
)
from or_eval.dataset_builders.engine.stage import TARGET, estimated_tokens
from or_eval.inspect_private import running_epoch
from or_eval.solvers.structured_output import failure, known_to_answer

SECONDS = 300
"""Until a call without an answer has failed, where the user sets no other time."""

_IN_A_ROW = 3
_REJECTS_ALL = 10
_LOOK_AGAIN = 0.02
# Of the user's time, so that a call has failed here before Inspect cuts it off without a word.
_JUST_BEFORE = 0.98
_FIRST_GUESS = 4_000
"""Tokens that a reply is reckoned with while none of its kind has come, and no limit is set."""


class NoAnswer(ConcernsAll):
    """A call took too long."""


class CallFailed(Exception):
    """A call failed for good, not because of its request, or wasn't let out; a build goes on."""


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
class _Asked:
    """What came of the calls to a model.

    Attributes:
        name: Its name.
        under_way: Those that are out.
        failures: Those in a row that failed alike for what concerns all of them.
        concern: What they failed for.
        why: Why no more is asked.
        heard: Whether it has taken a question.
        rejected: What it said of questions that it rejected, while it has taken none.
        kept_later: What is to be kept then, if it isn't that it rejects all of them.
    """

    name: str
    under_way: int = 0
    failures: int = 0
    concern: str = ""
    why: str = ""
    heard: bool = False
    rejected: list[str] = field(default_factory=list)
    kept_later: list[Callable[[], None]] = field(default_factory=list)

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
                f"{self.name}: {_IN_A_ROW} calls failed in a row, so it gets no more requests: "
                f"{said}"
            )

    def keep(self) -> None:
        """Keep what is to be kept."""
        while self.kept_later:
            self.kept_later.pop(0)()

    def rejects_all(self) -> bool:
        """Tell whether it isn't the single request that is wrong: all have to be asked again."""
        if self.heard or len(self.rejected) < 2:
            return False
        said = set(self.rejected)
        alike = len(said) == 1 and not is_of_length(*said)
        return alike or len(self.rejected) >= _REJECTS_ALL


class Calls:
    """Lets a process's calls out as long as there is sense in them, and keeps what comes.

    What was under way when a process was killed is not counted, since its reply never came.

    Args:
        replies: Where replies are kept.
        prices: Prices that the user gives.
        left: Most dollars to be spent; None for no limit.

    Attributes:
        replies: Where replies are kept.
        too_dear: Whether calls were held back since they might have cost too much.
        unkept: Why replies can't be kept, once one couldn't.
        lost: Replies that couldn't be kept, and calls that were cut off.
    """

    def __init__(self, replies: Replies, prices: Prices, left: float | None = None) -> None:
        self.replies, self._prices, self._left = replies, prices, left
        self._largest: dict[tuple[str, str], ModelUsage] = {}
        self._reserved, self._under_way = 0.0, 0
        self._asked: dict[str, _Asked] = {}
        self.too_dear, self.unkept, self.lost = False, "", 0

    def broken(self) -> list[str]:
        """Say of models why no more is asked of them."""
        return [asked.why for asked in self._asked.values() if asked.why]

    def why(self, models: Iterable[BoundModel]) -> str:
        """Say why no more is asked of one of some models; nothing where all are asked."""
        asked = (self._asked.get(model.identity) for model in models)
        return self.unkept or next((one.why for one in asked if one and one.why), "")

    def note(self, unkept: str) -> None:
        """Let no call out any more, since something couldn't be written."""
        self.unkept = self.unkept or unkept

    def heard(self, reply: Reply, model: BoundModel) -> None:
        """Know of a reply that came in an earlier run."""
        self._asked[model.identity].heard |= reply.problem != FAILED

    def keep(self, key: str, n: int, reply: Reply, model: BoundModel) -> None:
        """Keep the reply to the nth request of a question, which has just come."""
        asked = self._asked[model.identity]
        put = partial(self.replies.put, key, n, reply)
        with self._keeping():
            asked.kept_later.append(put)
            if reply.problem == FAILED and not asked.heard:
                asked.rejected.append(reply.text)
            else:
                asked.heard = True
                asked.keep()

    def end(self, key: str, size: int) -> None:
        """Note that a question is answered."""
        end = partial(self.replies.end, key, size)
        waiting = [asked.kept_later for asked in self._asked.values() if asked.kept_later]
        with self._keeping():
            waiting[0].append(end) if waiting else end()

    def rejected(self) -> list[str]:
        """Keep what providers rejected, where they don't reject all; give what those said."""
        found = []
        for asked in self._asked.values():
            if asked.rejects_all():
                found += asked.rejected
            else:
                with self._keeping():
                    asked.keep()
        return found

    def watched(
        self, model: Model, bound: BoundModel, role: str, stage: str, remember: bool = False
    ) -> Model:
        """Have a model's calls let out where there is sense in them, and counted.

        Args:
            model: The model.
            bound: What it was made of.
            role: The role that it is asked in.
            stage: The stage that it is asked for.
            remember: Keep what it says to a whole request, by epoch, and never ask that again.
                That a provider blocks a prompt under test is said to it, too.
        """
        asked = self._asked.setdefault(bound.identity, _Asked(bound.name))
        send = model.api.generate

        @wraps(send)
        async def generate(input: Any, tools: Any, tool_choice: Any, config: GenerateConfig) -> Any:
            key, epoch, reserved = "", running_epoch() if remember else None, 0.0
            if epoch is not None:
                settings = config.model_dump(exclude=TRANSPORT, exclude_none=True)
                messages = [(message.role, message.text) for message in input]
                key = digest_of([bound.identity, messages, settings])[:32]
                if (said := self.replies.get(key, epoch)) is not None:
                    return ModelOutput.model_validate(said)
            if self._left is not None:
                reserved = await self._reserve(bound.name, role, input, config.max_tokens)
            self._under_way += 1
            found: Any
            try:
                if asked.failures or asked.why or self.unkept:
                    await self._wait(asked, bound)
                # A pool has a time for each of its endpoints.
                with self._out(asked), nullcontext() if bound.members else in_time(config):
                    found = await send(input, tools, tool_choice, config)
            except Exception as error:
                found = error
            finally:
                self._reserved -= reserved
                self._under_way -= 1
            output = found[0] if isinstance(found, tuple) else found
            if isinstance(output, Exception):
                asked.failed(output, model)
                blocked = role == TARGET and request_problem(output) == BLOCKED
                if epoch is None or not blocked:
                    if output is found:
                        raise output
                    return found
                said = failure(output, model)
                found = output = ModelOutput.from_content(str(model), "", "content_filter", said)
            else:
                asked.failures = 0
                with self._keeping():
                    used = output.usage or ModelUsage()
                    self.replies.spend(stage, role, bound.name, used)
                    if self._left is not None:
                        self._left -= self._cost(bound.name, role, used)
            if epoch is not None:
                with self._keeping():
                    self.replies.put(key, epoch, output.model_dump(mode="json"))
            return found

        model.api.generate = generate  # type: ignore[method-assign]
        if remember:
            known_to_answer(model)  # the build called it before its first stage
        return model

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """Let no call out after a reply that couldn't be kept."""
        try:
            yield
        except (OSError, sqlite3.OperationalError) as error:
            self.lost += 1
            self.note(str(error))
            raise

    async def _wait(self, asked: _Asked, bound: BoundModel) -> None:
        """Wait where a call to a model has failed, and let none out where several have.

        Raises:
            CallFailed: No more is asked of it.
        """
        # Those under way tell whether a failure was that call's alone.
        while asked.failures and asked.under_way and not self.why([bound]):
            await anyio.sleep(_LOOK_AGAIN)
        if self.why([bound]):
            raise CallFailed("no more requests go out")

    @contextmanager
    def _out(self, asked: _Asked) -> Iterator[None]:
        """Count a call that is under way, and one that is cut off."""
        asked.under_way += 1
        try:
            yield
        except anyio.get_cancelled_exc_class():
            self.lost += 1
            raise
        finally:
            asked.under_way -= 1

    async def _reserve(
        self, name: str, role: str, messages: Sequence[Any], max_tokens: int | None
    ) -> float:
        """Wait until what a call may cost can be set aside: what the dearest of its kind did.

        Raises:
            CallFailed: Nothing is under way any more, and too little is left.
        """
        sent = 2 * estimated_tokens(*(message.text for message in messages))
        while True:
            largest = self._largest.get((name, role))
            tokens = max_tokens or (_FIRST_GUESS if largest is None else largest.output_tokens)
            usage = ModelUsage(input_tokens=sent, output_tokens=tokens)
            cost = max(self._dollars(name, one) for one in (usage, largest) if one is not None)
            fits = self._reserved + cost <= (self._left or 0)
            if fits and (largest is not None or not self._under_way):
                break
            if not self._under_way:
                self.too_dear = True
                raise CallFailed("the next call might cost more than is left of --max-cost")
            await anyio.sleep(_LOOK_AGAIN)
        self._reserved += cost
        return cost

    def _cost(self, name: str, role: str, usage: ModelUsage) -> float:
        """Give what a call cost, and know the dearest of its kind."""
        cost = self._dollars(name, usage)
        largest = self._largest.setdefault((name, role), usage)
        if cost > self._dollars(name, largest):
            self._largest[name, role] = usage
        return cost

    def _dollars(self, name: str, usage: ModelUsage) -> float:
        return dollars(name, usage, self._prices) or 0.0


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

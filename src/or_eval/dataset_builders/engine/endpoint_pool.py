"""A pool: one model at several endpoints, or with several keys, asked as if it were at one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import anyio
from inspect_ai.model import (
    CachePolicy,
    ChatMessage,
    GenerateConfig,
    Model,
    ModelAPI,
)
from inspect_ai.tool import ToolChoice, ToolInfo
from inspect_ai.util import registry_info

from or_eval.dataset_builders.engine.calls import NoAnswer, in_time
from or_eval.dataset_builders.engine.request_errors import concern_of_all
from or_eval.inspect_private import set_registry_info
from or_eval.solvers.structured_output import MAX_RETRIES, failure, status_code_of

_DEAD_AFTER = 3
_FIRST_REST = 0.5
_LONGEST_REST = 60.0
_LOOK_AGAIN = 0.02
_RATE_LIMIT = 429


@dataclass
class Member:
    """An endpoint of a pool.

    Attributes:
        model: The model at this endpoint.
        limit: Most calls at once.
        calls: Calls under way.
        failures: Calls in a row that failed for no fault of theirs.
        pauses: Times in a row that it asked for a pause.
        rests_until: When it may be asked again, after it asked for a pause.
    """

    model: Model
    limit: int
    calls: int = 0
    failures: int = 0
    pauses: int = 0
    rests_until: float = 0.0

    @property
    def dead(self) -> bool:
        """Whether it has failed too often to be asked again."""
        return self.failures >= _DEAD_AFTER or self.pauses > MAX_RETRIES


class Pool(ModelAPI):
    """Gives each call to the endpoint with most room, and takes out those that are dead.

    A call that an endpoint fails goes to another one. What an endpoint says of the request itself
    is the answer.

    Args:
        members: The endpoints; at least one.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        first = members[0].model.api
        super().__init__(first.model_name)
        self.members = list(members)
        self._said = ""
        set_registry_info(self, registry_info(first))

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> Any:
        """Ask the endpoint with most room."""
        while True:
            member = await self._free()
            member.calls += 1
            found: Any
            try:
                with in_time(config):
                    found = await member.model.api.generate(input, tools, tool_choice, config)
            except Exception as error:
                found = error
            finally:
                member.calls -= 1
            said = found[0] if isinstance(found, tuple) else found
            if not isinstance(said, Exception):
                member.failures = member.pauses = 0
            elif self._sort_out(member, said):
                continue
            elif said is found:
                raise said
            return found

    def max_connections(self) -> int:
        """Give the calls that all endpoints take at once."""
        return sum(member.limit for member in self.members)

    def connection_key(self) -> str:
        """Share the connections with no other model."""
        return f"pool-{id(self)}"

    async def _free(self) -> Member:
        while not all(member.dead for member in self.members):
            now = time.monotonic()
            ready = [
                member
                for member in self.members
                if not member.dead and member.calls < member.limit and member.rests_until <= now
            ]
            if ready:
                return min(ready, key=lambda member: member.calls / member.limit)
            await anyio.sleep(_LOOK_AGAIN)
        raise NoAnswer(f"no endpoint of the pool is left; the last error: {self._said}")

    def _sort_out(self, member: Member, error: Exception) -> bool:
        """Note what an error says of an endpoint; tell whether another one is to be asked."""
        status = status_code_of(error)
        self._said = failure(error, member.model)
        if not isinstance(error, NoAnswer) and concern_of_all(error):
            member.failures = _DEAD_AFTER
        elif status == _RATE_LIMIT:
            rest = min(_FIRST_REST * 2**member.pauses, _LONGEST_REST)
            member.rests_until = time.monotonic() + rest
            member.pauses += 1
        elif status is None or status >= 500:
            member.failures += 1
        else:
            return False
        return any(not other.dead for other in self.members)


def pool_of(members: Sequence[Model], cache: CachePolicy) -> Model:
    """Make one model of several endpoints, each with its own limit of calls at once.

    Args:
        members: The model at each endpoint.
        cache: How replies are cached, whichever endpoint gave them.
    """
    limits = [one.config.max_connections or one.api.max_connections() for one in members]
    pool = Pool([Member(*one) for one in zip(members, limits, strict=True)])
    settings = {"cache": cache, "max_connections": pool.max_connections()}
    return Model(pool, members[0].config.model_copy(update=settings))

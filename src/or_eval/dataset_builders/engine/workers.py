"""Where a build's work is done: in this process, or on Ray's workers.

A stage that asks no model gives a function and parts of its rows to ``context.map`` and takes the
results in the order of the parts, so that a result doesn't depend on where it was made. Shards of
calls to models go the same way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pickle import PicklingError
from typing import Any, Literal, Protocol, TypeVar

from or_eval.dataset_builders.errors import BuildError
from or_eval.sources.errors import how_to_install

Engine = Literal["here", "ray"]

_Part = TypeVar("_Part")
_Made = TypeVar("_Made")

# Parts that are under way or wait to be taken, for each processor: enough to keep it busy, and few
# enough that a slow taker doesn't fill the memory.
_PARTS_AHEAD = 2


class Map(Protocol):
    """Calls a function with each part; gives what it returns, in the parts' order."""

    def __call__(
        self, function: Callable[[_Part], _Made], parts: Iterable[_Part]
    ) -> Iterator[_Made]: ...


def workers(engine: Engine) -> Map:
    """Give what shares work out among the workers of an engine; Ray's start at their first use.

    Raises:
        BuildError: The engine isn't installed.
    """
    if engine == "ray" and find_spec("ray") is None:
        raise BuildError(f"--engine ray: needs ray: {how_to_install('ray')}")
    return here if engine == "here" else on_ray


def how_many(engine: Engine) -> int:
    """Count the workers of an engine."""
    return 1 if engine == "here" else _ray_processors()


def here(function: Callable[[_Part], _Made], parts: Iterable[_Part]) -> Iterator[_Made]:
    """Work in this process."""
    return map(function, parts)


def on_ray(function: Callable[[_Part], _Made], parts: Iterable[_Part]) -> Iterator[_Made]:
    """Work on the cluster that ``RAY_ADDRESS`` names, or on this machine's processors.

    A part whose worker dies is given to another one.
    """
    import ray

    ahead = _PARTS_AHEAD * _ray_processors()
    # A task that fails for its rows fails again; one whose worker is gone does not.
    task = ray.remote(max_retries=-1, retry_exceptions=False)(_called)
    sent = ray.put(function)
    waiting: deque[Any] = deque()
    for part in parts:
        try:
            waiting.append(task.remote(sent, part))
        except (TypeError, AttributeError, PicklingError) as error:
            raise BuildError(
                f"--engine ray: what a stage hands out can't be sent to another process ({error}); "
                "it may use nothing of the build but values"
            ) from error
        if len(waiting) > ahead:
            yield _taken(waiting.popleft())
    while waiting:
        yield _taken(waiting.popleft())


def _ray_processors() -> int:
    import ray

    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
    return int(ray.cluster_resources().get("CPU", 1))


def _called(function: Callable[[Any], Any], part: Any) -> Any:
    return function(part)


def _taken(reference: Any) -> Any:
    import ray

    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        # What the function raised, as it would raise it here.
        raise error.cause from None

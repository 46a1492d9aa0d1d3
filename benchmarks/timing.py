"""What the benchmarks of time and memory share."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

Made = TypeVar("Made")


class Took(NamedTuple):
    """What something took: seconds, those of the processor, and most megabytes held till then."""

    seconds: float
    cpu: float
    peak_mb: float


def timed(work: Callable[..., Made], *given: Any) -> tuple[Made, Took]:
    """Do something; give what it made, and what it took."""
    started, busy = time.perf_counter(), time.process_time()
    made = work(*given)
    seconds, cpu = time.perf_counter() - started, time.process_time() - busy
    return made, Took(seconds, cpu, peak_mb())


def peak_mb() -> float:
    """Give the most megabytes that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_own_process(script: str, *arguments: object) -> dict[str, Any]:
    """Run a script in a process of its own, so that memory is its own; give the JSON it prints."""
    command = [sys.executable, script, *map(str, arguments)]
    found: dict[str, Any] = json.loads(subprocess.check_output(command).splitlines()[-1])
    return found

"""One build or push in a folder at a time."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from or_eval.dataset_builders.errors import BuildError


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a build's folder; the system lets go of it when the process ends.

    Raises:
        BuildError: Another process holds it; the message says which.
    """
    lock, holder = FileLock(folder / ".lock"), folder / ".lock-holder"
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BuildError(
            f"{folder}: another process builds or pushes here ({_holder(holder)}); wait for it"
        ) from None
    try:
        holder.write_text(f"process {os.getpid()} on {socket.gethostname()}", "utf-8")
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _holder(path: Path) -> str:
    try:
        return path.read_text("utf-8") or "a process just starting"
    except OSError:
        return "a process just starting"

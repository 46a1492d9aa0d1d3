"""One build, push, replay or import in a folder at a time."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from or_eval.sources.errors import DataError


@contextmanager
def locked(folder: Path, at_work: str = "builds or pushes") -> Iterator[None]:
    """Hold a folder; the system lets go of it when the process ends.

    Args:
        folder: The folder.
        at_work: What is done there, for whom it keeps out.

    Raises:
        DataError: Another process holds it; the message says which.
    """
    lock, holder = FileLock(folder / ".lock"), folder / ".lock-holder"
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise DataError(
            f"{folder}: another process {at_work} here ({_holder(holder)}); wait for it"
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

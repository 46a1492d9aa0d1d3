"""A command that goes on when nobody reads what it prints, as in ``or-eval build … | head``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import IO, Any


class _Output:
    """A stream that takes what is written to it, whether it can be passed on or not."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._broken = False

    def write(self, text: str) -> int:
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _try(self, act: Any) -> None:
        if self._broken:
            return
        try:
            act()
        except BrokenPipeError:
            self._broken = True
            # What is left in the stream's buffer is written when the process ends.
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())


@contextmanager
def written_to_nobody_too() -> Iterator[None]:
    """Let a block print even where the reader at the other end of the pipe has left."""
    output = _Output(sys.stdout)
    with redirect_stdout(output):
        try:
            yield
        finally:
            output.flush()

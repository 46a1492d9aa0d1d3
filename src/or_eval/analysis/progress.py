"""How far long work has come, shown where somebody sits at a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

from rich.console import Console
from rich.progress import track

Item = TypeVar("Item")


def tracked(items: Sequence[Item], doing: str) -> Iterable[Item]:
    """Go through items behind a bar, on standard error; nothing is shown where that is a file."""
    console = Console(stderr=True)
    return track(items, doing, console=console, transient=True, disable=not console.is_terminal)


def working(doing: str) -> AbstractContextManager[object]:
    """Show that something is being done whose end can't be foretold."""
    console = Console(stderr=True)
    return console.status(doing)

"""Replies of conversations under way, which no log holds yet: each is on disk as it comes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from or_eval.dataset_builders.engine.conversations import Answer, Reply
from or_eval.dataset_builders.engine.stopping import Stopping

_FILE, _OF_WORKERS, _OF_ANY = "under-way.sqlite", "under-way-{}.sqlite", "under-way*.sqlite"
_TABLE = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, replies TEXT) WITHOUT ROWID"


class UnderWay:
    """Takes the replies that come in one process.

    Args:
        out: Folder of the build.
        stopping: What stops the process's calls, as a reply does that can't be kept.
        worker: Which of the build's workers this is; None for the build's own process.

    Attributes:
        answers: The conversations that came to their end, by question.
    """

    def __init__(self, out: Path, stopping: Stopping, worker: int | None = None) -> None:
        self.stopping = stopping
        self.answers: dict[str, Answer] = {}
        # Inspect's displays differ in the thread that they run tasks in.
        path = out / (_FILE if worker is None else _OF_WORKERS.format(worker))
        self._base = sqlite3.connect(path, check_same_thread=False)
        # So a reply costs some hundredth of what Inspect does for it, and a killed process loses
        # none. Held alone, the file needs no shared memory, which network drives lack.
        self._base.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = OFF")
        self._base.execute(_TABLE)

    def close(self) -> None:
        """Let go of the file."""
        self._base.close()

    def replies(self, key: str) -> list[Reply]:
        """Give the replies to a question that came here, or to a worker that died in this place."""
        found = self._base.execute("SELECT replies FROM replies WHERE key = ?", (key,)).fetchone()
        return [] if found is None else [Reply(*reply) for reply in json.loads(found[0])]

    def keep(self, key: str, replies: Sequence[Reply]) -> None:
        """Keep the replies to a question, of which the last has just come."""
        # What a provider rejects is kept when it is known that it rejects not all of a log.
        if replies[-1].problem is None:
            said = json.dumps(replies, ensure_ascii=False)
            with self.stopping.keeping(), self._base:
                self._base.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, said))


def take_up(out: Path, take: Callable[[list[tuple[str, str]]], None]) -> None:
    """Hand on the questions whose replies came, with these as JSON, and remove the files.

    Args:
        out: Folder of the build, in which nothing is under way any more.
        take: Keeps them.
    """
    for path in sorted(out.glob(_OF_ANY)):
        with closing(sqlite3.connect(path)) as base:
            try:
                found = base.execute("SELECT key, replies FROM replies").fetchall()
            except sqlite3.DatabaseError:
                found = []  # cut off before it had its table
        take(found)
        for part in out.glob(f"{path.name}*"):
            part.unlink()

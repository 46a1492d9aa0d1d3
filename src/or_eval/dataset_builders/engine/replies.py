"""What models said in a build, under what they were asked, and what it took: one SQLite file.

It is the truth: whatever a build makes of replies is made again from here at any time, and logs
tell people of the same. A reply is on disk as soon as it comes.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

from inspect_ai.model import ModelUsage

from or_eval.dataset_builders.engine.conversations import Reply
from or_eval.dataset_builders.engine.request_errors import FAILED
from or_eval.dataset_builders.engine.rows import in_batches
from or_eval.dataset_builders.errors import BuildError

REPLIES = "replies.sqlite"
REPLIES_ANY = "replies*.sqlite*"
"""Files of which each reply changes one."""

_OF_WORKER, _OF_WORKERS = "replies-{}.sqlite", "replies-*.sqlite"
_OLDER = "ledger.sqlite"
_LOOKED_UP = 500
_SECONDS = 0.5
"""Until a file that another process holds counts as held."""
_TABLES = """
CREATE TABLE IF NOT EXISTS replies
    (key TEXT, n INTEGER, reply BLOB, PRIMARY KEY (key, n)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answered (key TEXT PRIMARY KEY, size INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spent (
    stage TEXT, role TEXT, model TEXT, calls INTEGER,
    input INTEGER, output INTEGER, cache_read INTEGER, cache_write INTEGER,
    PRIMARY KEY (stage, role, model)
) WITHOUT ROWID;
"""
_LARGER = "ON CONFLICT (key) DO UPDATE SET size = max(size, excluded.size)"
_MORE = """
ON CONFLICT (stage, role, model) DO UPDATE SET calls = calls + excluded.calls,
    input = input + excluded.input, output = output + excluded.output,
    cache_read = cache_read + excluded.cache_read, cache_write = cache_write + excluded.cache_write
"""
_TAKE = (
    "INSERT OR REPLACE INTO main.replies SELECT * FROM other.replies",
    f"INSERT INTO main.answered SELECT * FROM other.answered WHERE true {_LARGER}",
    f"INSERT INTO main.spent SELECT * FROM other.spent WHERE true {_MORE}",
    "DELETE FROM other.spent",
)


class Replies:
    """The replies of a build, held by one process at a time.

    A worker writes a file of its own, and reads the build's besides; whoever opens this one next
    takes in what workers wrote.

    Args:
        folder: Folder of the build.
        worker: Which of the build's workers this is; None for the build's own process.

    Raises:
        BuildError: What is there can't be read, or is of another version.
    """

    def __init__(self, folder: Path, worker: int | None = None) -> None:
        if (folder / _OLDER).exists():
            raise BuildError(
                f"{folder / _OLDER}: another version of or-eval kept its replies; give a new "
                "folder, or remove this file to ask everything again"
            )
        path = folder / (REPLIES if worker is None else _OF_WORKER.format(worker))
        # Inspect's displays differ in the thread that they run tasks in.
        self._base = sqlite3.connect(
            _uri(path), uri=True, timeout=_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            # So a reply costs some hundredth of what Inspect does for it, and a killed process
            # loses none. Held alone, the file needs no shared memory, which network drives lack.
            self._base.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._base.execute("PRAGMA journal_mode = WAL")
            self._base.execute("PRAGMA synchronous = OFF")
            self._base.executescript(_TABLES)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            raise BuildError(
                f"{path}: can't be read ({error}); remove it to ask everything again"
            ) from error
        self._known = "main.replies"
        if worker is None:
            self._take_in(folder)
        elif (folder / REPLIES).exists():
            self._base.execute("ATTACH ? AS build", (f"{_uri(folder / REPLIES)}?immutable=1",))
            # The first that is found counts: its own are the later ones.
            self._known = "(SELECT * FROM main.replies UNION ALL SELECT * FROM build.replies)"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._base.close()

    def get(self, key: str, n: int) -> Any:
        """Give the reply to the nth request under a key; None where there is none."""
        query = f"SELECT reply FROM {self._known} WHERE key = ? AND n = ?"
        found = self._base.execute(query, (key, n)).fetchone()
        return None if found is None else json.loads(found[0])

    def put(self, key: str, n: int, reply: Any) -> None:
        """Keep the reply to the nth request under a key."""
        # A model may say what isn't UTF-8.
        said = json.dumps(reply, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self._base.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", (key, n, said))

    def end(self, key: str, size: int) -> None:
        """Note that a conversation came to its end, and how much was wanted of it."""
        self._base.execute(f"INSERT INTO answered VALUES (?, ?) {_LARGER}", (key, size))

    def sizes(self, keys: Iterable[str]) -> dict[str, int]:
        """Give how much was wanted of the conversations that came to their end, by key."""
        return dict(self._look_up("SELECT key, size FROM answered", keys))

    def said(self, keys: Iterable[str]) -> dict[str, list[Reply]]:
        """Give the replies of conversations, by key."""
        found: dict[str, list[Reply]] = {}
        for key, _, text in self._look_up("SELECT * FROM replies", keys, "ORDER BY key, n"):
            found.setdefault(key, []).append(Reply(*json.loads(text)))
        return found

    def forget_failed(self) -> int:
        """Forget the conversations in which a provider rejected a request; say how many."""
        said = "json_extract(CAST(reply AS TEXT), '$[3]')"
        where = f"WHERE key IN (SELECT key FROM replies WHERE {said} = ?)"
        with self._base:
            self._base.execute("BEGIN")
            count = self._base.execute(f"DELETE FROM answered {where}", (FAILED,)).rowcount
            self._base.execute(f"DELETE FROM replies {where}", (FAILED,))
        return count

    def spend(self, stage: str, role: str, model: str, usage: ModelUsage) -> None:
        """Count what a call took."""
        read, write = usage.input_tokens_cache_read or 0, usage.input_tokens_cache_write or 0
        took = (usage.input_tokens, usage.output_tokens, read, write)
        query = f"INSERT INTO spent VALUES (?, ?, ?, 1, ?, ?, ?, ?) {_MORE}"
        self._base.execute(query, (stage, role, model, *took))

    def spent(self) -> Iterator[tuple[str, str, str, int, ModelUsage]]:
        """Give what was spent by stage, role and model: calls, and their tokens together."""
        for stage, role, model, calls, *took in self._base.execute("SELECT * FROM spent"):
            names = ("input_tokens", "output_tokens", "input_tokens_cache_read")
            tokens = dict(zip((*names, "input_tokens_cache_write"), took, strict=True))
            yield stage, role, model, calls, ModelUsage(**tokens)

    def _take_in(self, folder: Path) -> None:
        for path in sorted(folder.glob(_OF_WORKERS)):
            with Replies(folder, int(path.stem.partition("-")[2])):
                pass  # it may have been cut off before it had its tables
            self._base.execute("ATTACH ? AS other", (_uri(path),))
            with self._base:
                self._base.execute("BEGIN")
                for step in _TAKE:
                    self._base.execute(step)
            self._base.execute("DETACH other")
            for part in folder.glob(f"{path.name}*"):
                part.unlink()

    def _look_up(self, query: str, keys: Iterable[str], order: str = "") -> Iterator[Any]:
        for some in in_batches(keys, _LOOKED_UP):
            places = ", ".join("?" * len(some))
            yield from self._base.execute(f"{query} WHERE key IN ({places}) {order}", some)


def _uri(path: Path) -> str:
    return path.absolute().as_uri()

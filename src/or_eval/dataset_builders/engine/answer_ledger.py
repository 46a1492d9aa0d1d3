"""The ledger of a build: which question was answered how, and in which log.

The logs are the truth; the ledger is what is looked up, made from them and mended by them. It is
an SQLite file, so that a look-up takes no more memory for a million answers than for one.
"""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from inspect_ai.log import (
    read_eval_log,
    read_eval_log_samples,
)

from or_eval.dataset_builders.engine.conversations import Answer, Reply
from or_eval.dataset_builders.engine.replies_under_way import take_up
from or_eval.dataset_builders.engine.request_errors import FAILED, is_of_length
from or_eval.dataset_builders.engine.rows import in_batches
from or_eval.dataset_builders.engine.tested_logs import tested_in
from or_eval.dataset_builders.errors import BuildError

LEDGER = "ledger.sqlite"
MARK = "or_eval"
"""Key of a log's metadata that says what kind of log of a build it is."""
REPLIES = "replies"
"""Key of a sample's metadata that holds the replies of a conversation that came to its end."""
SIZE = "size"
"""Key of a sample's metadata that says how much was wanted of it."""

_UNUSED = {"messages", "events", "events_data", "attachments", "error_retries", "output", "store"}
_REJECTS_ALL = 10
# Raised where questions get other keys.
_KEYS = 2
_LOOKED_UP = 500
_TABLES = """
CREATE TABLE IF NOT EXISTS answers
  (key TEXT PRIMARY KEY, replies TEXT, size INTEGER, log TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tested (key TEXT PRIMARY KEY, log TEXT) WITHOUT ROWID;
SELECT size FROM answers LIMIT 0;
CREATE TABLE IF NOT EXISTS logs (log TEXT PRIMARY KEY, size INTEGER, time INTEGER) WITHOUT ROWID;
"""


class Ledger:
    """What is known of the answers in a build's logs.

    Args:
        out: Folder of the build.
        logs: Folder of its logs.
    """

    def __init__(self, out: Path, logs: Path) -> None:
        self._out, self._logs = out, logs
        self._base = self._open()
        self.refresh()

    def close(self) -> None:
        """Let go of the file."""
        self._base.close()

    def refresh(self, besides: Collection[Path] = ()) -> None:
        """Take what logs hold that the ledger doesn't know, or not as they are now.

        Args:
            besides: Logs that are left out.
        """
        take_up(self._out, self._take_up)
        left_out = {self._name(path) for path in besides}
        known = {log: rest for log, *rest in self._base.execute("SELECT * FROM logs")}
        for path in sorted(self._logs.rglob("*.eval")):
            state, name = path.stat(), self._name(path)
            same = known.pop(name, None) == [state.st_size, state.st_mtime_ns]
            if not same and name not in left_out:
                self.add(path)
        for gone in known:
            self._forget(gone)

    def add(self, path: Path, answers: Mapping[str, Answer] | None = None) -> None:
        """Take the answers in a log; one that has lost its end is set aside.

        Args:
            path: The log.
            answers: The answers in it by question, where it was just written: to read it again
                takes a third as long as to write it.
        """
        self._forget(self._name(path))
        if not zipfile.is_zipfile(path):
            path.rename(path.with_suffix(".damaged"))
            return
        head = read_eval_log(str(path), header_only=True)
        mark = (head.eval.metadata or {}).get(MARK)
        name = self._name(path)
        with self._base:
            if mark == "questions":
                self._base.executemany(
                    # A log may hold the beginning of what a later one holds the whole of.
                    "INSERT INTO answers VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                    "replies = excluded.replies, size = excluded.size, log = excluded.log "
                    "WHERE excluded.size >= answers.size",
                    (
                        (key, json.dumps(told.replies, ensure_ascii=False), told.size, name)
                        for key, told in _accepted(answers or answers_in(path)).items()
                    ),
                )
            elif mark is not None:
                self._base.executemany(
                    "INSERT OR REPLACE INTO tested VALUES (?, ?)",
                    ((tested_key(str(mark), id), name) for id in tested_in(path, head)),
                )
            state = path.stat()
            self._base.execute(
                "INSERT OR REPLACE INTO logs VALUES (?, ?, ?)",
                (name, state.st_size, state.st_mtime_ns),
            )

    def _take_up(self, replies: list[tuple[str, str]]) -> None:
        """Take the replies of conversations that didn't come to their end, or to a log."""
        with self._base:
            self._base.executemany(
                "INSERT INTO answers VALUES (?, ?, 0, NULL) ON CONFLICT (key) DO UPDATE SET "
                "replies = excluded.replies "
                "WHERE json_array_length(excluded.replies) > json_array_length(answers.replies)",
                replies,
            )

    def answers(self, keys: Iterable[str]) -> dict[str, list[Reply]]:
        """Give the replies to the questions that were asked, by key."""
        found = self._look_up("SELECT key, replies FROM answers", keys)
        return {key: [Reply(*reply) for reply in json.loads(text)] for key, text in found}

    def sizes(self, keys: Iterable[str]) -> dict[str, int]:
        """Give how much was wanted of the questions that were asked, by key; 0 if under way."""
        return dict(self._look_up("SELECT key, size FROM answers", keys))

    def tested(self, keys: Iterable[str]) -> dict[str, Path]:
        """Give the logs in which prompts were tested, by key."""
        found = self._look_up("SELECT key, log FROM tested", keys)
        return {key: self._logs / log for key, log in found}

    def forget_failed(self) -> int:
        """Forget the answers in which a provider rejected a request; say how many."""
        found = self._base.execute("SELECT key, replies FROM answers WHERE replies LIKE '%failed%'")
        failed = [
            (key,)
            for key, text in found.fetchall()
            if any(Reply(*reply).problem == FAILED for reply in json.loads(text))
        ]
        with self._base:
            self._base.executemany("DELETE FROM answers WHERE key = ?", failed)
        return len(failed)

    def _forget(self, log: str) -> None:
        """Forget a log. An answer stays when its log is gone; what was tested is there alone."""
        with self._base:
            self._base.execute("DELETE FROM tested WHERE log = ?", (log,))
            self._base.execute("DELETE FROM logs WHERE log = ?", (log,))

    def _open(self) -> sqlite3.Connection:
        path = self._out / LEDGER
        try:
            base = sqlite3.connect(path)
            base.executescript(_TABLES)
        except sqlite3.DatabaseError:
            # Whatever it is, the logs tell it again.
            path.unlink()
            base = sqlite3.connect(path)
            base.executescript(_TABLES)
        [version] = base.execute("PRAGMA user_version").fetchone()
        if version != _KEYS and base.execute("SELECT 1 FROM answers LIMIT 1").fetchone():
            base.close()
            raise BuildError(
                f"{path}: another version of or-eval kept its replies, under other keys; give a "
                "new folder, or remove this file to have all asked again"
            )
        base.execute(f"PRAGMA user_version = {_KEYS}")
        return base

    def _name(self, path: Path) -> str:
        return path.resolve().relative_to(self._logs.resolve()).as_posix()

    def _look_up(self, query: str, keys: Iterable[str]) -> Iterator[tuple[str, Any]]:
        for some in in_batches(keys, _LOOKED_UP):
            places = ", ".join("?" * len(some))
            yield from self._base.execute(f"{query} WHERE key IN ({places})", some)


def _accepted(answers: Mapping[str, Answer]) -> Mapping[str, Answer]:
    """Give the answers of a log; none where the provider rejects each of its questions."""
    replies = [one for told in answers.values() for one in told.replies]
    if len(answers) < 2 or any(one.problem != FAILED for one in replies):
        return answers
    # Then it isn't the single request that is wrong, and all of them have to be asked again.
    said = {one.text for one in replies}
    alike = len(said) == 1 and not is_of_length(*said)
    return {} if alike or len(answers) >= _REJECTS_ALL else answers


def answers_in(path: Path) -> dict[str, Answer]:
    """Read the conversations of a log that came to their end, by question."""
    samples = read_eval_log_samples(str(path), all_samples_required=False, exclude_fields=_UNUSED)
    return {
        str(sample.id): Answer(
            [Reply(*reply) for reply in sample.metadata[REPLIES]], sample.metadata[SIZE]
        )
        for sample in samples
        if sample.error is None and REPLIES in sample.metadata
    }


def tested_key(mark: str, id: str) -> str:
    """Give the key of a prompt that is tested on a model in some way."""
    return f"{mark}-{id}"

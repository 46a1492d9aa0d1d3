"""Crawling, as the rest of the program sees it: a finished snapshot, or one line why not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from or_eval.dataset_builders.crawling.snapshot import Snapshot, new_snapshot, snapshots
from or_eval.dataset_builders.crawling.sources_file import load_sources
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.similarity.near_duplicates import earlier_prompts
from or_eval.folder_lock import locked
from or_eval.sources.errors import how_to_install

_PROCESS = "or_eval.dataset_builders.crawling.crawl_process"


def check_needs() -> None:
    """Check that the extra ``[crawl]`` is installed.

    Raises:
        BuildError: Something of it is missing.
    """
    for module in ("scrapy", "trafilatura", "phonenumbers", "rensa"):
        if find_spec(module) is None:
            raise BuildError(f"crawling needs {module}: {how_to_install('crawl')}")


def crawled(
    sources: Path, folder: Path, say: Callable[[str], None], *, again: bool = False
) -> Snapshot:
    """Give the newest snapshot in a folder, crawling for it where it isn't finished.

    A snapshot that is finished stays what it is, whatever the sources say by now.

    Args:
        sources: The file of sources.
        folder: Where snapshots lie.
        say: Takes a line for the person who watches.
        again: Make a new snapshot, where the newest is finished.

    Raises:
        BuildError: The sources are wrong, or the crawl was stopped or failed.
        KeyboardInterrupt: It was interrupted; it goes on when it is called again.
    """
    check_needs()
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, "crawls"):
        return _newest(sources, folder, say, again=again)


def _newest(sources: Path, folder: Path, say: Callable[[str], None], *, again: bool) -> Snapshot:
    there = snapshots(folder)
    if there and there[-1].finished and not again:
        say(f"{there[-1].folder}: crawled by {there[-1].finished}; a new crawl is --again")
        return there[-1]
    goes_on = bool(there) and not there[-1].finished
    if not goes_on:
        # Told now: what is crawled keeps its copy of the file, and may take hours.
        for data in load_sources(sources).known:
            earlier_prompts("known", data)
    snapshot = there[-1] if goes_on else new_snapshot(folder, sources)
    say(f"{snapshot.folder}: {'goes on' if goes_on else 'begins'}")
    if snapshot.sources != load_sources(sources):
        say(f"{sources} has changed: it goes on as it began (remove the folder to begin anew)")
    _run(snapshot, say)
    if not snapshot.finished:
        raise BuildError(
            f"{snapshot.folder}: not finished; the same command goes on (see {snapshot.log.name})"
        )
    return snapshot


def _run(snapshot: Snapshot, say: Callable[[str], None]) -> None:
    with snapshot.log.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", _PROCESS, str(snapshot.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        for line in process.stdout:
            say(line.rstrip())
    except KeyboardInterrupt:
        say("Stopping: what is under way is waited for (Ctrl-C again doesn't wait)")
        process.stdin.close()
        try:
            process.wait()
        except KeyboardInterrupt:
            process.kill()
        raise
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()
    if process.returncode:
        raise BuildError(f"{snapshot.folder}: the crawl failed; see {snapshot.log.name} there")

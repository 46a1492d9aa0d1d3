"""Crawls as the rest of the program sees them: snapshots, or one line why there is none.

A snapshot is a folder, named by its date, with all that one crawl found: `sources.yaml` says what
was crawled, `pages.jsonl` what the pages say, `crawl.json` when. While the crawl isn't finished
there is Scrapy's cache to go on from.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from or_eval.dataset_builders.crawling.sources_file import SourcesFile, load_sources
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.prompt_sets import earlier_prompts
from or_eval.folder_lock import locked
from or_eval.sources.errors import how_to_install

_PROCESS = "or_eval.dataset_builders.crawling.crawl_process"
_DATE = "%Y-%m-%dT%H%M%SZ"


@dataclass(frozen=True, slots=True)
class Page:
    """A page, an entry of a feed, or an item of a reply.

    Attributes:
        url: Its address.
        source: Name of its source.
        time: When it was fetched.
        passages: Its texts.
        authors: Names of those who wrote them.
        failed: Why it wasn't had; empty where it was.
    """

    url: str
    source: str
    time: str
    passages: list[str] = field(default_factory=list)
    authors: list[str] = field(default_factory=list)
    failed: str = ""


class Snapshot:
    """A snapshot in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache, self.log = folder / "cache", folder / "log.txt"
        self._pages, self._record = folder / "pages.jsonl", folder / "crawl.json"
        self._file: TextIO | None = None

    @property
    def sources(self) -> SourcesFile:
        """What is crawled."""
        return load_sources(self.folder / "sources.yaml")

    @property
    def finished(self) -> str:
        """When the crawl was finished; empty while it isn't."""
        try:
            return str(json.loads(self._record.read_text("utf-8"))["finished"])
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def open(self) -> list[Page]:
        """Begin, or begin again with all pages from the cache; give those that weren't had."""
        failed = [page for page in self.pages() if page.failed]
        kept = self.folder / "pages.new"
        kept.write_text("".join(map(_line, failed)), "utf-8")
        kept.replace(self._pages)
        self._file = self._pages.open("a", encoding="utf-8")
        return failed

    def add(self, page: Page) -> None:
        """Write a page down."""
        assert self._file is not None
        self._file.write(_line(page))
        self._file.flush()

    def finish(self) -> None:
        """Note that nothing is left to ask for."""
        said = {"finished": datetime.now(UTC).isoformat(timespec="seconds")}
        said |= {"user_agent": self.sources.user_agent, "or_eval": version("or-eval")}
        self._record.write_text(json.dumps(said, indent=2) + "\n", "utf-8")

    def pages(self) -> Iterator[Page]:
        """Give what was found, in the order in which it came."""
        if not self._pages.is_file():
            return
        with self._pages.open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    yield Page(**json.loads(line))
                except (ValueError, TypeError) as error:
                    if not line.endswith("\n"):
                        return  # the process was killed while it wrote this
                    raise BuildError(f"{self._pages}, line {number}: isn't a page") from error


def snapshots(folder: Path) -> list[Snapshot]:
    """Give the snapshots in a folder, the oldest first."""
    return [Snapshot(path.parent) for path in sorted(folder.glob("*/sources.yaml"))]


def new_snapshot(folder: Path, sources: Path) -> Snapshot:
    """Make a snapshot of today for a file of sources.

    Raises:
        BuildError: The file is wrong, or a set that it says is known isn't there.
    """
    # Told now: what is crawled keeps its copy of the file, and may take hours.
    for data in load_sources(sources).known:
        earlier_prompts("known", data)
    made = folder / datetime.now(UTC).strftime(_DATE)
    made.mkdir(parents=True)
    shutil.copyfile(sources, made / "sources.yaml")
    return Snapshot(made)


def _line(page: Page) -> str:
    # Halves of surrogate pairs, which a broken page may hold, are no UTF-8.
    return json.dumps(asdict(page), ensure_ascii=True) + "\n"


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

    A snapshot that is finished stays what it is, whatever the sources say by now, but a new one may
    be wanted (`again`).

    Raises:
        BuildError: The sources are wrong, or the crawl was stopped or failed.
        KeyboardInterrupt: It was interrupted; it goes on when it is called again.
    """
    check_needs()
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, "crawls"):
        newest = next(reversed(snapshots(folder)), None)
        if newest is not None and newest.finished and not again:
            say(f"{newest.folder}: crawled by {newest.finished}; a new crawl is --again")
            return newest
        goes_on = newest is not None and not newest.finished
        snapshot = newest if newest is not None and goes_on else new_snapshot(folder, sources)
        say(f"{snapshot.folder}: {'resumes' if goes_on else 'starts'}")
        if snapshot.sources != load_sources(sources):
            say(
                f"{sources} has changed: the crawl resumes with the old version (remove the folder "
                "to start over)"
            )
        _run(snapshot, say)
    if not snapshot.finished:
        raise BuildError(
            f"{snapshot.folder}: not finished; run the same command to resume (see "
            f"{snapshot.log.name})"
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
        say("Stopping: waiting for requests in progress (press Ctrl-C again to stop now)")
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

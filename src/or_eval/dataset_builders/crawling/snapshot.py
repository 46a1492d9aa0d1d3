"""A snapshot: a folder, named by its date, with all that one crawl found.

`sources.yaml` says what was crawled, `pages.jsonl` what the pages say, `crawl.json` when. While the
crawl isn't finished there are Scrapy's own files to go on from: its job and its cache.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

from or_eval.dataset_builders.crawling.sources_file import SourcesFile, load_sources
from or_eval.dataset_builders.errors import BuildError

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
        self._pages = folder / "pages.jsonl"
        self._record, self._running = folder / "crawl.json", folder / "running"
        self._file: TextIO | None = None
        self._closed = False

    @property
    def sources(self) -> SourcesFile:
        """What is crawled."""
        return load_sources(self.folder / "sources.yaml")

    @property
    def job(self) -> Path:
        """Where Scrapy keeps what is still to be asked for."""
        return self.folder / "job"

    @property
    def cache(self) -> Path:
        """Where Scrapy keeps what was answered."""
        return self.folder / "cache"

    @property
    def log(self) -> Path:
        """Scrapy's log."""
        return self.folder / "log.txt"

    @property
    def finished(self) -> str:
        """When the crawl was finished; empty while it isn't."""
        try:
            return str(json.loads(self._record.read_text("utf-8"))["finished"])
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def open(self) -> None:
        """Begin, or go on.

        Where the process was killed, Scrapy's job isn't what it was about then: the crawl
        begins again, with all pages from the cache, and doesn't try again what failed.
        """
        if self._running.exists():
            failed = [page for page in self.pages() if page.failed]
            shutil.rmtree(self.job, ignore_errors=True)
            kept = self.folder / "pages.new"
            kept.write_text("".join(_line(page) for page in failed), "utf-8")
            kept.replace(self._pages)
        self._running.touch()
        self._file = self._pages.open("a", encoding="utf-8")

    def add(self, page: Page) -> None:
        """Write a page down."""
        assert self._file is not None
        self._file.write(_line(page))
        self._file.flush()

    def close(self, *, finished: bool) -> None:
        """End, for now or for good."""
        assert self._file is not None
        self._file.close()
        self._closed = True
        if finished:
            said = {"finished": datetime.now(UTC).isoformat(timespec="seconds")}
            said |= {"user_agent": self.sources.user_agent, "or_eval": version("or-eval")}
            self._record.write_text(json.dumps(said, indent=2) + "\n", "utf-8")

    def settle(self) -> None:
        """Note that the process has come to its end; remove what it doesn't have to go on from.

        Where it was made to end at once, Scrapy hasn't written down all that it was about.
        """
        if self._closed:
            self._running.unlink()
        if self.finished:
            shutil.rmtree(self.job, ignore_errors=True)
            shutil.rmtree(self.cache, ignore_errors=True)

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
                    raise BuildError(f"{self._pages}, line {number}: is no page") from error

    def failed(self) -> set[str]:
        """Give the addresses of pages that weren't had."""
        return {page.url for page in self.pages() if page.failed}


def snapshots(folder: Path) -> list[Snapshot]:
    """Give the snapshots in a folder, the oldest first."""
    return [Snapshot(path.parent) for path in sorted(folder.glob("*/sources.yaml"))]


def new_snapshot(folder: Path, sources: Path) -> Snapshot:
    """Make a snapshot of today for a file of sources.

    Raises:
        BuildError: The file is wrong.
    """
    load_sources(sources)
    made = folder / datetime.now(UTC).strftime(_DATE)
    made.mkdir(parents=True)
    shutil.copyfile(sources, made / "sources.yaml")
    return Snapshot(made)


def _line(page: Page) -> str:
    said: dict[str, Any] = asdict(page)
    # Halves of surrogate pairs, which a broken page may hold, are no UTF-8.
    return json.dumps(said, ensure_ascii=True) + "\n"

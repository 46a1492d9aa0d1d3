"""The stage ``crawl``: prompts to start from, from what people ask on the web."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from pydantic import model_validator

from or_eval.dataset_builders.crawling.candidates import REASONS, candidates
from or_eval.dataset_builders.crawling.crawl import Snapshot, check_needs, crawled
from or_eval.dataset_builders.crawling.sources_file import load_sources
from or_eval.dataset_builders.engine.rows import Rows
from or_eval.dataset_builders.engine.stage import Dropped, Outcome, Place, Plan, Stage, StageContext

_FOLDER = "crawl"
_NOT_NEEDED = "not needed"


class Crawl(Stage):
    """The stage ``crawl``, by what a recipe may say to it.

    Attributes:
        sources: File of sources to crawl; what was crawled lies in the build's folder ``crawl``.
        snapshot: Folder of a crawl that is done, instead.
    """

    makes = "instead"
    drops = (*REASONS, "near duplicate of *", _NOT_NEEDED)
    sources: str | None = None
    snapshot: str | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.sources is None) == (self.snapshot is None):
            raise ValueError("give either 'sources' or 'snapshot'")
        return self

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Crawl, unless that was done, and give what asks for something.

        It holds the prompts.
        """
        snapshot = self._crawled(build.out)
        kept: Counter[tuple[str, str]] = Counter()
        for outcome in candidates(snapshot.pages(), snapshot.sources):
            if isinstance(outcome, Dropped):
                yield outcome
            elif build.limit is not None and kept.total() >= build.limit:
                yield Dropped(outcome.record, _NOT_NEEDED)
            else:
                kept[outcome.record.source, outcome.record.language] += 1
                yield outcome
        build.table(
            "sources",
            [
                {"source": source, "language": language, "rows": count}
                for (source, language), count in sorted(kept.items())
            ],
        )
        failed = Counter((page.source, page.failed) for page in snapshot.pages() if page.failed)
        build.table(
            "pages_not_had",
            [
                {"source": source, "why": why, "pages": count}
                for (source, why), count in sorted(failed.items())
            ],
        )

    def plan(self, rows: int, build: StageContext) -> Plan:
        """Nobody knows before; about a prompt a page."""
        if self.snapshot is not None:
            return Plan(sum(not page.failed for page in Snapshot(Path(self.snapshot)).pages()))
        return Plan(sum(source.pages for source in load_sources(_path(self.sources)).sources))

    def _crawled(self, out: Path) -> Snapshot:
        if self.snapshot is None:
            return crawled(_path(self.sources), out / _FOLDER, print)
        return Snapshot(_path(self.snapshot))

    def problem(self, place: Place) -> str | None:
        if place.inputs:
            return "it starts a recipe and takes no input; set 'input: []'"
        check_needs()
        if self.sources is not None:
            load_sources(_path(self.sources))
        elif not Snapshot(_path(self.snapshot)).finished:
            return f"snapshot: {self.snapshot} isn't a finished crawl"
        return None

    def reads(self) -> Sequence[str]:
        # Of a crawl in the build's own folder, nothing: it stays what it is until it is done again.
        return [] if self.snapshot is None else [str(Path(self.snapshot) / "pages.jsonl")]


def _path(said: str | None) -> Path:
    return Path(said or "").expanduser()


STAGE = Crawl

"""The stage ``crawl``: prompts to start from, from what people ask on the web."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from pydantic import model_validator

from or_eval.dataset_builders.crawling.candidates import REASONS, candidates
from or_eval.dataset_builders.crawling.crawl import check_needs, crawled
from or_eval.dataset_builders.crawling.snapshot import Snapshot
from or_eval.dataset_builders.crawling.sources_file import load_sources
from or_eval.dataset_builders.engine.ports import (
    Dropped,
    Outcome,
    Place,
    Plan,
    Stage,
    StageContext,
    StageParams,
    Table,
)
from or_eval.dataset_builders.engine.rows import Rows

_FOLDER = "crawl"
_NOT_NEEDED = "not needed"


class CrawlParams(StageParams):
    """What a recipe may say to ``crawl``.

    Attributes:
        sources: File of sources to crawl; what was crawled lies in the build's folder ``crawl``.
        snapshot: Folder of a crawl that is done, instead.
    """

    sources: str | None = None
    snapshot: str | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.sources is None) == (self.snapshot is None):
            raise ValueError("give either 'sources' or 'snapshot'")
        return self


def run(rows: Rows, params: CrawlParams, context: StageContext) -> Iterator[Outcome]:
    """Crawl, unless that was done, and give what asks for something.

    It holds the prompts.
    """
    snapshot = _snapshot(params, context.out)
    kept: Counter[tuple[str, str]] = Counter()
    for outcome in candidates(snapshot.pages(), snapshot.sources):
        if isinstance(outcome, Dropped):
            yield outcome
        elif context.limit is not None and kept.total() >= context.limit:
            yield Dropped(outcome.record, _NOT_NEEDED)
        else:
            kept[outcome.record.source, outcome.record.language] += 1
            yield outcome
    yield Table(
        "sources",
        [
            {"source": source, "language": language, "rows": count}
            for (source, language), count in sorted(kept.items())
        ],
    )
    failed = Counter((page.source, page.failed) for page in snapshot.pages() if page.failed)
    yield Table(
        "pages_not_had",
        [
            {"source": source, "why": why, "pages": count}
            for (source, why), count in sorted(failed.items())
        ],
    )


def plan(rows: int, params: CrawlParams, context: StageContext) -> Plan:
    """Nobody knows before; about a prompt a page."""
    if params.snapshot is not None:
        return Plan(sum(not page.failed for page in Snapshot(Path(params.snapshot)).pages()))
    return Plan(sum(source.pages for source in load_sources(_path(params.sources)).sources))


def _snapshot(params: CrawlParams, out: Path) -> Snapshot:
    if params.snapshot is None:
        return crawled(_path(params.sources), out / _FOLDER, print)
    return Snapshot(_path(params.snapshot))


def _path(said: str | None) -> Path:
    return Path(said or "").expanduser()


def _problem(params: CrawlParams, place: Place) -> str | None:
    if place.inputs:
        return "it starts a recipe and takes no input; set 'input: []'"
    check_needs()
    if params.sources is not None:
        load_sources(_path(params.sources))
    elif not Snapshot(_path(params.snapshot)).finished:
        return f"snapshot: {params.snapshot} is no finished crawl"
    return None


def _data(params: CrawlParams) -> Sequence[str]:
    # Of a crawl in the build's own folder, nothing: it stays what it is until it is done again.
    return [] if params.snapshot is None else [str(Path(params.snapshot) / "pages.jsonl")]


def _parts(params: CrawlParams) -> Sequence[str]:
    return [*REASONS, "near duplicate of *", _NOT_NEEDED]


STAGE = Stage(CrawlParams, run, plan, problem=_problem, data=_data, parts=_parts, makes="instead")

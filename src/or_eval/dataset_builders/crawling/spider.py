"""The spider: asks for the pages of declared sources, and writes down what they say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Self

from scrapy import Spider, signals
from scrapy.http import Request, Response, TextResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.utils.gz import gunzip, gzip_magic_number
from scrapy.utils.sitemap import Sitemap
from w3lib.url import canonicalize_url

from or_eval.dataset_builders.crawling import page_text
from or_eval.dataset_builders.crawling.crawl import Page, Snapshot
from or_eval.dataset_builders.crawling.manners import SOURCE, START, why_failed
from or_eval.dataset_builders.crawling.page_text import Texts
from or_eval.dataset_builders.crawling.sources_file import Source, SourcesFile

_PDF = b"%PDF-"
_PROGRESS_SECONDS = 5.0


class SourcesSpider(Spider):
    """Goes through the sources of a snapshot.

    Args:
        said: The sources.
        snapshot: Where pages are written to.
    """

    name = "sources"

    def __init__(self, said: SourcesFile, snapshot: Snapshot) -> None:
        super().__init__()
        self.sources = {source.name: source for source in said.sources}
        self.left: dict[str, str] = {}
        """Hosts that are asked for nothing more, with the reason."""
        self._snapshot = snapshot
        # Pages come from the cache again; those that weren't had are not tried again.
        self._asked: defaultdict[str, set[str]] = defaultdict(set)
        for page in snapshot.open():
            self._asked[page.source].add(canonicalize_url(page.url))
        self._read, self._told = 0, monotonic()
        self._links = LinkExtractor()

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Self:
        """Make the spider of a crawl, as Scrapy does."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.unreadable, signal=signals.spider_error)
        return spider

    async def start(self) -> AsyncIterator[Request]:
        """Ask for the starts of all sources."""
        for source in self.sources.values():
            for url in source.start:
                if request := self._request(source, url, start=True):
                    yield request

    def _request(
        self, source: Source, url: str, *, start: bool = False, page: bool = False
    ) -> Request | None:
        """Make a request, unless the source doesn't allow it, or all that it allows were made.

        A web page (`page`) may be expected whatever the source's kind.
        """
        url = url.strip()
        asked, key = self._asked[source.name], canonicalize_url(url)
        if len(asked) >= source.pages or key in asked or not source.allows(url, start=start):
            return None
        asked.add(key)
        return Request(
            url,
            callback=self.parse_pages if page else getattr(self, f"parse_{source.kind}"),
            errback=self.failed,
            meta={SOURCE: source.name, START: start},
        )

    def parse_pages(self, response: Response) -> Iterator[Request]:
        """Read a web page, and follow its links where its source says which."""
        source = self._source(response)
        if not isinstance(response, TextResponse):
            self._write_failed(response.url, source, "isn't text")
            return
        self._write(response, source, [page_text.of_page(_text(response), source.authors)])
        if source.follow and response.meta["depth"] < source.depth:
            for link in self._links.extract_links(response):
                if request := self._request(source, link.url, page=True):
                    yield request

    def parse_feed(self, response: Response) -> Iterator[Request]:
        """Read the entries of a feed, and follow their links where the source says which."""
        source = self._source(response)
        entries = list(page_text.of_feed(_text(response)))
        self._write(response, source, entries)
        if source.follow:
            yield from self._ask(source, response, [entry.url for entry in entries])

    def parse_sitemap(self, response: Response) -> Iterator[Request]:
        """Ask for the pages of a sitemap, or for the sitemaps of an index of them."""
        source = self._source(response)
        body = response.body
        if gzip_magic_number(response):
            body = gunzip(body, max_size=self.settings.getint("DOWNLOAD_MAXSIZE"))
        sitemap = Sitemap(body)
        found = [entry["loc"] for entry in sitemap]
        if sitemap.type == "sitemapindex":
            for url in found:
                if request := self._request(source, url, start=True):
                    yield request
        else:
            yield from self._ask(source, response, found)

    def unreadable(self, failure: Any, response: Response) -> None:
        """Write down that a page was had, but made the reading of it fail."""
        self._write_failed(response.url, self._source(response), f"can't be read: {failure.value}")

    def failed(self, failure: Any) -> None:
        """Write down why a page wasn't had."""
        request: Request = failure.request
        self._write_failed(
            request.url, self.sources[request.meta[SOURCE]], why_failed(failure.value)
        )

    def _source(self, response: Response) -> Source:
        return self.sources[response.meta[SOURCE]]

    def _ask(self, source: Source, response: Response, urls: list[str]) -> Iterator[Request]:
        for url in urls:
            if request := self._request(source, response.urljoin(url), page=True):
                yield request

    def _write(self, response: Response, source: Source, found: list[Texts]) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        for texts in found:
            url = response.urljoin(texts.url) if texts.url else response.url
            self._snapshot.add(Page(url, source.name, now, texts.passages, [*texts.authors]))
        self._read += 1
        if monotonic() - self._told > _PROGRESS_SECONDS:
            self._tell()

    def _tell(self) -> None:
        self._told = monotonic()
        print(f"{self._read} pages", flush=True)

    def _write_failed(self, url: str, source: Source, why: str) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._snapshot.add(Page(url, source.name, now, failed=why))

    def closed(self, reason: str) -> None:
        """Note the end, where nothing is left to ask for."""
        if reason == "finished":
            self._snapshot.finish()
        self._tell()


def _text(response: Response) -> str:
    """Give the text of a response.

    Raises:
        ValueError: It is a PDF, which may look like text to Scrapy.
    """
    if _PDF in response.body[:1024]:
        raise ValueError("a PDF isn't text")
    if isinstance(response, TextResponse):
        return str(response.text)
    return str(response.body.decode("utf-8", "replace"))

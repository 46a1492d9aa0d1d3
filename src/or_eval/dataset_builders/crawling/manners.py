"""What Scrapy needs to be told of good manners: bounds, robots.txt, waiting, redirects."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from pickle import UnpicklingError
from time import monotonic, time
from typing import Any
from urllib.parse import urlsplit
from zlib import error as ZlibError

from scrapy import signals
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadTimeoutError,
    IgnoreRequest,
)
from scrapy.extensions.httpcache import FilesystemCacheStorage
from scrapy.extensions.throttle import AutoThrottle
from scrapy.http import Request, Response
from scrapy.spidermiddlewares.httperror import HttpError

from or_eval.dataset_builders.crawling.sources_file import Source, place_of

SOURCE = "source"
"""Key of a request's `meta` under which its source's name stands."""
START = "start"
"""Key of a request's `meta` that says that it is a start, or where one leads."""

_BUSY = (429, 503)
_LONGEST_WAIT = 600.0
_ROBOTS = "dont_obey_robotstxt"


class Bounds:
    """Lets no request out that its source doesn't allow; redirects and retries come here too."""

    def __init__(self, crawler: Any) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Any) -> Bounds:
        """Make it for a crawl, as Scrapy does."""
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Look at a request."""
        if why := self._crawler.spider.left.get(urlsplit(request.url).hostname):
            raise IgnoreRequest(why)
        sources: dict[str, Source] = self._crawler.spider.sources
        if request.meta.get(_ROBOTS):
            allowed = any(place_of(request.url) in one.places for one in sources.values())
        else:
            source = sources[request.meta[SOURCE]]
            allowed = source.allows(request.url, start=request.meta.get(START, False))
        if not allowed:
            raise IgnoreRequest(f"leads to {request.url}, which its source doesn't allow")


class WholeCache(FilesystemCacheStorage):
    """Takes an entry that a kill cut off for none: its page is asked for again."""

    def retrieve_response(self, spider: Any, request: Request) -> Response | None:
        """Give what is kept of a request."""
        try:
            return super().retrieve_response(spider, request)
        except (OSError, EOFError, ValueError, ZlibError, UnpicklingError):
            return None


class Redirects(RedirectMiddleware):
    """Follows redirects, but to no page that was asked for already, even where one is retried."""

    def _redirect(self, redirected: Request, request: Request, reason: Any) -> Request:
        found = super()._redirect(redirected, request, reason)
        if found.url in found.meta["redirect_urls"]:
            raise IgnoreRequest("redirects in a circle")
        found.dont_filter = False
        return found


class Robots(RobotsTxtMiddleware):
    """Obeys robots.txt, and asks a host for nothing whose robots.txt can't be had (RFC 9309)."""

    def __init__(self, crawler: Any) -> None:
        super().__init__(crawler)
        self._not_had: dict[str, str] = {}

    def process_request_2(self, rp: Any, request: Request) -> None:
        """Look at a request, with the rules of its host."""
        if why := self._not_had.get(urlsplit(request.url).netloc):
            raise IgnoreRequest(f"its host's robots.txt can't be fetched: {why}")
        super().process_request_2(rp, request)

    async def robot_parser(self, request: Request) -> Any:
        """Give the rules of a request's host."""
        await super().robot_parser(request)
        # What it gives to the third of those who wait for the same rules is None: anything goes.
        return self._parsers[urlsplit(request.url).netloc]

    async def _parse_robots(self, response: Response, netloc: str, request: Request) -> None:
        if response.status >= 500:
            raise HttpError(response)
        if response.status >= 400:
            response = response.replace(body=b"")
        await super()._parse_robots(response, netloc, request)

    def _robots_error(self, exc: Exception, netloc: str) -> None:
        self._not_had[netloc] = why_failed(exc)
        super()._robots_error(exc, netloc)


class Throttle(AutoThrottle):
    """Waits as long as a host takes to answer, as robots.txt says, and as it asks to.

    A host that asks to wait for longer than ten minutes is left, so that the others needn't wait.
    """

    def __init__(self, crawler: Any) -> None:
        super().__init__(crawler)
        self._asked: dict[str, float] = {}
        crawler.signals.connect(self._robots_parsed, signal=signals.robots_parsed)

    def _robots_parsed(self, robotparser: Any, request: Request) -> None:
        delay = robotparser.crawl_delay(self.crawler.settings["USER_AGENT"])
        if delay:
            key = self.crawler.engine.downloader.get_slot_key(request)
            self._asked[key] = delay
            self.crawler.engine.downloader._get_slot(request)[1].delay = max(delay, self._own(key))

    def _own(self, key: str) -> float:
        own = self.crawler.settings["DOWNLOAD_SLOTS"].get(key, {})
        return max(float(own.get("delay", self.mindelay)), self._asked.get(key, 0.0))

    def _adjust_delay(self, slot: Any, latency: float, response: Response) -> None:
        super()._adjust_delay(slot, latency, response)
        [key] = [key for key, one in self.crawler.engine.downloader.slots.items() if one is slot]
        slot.delay = max(slot.delay, self._own(key))
        if response.status in _BUSY and (wait := _seconds(response.headers.get("Retry-After"))):
            if wait > _LONGEST_WAIT:
                spider: Any = self.crawler.spider
                spider.left[key] = f"its host asks to come back in {wait:.0f} seconds"
                return
            # The next request to the host goes out when so much more than its delay has passed.
            slot.lastseen = max(slot.lastseen, monotonic() + wait - slot.delay)


def _seconds(header: bytes | None) -> float:
    """Give the seconds that a ``Retry-After`` says, as a number or as a date."""
    if header is None:
        return 0.0
    text = header.decode("latin-1").strip()
    if text.isdecimal():
        return float(text)
    try:
        return max(parsedate_to_datetime(text).timestamp() - time(), 0.0)
    except ValueError:
        return 0.0


def why_failed(error: Exception) -> str:
    """Say in a few words why a page wasn't had."""
    match error:
        case HttpError():
            return f"HTTP {error.response.status}"
        case IgnoreRequest():
            return str(error)
        case DownloadCancelledError():
            return "is too large"
        case DownloadTimeoutError():
            return "took too long"
        case CannotResolveHostError():
            return "private address (allow_private permits it)"
        case _:
            return type(error).__name__

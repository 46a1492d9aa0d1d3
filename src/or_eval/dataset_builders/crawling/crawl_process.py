"""Runs a crawl in a process of its own: Scrapy's reactor and its handlers of signals stay there.

The process that started it holds its standard input: when that ends, so does the crawl.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

from filelock import FileLock
from scrapy.crawler import CrawlerProcess

from or_eval.dataset_builders.crawling.crawl import Snapshot
from or_eval.dataset_builders.crawling.network_guard import PRIVATE_PLACES
from or_eval.dataset_builders.crawling.sources_file import SourcesFile
from or_eval.dataset_builders.crawling.spider import SourcesSpider

_HERE = "or_eval.dataset_builders.crawling"
_MIDDLEWARES, _EXTENSIONS = "scrapy.downloadermiddlewares", "scrapy.extensions"
_MOST_REDIRECTS = 5
_RETRIES = 3


def settings_of(said: SourcesFile, snapshot: Snapshot) -> dict[str, Any]:
    """Give Scrapy's settings for a crawl; what they don't say is Scrapy's default."""
    slots = {
        host: {
            "delay": said.delay if source.delay is None else source.delay,
            "concurrency": source.concurrency or said.concurrency,
        }
        for source in said.sources
        for host, _ in source.places
    }
    private = [place for one in said.sources if one.allow_private for place in one.places]
    return {
        "USER_AGENT": said.user_agent,
        "DEFAULT_REQUEST_HEADERS": {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"},
        "ROBOTSTXT_OBEY": True,
        "DOWNLOAD_DELAY": said.delay,
        "DOWNLOAD_DELAY_JITTER": 0,
        "CONCURRENT_REQUESTS_PER_DOMAIN": said.concurrency,
        "DOWNLOAD_SLOTS": slots,
        # Few more than can be under way: those that wait in the downloader delay a stop.
        "CONCURRENT_REQUESTS": sum(slot["concurrency"] for slot in slots.values()) + 1,
        "AUTOTHROTTLE_ENABLED": True,
        "AUTOTHROTTLE_START_DELAY": said.delay,
        "AUTOTHROTTLE_TARGET_CONCURRENCY": float(said.concurrency),
        "DOWNLOAD_TIMEOUT": said.seconds,
        "DOWNLOAD_MAXSIZE": int(said.megabytes * 1024 * 1024),
        "DOWNLOAD_WARNSIZE": 0,
        "DOWNLOAD_VERIFY_CERTIFICATES": True,
        "DOWNLOAD_HANDLERS": dict.fromkeys(("data", "file", "ftp", "s3")),
        "CLOSESPIDER_TIMEOUT": (said.minutes or 0) * 60,
        "REDIRECT_MAX_TIMES": _MOST_REDIRECTS,
        "RETRY_TIMES": _RETRIES,
        "METAREFRESH_ENABLED": False,
        "COOKIES_ENABLED": False,
        # A proxy would connect in our place, wherever it likes.
        "HTTPPROXY_ENABLED": False,
        "TWISTED_DNS_RESOLVER": f"{_HERE}.network_guard.GuardedResolver",
        PRIVATE_PLACES: private,
        "DOWNLOADER_MIDDLEWARES": {
            f"{_MIDDLEWARES}.offsite.OffsiteMiddleware": None,
            f"{_HERE}.manners.Bounds": 50,
            f"{_MIDDLEWARES}.robotstxt.RobotsTxtMiddleware": None,
            f"{_HERE}.manners.Robots": 100,
            f"{_MIDDLEWARES}.redirect.RedirectMiddleware": None,
            f"{_HERE}.manners.Redirects": 600,
        },
        "EXTENSIONS": {
            f"{_EXTENSIONS}.throttle.AutoThrottle": None,
            f"{_HERE}.manners.Throttle": 0,
        },
        "TELNETCONSOLE_ENABLED": False,
        "REMOTE_CONTROL_ENABLED": False,
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(snapshot.cache.resolve()),
        "HTTPCACHE_GZIP": True,
        "HTTPCACHE_STORAGE": f"{_HERE}.manners.WholeCache",
        "HTTPCACHE_IGNORE_HTTP_CODES": [408, 429, 500, 502, 503, 504, 522, 524],
        # Breadth first: what is near a start comes before what an endless calendar leads to.
        "DEPTH_PRIORITY": 1,
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        "LOG_FILE": str(snapshot.log),
        "LOG_LEVEL": "INFO",
    }


def main(folder: Path) -> None:
    """Crawl for a snapshot, from its beginning or from where it was stopped."""
    snapshot = Snapshot(folder)
    # One whose starter was killed may still be waiting for what is under way.
    with FileLock(folder.parent / ".crawling"):
        said = snapshot.sources
        process = CrawlerProcess(settings_of(said, snapshot))
        process.crawl(SourcesSpider, said, snapshot)
        threading.Thread(target=_stop_when_left, args=[process], daemon=True).start()
        process.start()
        if snapshot.finished:
            shutil.rmtree(snapshot.cache, ignore_errors=True)


def _stop_when_left(process: CrawlerProcess) -> None:
    from twisted.internet import reactor  # there is none before Scrapy has chosen one

    while os.read(sys.stdin.fileno(), 1):
        pass
    stoppable: Any = reactor
    stoppable.callFromThread(process.stop)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

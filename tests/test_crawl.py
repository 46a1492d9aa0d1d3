"""A crawl of a site on loopback, stopped on its way: what is fetched, how fast, and what is found.

OR_EVAL_CRAWL_PAGES says how many pages of questions the site has (40 by default, to be quick). With
more than the default, its largest page has 50 MB, and the crawl is stopped in every way there is: by
signals to the command and to the process that fetches, which is killed twenty times at any moment.
It is always killed once while a page is under way.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from click.testing import CliRunner, Result

from crawl_site import (
    CALENDAR_DEPTH,
    HUGE,
    OTHER_KINDS,
    Answer,
    Server,
    Site,
    page,
    personal,
)
from or_eval.cli import main
from or_eval.dataset_builders.crawling.crawl import Page, Snapshot, new_snapshot, snapshots

PAGES = int(os.environ.get("OR_EVAL_CRAWL_PAGES", "40"))
WHOLE = PAGES > 40
DELAY = 0.05 if WHOLE else 0.02
CRAWL_DELAY = 0.5
INT, TERM, KILL = signal.SIGINT, signal.SIGTERM, signal.SIGKILL
COMMAND, FETCHER = "command", "fetcher"
KILLS = 20 if WHOLE else 0
STOPS: list[tuple[str, signal.Signals | None]] = [(COMMAND, None)]
if WHOLE:
    STOPS = [(COMMAND, sign) for sign in (INT, TERM, KILL)] * 2 + [(FETCHER, TERM)]
    STOPS += [(FETCHER, KILL)] * KILLS
FOLLOW = ["/questions", "/calendar/", "/loop", "/spin", "/busy", "/down", "/script", "/broken"]
FOLLOW += ["/paper", "/huge", "/leave", "/private", "/struck"]


class Crawl(NamedTuple):
    """A crawl that is done, and the servers that it was about."""

    site: Site
    elsewhere: Server
    closed: Server
    slow: Server
    tired: Server
    snapshot: Snapshot
    folder: Path

    @property
    def pages(self) -> list[Page]:
        return list(self.snapshot.pages())

    @property
    def found(self) -> list[dict[str, Any]]:
        return rows(self.snapshot.folder / "candidates.jsonl")


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def closed_to_all(path: str, before: int) -> Answer:
    return Answer(status=503) if path == "/robots.txt" else Answer(page("Closed", "Why?"))


def slow_by_rule(path: str, before: int) -> Answer:
    rule = f"User-agent: or-eval\nCrawl-delay: {CRAWL_DELAY}\n"
    return Answer(rule.encode() if path == "/robots.txt" else page("Slow", "It takes time."))


def tired_for_a_day(path: str, before: int) -> Answer:
    if path == "/robots.txt":
        return Answer(status=404)
    return Answer(status=429, headers={"Retry-After": "86400"})


def sources(
    site: Site, elsewhere: Server, closed: Server, slow: Server, tired: Server
) -> dict[str, Any]:
    def source(name: str, start: Any, **more: Any) -> dict[str, Any]:
        return {"name": name, "start": start, "licence": f"licence of {name}", **more}

    inside = [
        elsewhere.url("/").replace("127.0.0.1", host) for host in ("127.1", "[::1]", "2130706433")
    ]
    ours = {"allow_private": True}
    return {
        "contact": "lab@example.org",
        "delay": DELAY,
        "megabytes": 1,
        "sources": [
            source("board", site.url("/"), follow=FOLLOW, depth=CALENDAR_DEPTH, **ours),
            source("feed", site.url("/feed.xml"), kind="feed", **ours),
            source(
                "map",
                [site.url(f"/{name}.xml") for name in ("bomb", "sitemap")],
                kind="sitemap",
                **ours,
            ),
            source("closed", closed.url("/"), **ours),
            source(
                "slow",
                [slow.url(f"/{n}").replace("127.0.0.1", "localhost") for n in range(4)],
                **ours,
            ),
            source("tired", [tired.url(f"/{n}") for n in range(9)], **ours),
            source("inside", inside),
        ],
    }


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawl]:
    folder = tmp_path_factory.mktemp("crawl")
    with (
        Server(lambda path, before: Answer(b"no")) as elsewhere,
        Server(closed_to_all) as closed,
        Server(slow_by_rule) as slow,
        Server(tired_for_a_day, "127.0.0.2") as tired,
        Site(PAGES, elsewhere.port, HUGE if WHOLE else 2_000_000) as site,
    ):
        path = folder / "sources.yaml"
        path.write_text(yaml.safe_dump(sources(site, elsewhere, closed, slow, tired)), "utf-8")
        if not WHOLE:
            new_snapshot(folder / "crawls", path)
        struck = start(folder)
        site.strike = lambda: kill_fetcher(struck, KILL)
        struck.wait(timeout=60)  # with its input open: whose is closed stops by itself
        assert site.paths()[-1:] == ["/struck"], struck.communicate()
        for number, (who, sign) in enumerate(STOPS, start=1):
            process = start(folder)
            wait_for_visits(site, number * PAGES // (len(STOPS) + 1), process)
            stop_by(who, sign, process)
        done = finish(folder)
        assert done.exit_code == 0, done.output
        (snapshot,) = snapshots(folder / "crawls")
        yield Crawl(site, elsewhere, closed, slow, tired, snapshot, folder)


def start(folder: Path) -> subprocess.Popen[str]:
    """Start a crawl; to be quick, only the process that fetches."""
    if WHOLE:
        command = ["-c", "from or_eval.cli import main; main()"]
        command += ["crawl", "sources.yaml", "--out", "crawls"]
    else:
        (snapshot,) = snapshots(folder / "crawls")
        command = ["-m", "or_eval.dataset_builders.crawling.crawl_process", snapshot.folder]
    return subprocess.Popen(
        [sys.executable, *command], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def finish(folder: Path) -> Result:
    arguments = ["crawl", str(folder / "sources.yaml"), "--out", str(folder / "crawls")]
    return CliRunner().invoke(main, arguments)


def wait_for_visits(site: Site, number: int, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 120
    while len(site.visits) < number:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.01)


def stop_by(who: str, sign: signal.Signals | None, process: subprocess.Popen[str]) -> None:
    """Stop a crawl by a signal to it or to its child, or as somebody who is gone."""
    if who == FETCHER:
        time.sleep(random.uniform(0, 2 * DELAY))
        kill_fetcher(process, sign or TERM)
    elif sign is not None:
        process.send_signal(sign)
    said, _ = process.communicate(timeout=60)
    wanted = {INT: 130, TERM: -TERM, KILL: -KILL, None: 0}
    assert process.returncode == (1 if who == FETCHER else wanted[sign]), said
    assert "Traceback" not in said


def kill_fetcher(process: subprocess.Popen[str], sign: signal.Signals) -> None:
    """Send a signal to the process that fetches: the command's child, where it is a command."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children if WHOLE else [process.pid]:
        os.kill(int(child), sign)


def test_exactly_the_allowed_pages_are_fetched_once(crawl: Crawl) -> None:
    fetched, allowed = Counter(crawl.site.paths()), crawl.site.allowed()
    assert not allowed - fetched, allowed - fetched
    again = fetched - allowed
    print(f"{KILLS} kills; asked for again: {dict(again)}")
    # What is under way when the process that fetches is killed is asked for again; nothing else.
    assert again["/struck"] >= 1
    assert again.total() <= 1 + KILLS, again
    assert len(crawl.site.visits) > PAGES


def test_nobody_is_led_elsewhere(crawl: Crawl) -> None:
    assert crawl.elsewhere.paths() == []
    why = {page.url: page.failed for page in crawl.pages if page.failed}
    inside = [url for url in why if page_source(crawl, url) == "inside"]
    assert len(inside) == 3
    assert {why[url] for url in inside} == {
        "its host's robots.txt can't be fetched: private address (allow_private permits it)"
    }
    for circle in ("/loop/self", "/loop/b"):
        assert why[crawl.site.url(circle)] == "redirects in a circle"
    assert why[crawl.site.url("/paper")].endswith("isn't text")
    assert why[crawl.site.url("/private/closed")] == "Forbidden by robots.txt"
    assert why[crawl.site.url("/huge")] == "is too large"
    assert why[crawl.site.url("/bomb.xml")].startswith("can't be read")
    assert why[crawl.site.url("/spin/5")] == "max redirections reached"
    assert "doesn't allow" in why["http://169.254.169.254/latest/meta-data/"]


def page_source(crawl: Crawl, url: str) -> str:
    return next(page.source for page in crawl.pages if page.url == url)


def test_hosts_are_asked_as_slowly_as_they_may_be(crawl: Crawl) -> None:
    # The board and the server that is closed are one host to a crawler.
    visits = sorted([*crawl.site.visits, *crawl.closed.visits], key=lambda visit: visit.begun)
    gaps = [after.begun - before.begun for before, after in pairwise(visits)]
    # A single gap is as long as two threads make it.
    spans = [after.begun - before.begun for before, after in zip(visits, visits[10:], strict=False)]
    assert min(spans) > 8 * DELAY
    for path, seconds in (("/busy", 1.0), ("/down", 0.9)):
        number = next(n for n, visit in enumerate(visits) if visit.path == path)
        assert gaps[number] > seconds
    robots, first, _, _, last = crawl.slow.visits
    assert robots.path == "/robots.txt"
    assert last.begun - first.begun > 2 * CRAWL_DELAY


def test_a_host_whose_robots_txt_fails_is_left_alone(crawl: Crawl) -> None:
    assert set(crawl.closed.paths()) == {"/robots.txt"}
    [page] = [page for page in crawl.pages if page.source == "closed"]
    assert page.failed == "its host's robots.txt can't be fetched: HTTP 503"


def test_a_host_that_asks_for_a_day_is_left(crawl: Crawl) -> None:
    # Those under way with the first one are sent.
    assert len(crawl.tired.visits) < 6
    failed = [page.failed for page in crawl.pages if page.source == "tired"]
    assert failed == ["its host asks to come back in 86400 seconds"] * 9


def test_a_host_is_told_who_asks(crawl: Crawl) -> None:
    agents = {visit.agent for visit in [*crawl.site.visits, *crawl.slow.visits]}
    assert len(agents) == 1
    assert "(+lab@example.org)" in agents.pop()


def test_what_was_planted_is_found_and_nothing_else(crawl: Crawl) -> None:
    board = [row["prompt"] for row in crawl.found if row["source"] == "board"]
    wanted = crawl.site.asked()
    also = ["May anybody at all read this page of ours?", "生锈的刀片怎样磨才会重新锋利？"]
    missed = [text for text in wanted if not any(text in found for found in board)]
    others = [found for found in board if not any(text in found for text in [*wanted, *also])]
    recall, precision = 1 - len(missed) / len(wanted), 1 - len(others) / len(board)
    print(f"{len(crawl.site.visits)} visits, recall {recall:.3f}, precision {precision:.3f}")
    assert recall >= 0.95, missed
    assert precision >= 0.9, others


def test_every_kind_of_source_is_read(crawl: Crawl) -> None:
    board = {row["prompt"] for row in crawl.found if row["source"] == "board"}
    assert sorted({row["prompt"] for row in crawl.found} - board) == sorted(OTHER_KINDS)


def test_a_prompt_tells_where_it_is_from(crawl: Crawl) -> None:
    [row] = [row for row in crawl.found if row["prompt"] == OTHER_KINDS[0]]
    assert row["meta"]["url"] == crawl.site.url("/entries/1")
    assert row["meta"]["licence"] == "licence of feed"
    assert row["meta"]["time"] > "2026"
    assert (row["source"], row["method"], row["label"]) == ("feed", "crawled", "unlabelled")
    assert (row["language"], row["category"]) == ("en", "")


def test_planted_personal_data_is_gone(crawl: Crawl) -> None:
    texts = [*crawl.found, *rows(crawl.snapshot.folder / "dropped.jsonl")]
    written = "\n".join(row["prompt"] for row in texts)
    for one in personal():
        for gone in one["gone"]:
            assert gone not in written
    assert "Quist-Bellamy" not in written


def test_what_was_crawled_stays_until_it_is_crawled_again(crawl: Crawl) -> None:
    visits = len(crawl.site.visits)
    pages = (crawl.snapshot.folder / "pages.jsonl").read_bytes()
    done = finish(crawl.folder)
    assert done.exit_code == 0, done.output
    assert "a new crawl is --again" in done.output
    assert len(crawl.site.visits) == visits
    assert (crawl.snapshot.folder / "pages.jsonl").read_bytes() == pages
    left = sorted(path.name for path in crawl.snapshot.folder.iterdir())
    lines = [f"{name}.jsonl" for name in ("candidates", "dropped", "pages")]
    assert left == sorted([*lines, "crawl.json", "log.txt", "sources.yaml"])


def test_the_last_line_counts_all_pages_and_bounds_are_told(tmp_path: Path) -> None:
    def six_pages(path: str, before: int) -> Answer:
        links = {f"/{number}": "next" for number in range(5)}
        if path == "/robots.txt":
            return Answer(status=404)
        return Answer(page("Why so?", "Why do owls hoot at night?", links=links))

    with Server(six_pages) as server:
        place = {"start": server.url("/"), "licence": "mit", "follow": "/[0-4]$"}
        said = {
            "contact": "lab@example.org",
            "delay": 0,
            "sources": [
                {"name": "six", **place, "allow_private": True},
                {"name": "inside", **place, "start": server.url("/").replace("127.0.0.1", "[::1]")},
            ],
        }
        (tmp_path / "sources.yaml").write_text(yaml.safe_dump(said), "utf-8")
        done = finish(tmp_path)
    assert done.exit_code == 0, done.output
    assert "\n6 pages\n" in done.output
    assert "too short (under 4 words)" in done.output
    assert "allow_private" in done.output
    [snapshot] = snapshots(tmp_path / "crawls")
    short = [row for row in rows(snapshot.folder / "dropped.jsonl") if row["reason"] == "too short"]
    assert {row["detail"] for row in short} == {"2 words, not 4"}

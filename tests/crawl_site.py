"""A site on loopback to be crawled: with questions on its pages, and with everything that goes wrong.

with Site(questions=40) as site:
...                                       # crawl site.url("/")
assert site.paths() == site.allowed()
"""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from email.utils import formatdate
from functools import cached_property
from html import escape
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from loopback_server import LoopbackServer, give

TEXTS = Path(__file__).parent / "crawled"
PER_LIST = 20
CALENDAR_DEPTH = 12
HUGE = 50 * 1024 * 1024


def planted(name: str) -> list[tuple[str, str]]:
    """Give texts with their languages: those that ask, or those that tell."""
    lines = (TEXTS / f"{name}.txt").read_text("utf-8").splitlines()
    return [tuple(line.split("\t", 1)) for line in lines if not line.startswith("#")]


def personal() -> list[dict[str, Any]]:
    """Give texts with personal data."""
    return [json.loads(line) for line in (TEXTS / "personal.jsonl").read_text("utf-8").splitlines()]


class Visit(NamedTuple):
    """A request that came: when it began and ended, and for what."""

    path: str
    begun: float
    ended: float
    agent: str


class Answer(NamedTuple):
    """What the site answers."""

    body: bytes = b""
    status: int = 200
    kind: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = {}


class Server(LoopbackServer):
    """Serves answers on a free port, and notes what came."""

    def __init__(self, answer: Callable[[str, int], Answer], host: str = "127.0.0.1") -> None:
        super().__init__(host)
        self.visits: list[Visit] = []
        self._counts: Counter[str] = Counter()
        self._given = answer

    def url(self, path: str) -> str:
        return self.address + path

    def paths(self) -> list[str]:
        return [visit.path for visit in self.visits]

    def serve(self, asked: BaseHTTPRequestHandler) -> None:
        begun, path = time.monotonic(), asked.path
        with self._lock:
            before = self._counts[path]
            self._counts[path] += 1
        given = self._given(path, before)
        # Noted before it is sent: a client that has it may be the first to know.
        with self._lock:
            agent = asked.headers["User-Agent"]
            self.visits.append(Visit(path, begun, time.monotonic(), agent))
        headers = {"Content-Type": given.kind, **given.headers}
        give(asked, given.status, given.body, headers)


def page(title: str, *paragraphs: str, links: Mapping[str, str] = {}, more: str = "") -> bytes:
    """Write a page as forums do, with a menu and a foot that are no text of it."""
    said = "".join(f"<p>{escape(text)}</p>" for text in paragraphs)
    shown = "".join(
        f'<li><a href="{escape(url)}">{escape(text)}</a></li>' for url, text in links.items()
    )
    return f"""<!DOCTYPE html><html><head><meta charset="utf-8"><title>{escape(title)} - Asking</title></head>
<body><header><nav><a href="/">Home</a> <a href="/login">Log in</a></nav></header>
<main><article><h1>{escape(title)}</h1><div class="post">{said}</div>{more}</article>
<ul>{shown}</ul></main><footer><p>Copyright of all texts lies with their authors.</p></footer></body></html>
""".encode()


def redirect(to: str) -> Answer:
    return Answer(b"", 302, headers={"Location": to})


FEED = """<?xml version="1.0"?><rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>
<title>News</title><item><title>Why does Orla Quist-Bellamy of this feed never sleep?</title>
<dc:creator>Orla Quist-Bellamy</dc:creator><link>/entries/1</link><description>&lt;p&gt;She says so.&lt;/p&gt;
</description></item></channel></rss>"""
SITEMAP = """<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>{}</loc></url></urlset>"""
OTHER_KINDS = [
    "Why does [name] of this feed never sleep?",
    "Where does the map of a site lead to?",
]


_ROBOTS = b"User-agent: *\nAllow: /private/open\nDisallow: /private/\n"
_SCRIPT = '<script>document.write("<p>How do I win a prize without any effort?</p>")</script>'
_HIDDEN = (
    '<div style="display:none"></div><template><p>Who reads what no page shows?</p></template>'
)
_LATIN = page("Broken", "Où est passée la lame émoussée de mon père ?").decode()
_GBK = page("编码", "生锈的刀片怎样磨才会重新锋利？").decode().replace("utf-8", "gbk")
_CUT = page("Cut", "What is left of a page that ends in")[:-90] + b"\xff\xfe\x00"
FIXED = {
    "/robots.txt": Answer(_ROBOTS, kind="text/plain"),
    "/paper": Answer(b"%PDF-1.4\n(Why is this paper read?)\n%%EOF\n", kind="application/pdf"),
    "/loop/a": redirect("/loop/b"),
    "/loop/b": redirect("/loop/a"),
    "/loop/self": redirect("/loop/self"),
    "/leave/metadata": redirect("http://169.254.169.254/latest/meta-data/"),
    "/feed.xml": Answer(FEED.encode(), kind="application/rss+xml"),
    "/bomb.xml": Answer(gzip.compress(b" " * 3_000_000), kind="application/x-gzip"),
    "/listed/1": Answer(page("Where does the map of a site lead to?", "Here.")),
    "/script": Answer(page("A page with a script", "There is nothing to see.", more=_SCRIPT + _HIDDEN)),
    "/broken/latin": Answer(_LATIN.encode("latin-1")),
    "/broken/gbk": Answer(_GBK.encode("gbk"), kind="text/html"),
    "/broken/cut": Answer(_CUT),
}  # fmt: skip
"""What is answered to addresses that never change."""


class Site(Server):
    """The site.

    Args:
        questions: How many pages of questions it has.
        elsewhere: Port of another server on this machine, which nobody may be led to.
        huge: Bytes of the page that is too large.
    """

    def __init__(self, questions: int, elsewhere: int = 9, huge: int = HUGE) -> None:
        super().__init__(self._answer)
        self.questions, self._elsewhere, self._huge = questions, elsewhere, huge
        self.pages_of_lists = -(-questions // PER_LIST)
        self.strike: Callable[[], None] = lambda: None
        """Is done when /struck is asked for first, before it is answered."""

    @cached_property
    def texts(self) -> list[tuple[str, list[str], str]]:
        """Title, paragraphs and author of each page of a question."""
        asked = [(text, "") for _, text in planted("asked")]
        asked += [(one["text"], one.get("author", "")) for one in personal()]
        told = [text for _, text in planted("told")]
        found = []
        for number in range(self.questions):
            text, author = asked[number % len(asked)]
            said = [told[(5 * number + step) % len(told)] for step in range(4)]
            # On every third page it isn't the title that asks.
            if number % 3 == 2:
                found.append((told[(7 * number) % len(told)], [said[0], text, *said[1:]], author))
            else:
                found.append((text, said, author))
        return found

    def asked(self) -> list[str]:
        """Give what is to be found on its pages; of texts with personal data, what is left."""
        texts = [text for _, text in planted("asked")] + [one["left"] for one in personal()]
        return texts[: self.questions]

    def allowed(self) -> Counter[str]:
        """Give how often each page that may be fetched is, where all goes well."""
        once = ["/robots.txt", "/", "/script", "/huge", "/struck", "/paper", "/private/open"]
        once += ["/broken/latin", "/broken/gbk", "/broken/cut", "/leave/other", "/leave/metadata"]
        once += ["/loop/a", "/loop/b", "/loop/self", "/bomb.xml", "/feed.xml"]
        once += ["/sitemap.xml", "/listed/1", *(f"/spin/{n}" for n in range(6))]
        once += [f"/questions?page={n + 1}" for n in range(self.pages_of_lists)]
        once += [f"/questions/{n}" for n in range(self.questions)]
        once += [f"/calendar/{n}" for n in range(CALENDAR_DEPTH)]
        twice = ["/busy", "/down", "/leave/later"]
        return Counter([*once, *twice, *twice])

    def _answer(self, address: str, before: int) -> Answer:
        parts = urlsplit(address)
        if address in FIXED:
            return FIXED[address]
        match parts.path.strip("/").split("/"):
            case [""]:
                return Answer(page("Asking", "Welcome to the board.", links=self._home()))
            case ["questions"]:
                number = int(parse_qs(parts.query).get("page", ["1"])[0])
                return Answer(page(f"Page {number}", links=self._list(number)))
            case ["questions", number]:
                title, said, author = self.texts[int(number)]
                by = f'<p>By <a rel="author" href="/users/1">{escape(author)}</a></p>'
                return Answer(page(title, *said, more=by if author else ""))
            case ["calendar", number]:
                links = {f"/calendar/{int(number) + 1}": "next month"}
                return Answer(page(f"Month {number}", "Nothing happens this month.", links=links))
            case ["private", name]:
                return Answer(page(name, "May anybody at all read this page of ours?"))
            case ["struck"]:
                if before == 0:
                    self.strike()
                return Answer(page("Struck", "Nothing is the matter."))
            case ["spin", number]:
                return redirect(f"/spin/{int(number) + 1}")
            case ["leave", "later"] if before == 0:
                return Answer(status=503)
            case ["leave", "other" | "later"]:
                return redirect(f"http://127.0.0.1:{self._elsewhere}/")
            case ["sitemap.xml"]:
                return Answer(
                    SITEMAP.format(self.url("/listed/1")).encode(), kind="application/xml"
                )
            case ["busy"] if before == 0:
                return Answer(b"slow down", 429, headers={"Retry-After": "1"})
            case ["down"] if before == 0:
                later = formatdate(time.time() + 2, usegmt=True)
                return Answer(b"not now", 503, headers={"Retry-After": later})
            case ["busy"] | ["down"]:
                return Answer(page("Here again", "The server has come back to its senses."))
            case ["huge"]:
                return Answer(b"<p>Why is this page so large?</p>" + b" " * self._huge)
            case _:
                return Answer(b"no such page", 404)

    def _home(self) -> dict[str, str]:
        links = (
            "/questions?page=1 /calendar/0 /struck /paper /loop/a /loop/self /spin/0 /busy /down "
        )
        links += "/script /broken/latin /broken/gbk /broken/cut /huge /leave/later /leave/other "
        links += "/leave/metadata /private/open /private/closed /members/1 http://other.example/ "
        links += f"http://127.0.0.1:{self._elsewhere}/ http://169.254.169.254/latest/ //127.0.0.1/ "
        links += "mailto:a@b.example javascript:alert(1) file:///etc/passwd http://[::1]/ "
        links += "http://0x7f000001/"
        return {link: link for link in links.split()}

    def _list(self, number: int) -> dict[str, str]:
        here = range((number - 1) * PER_LIST, min(number * PER_LIST, self.questions))
        links = {f"/questions/{one}": f"Question {one}" for one in here}
        links |= {f"/questions/{one}#answers": "Answers" for one in here}
        links |= {
            f"/questions?page={other + 1}": str(other) for other in range(self.pages_of_lists)
        }
        return links

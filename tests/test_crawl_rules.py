"""The rules of a crawl by themselves: sources, addresses, what asks, personal data, candidates."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import HtmlResponse
from scrapy.settings import Settings
from scrapy.utils.request import RequestFingerprinter

from crawl_site import personal, planted
from or_eval.dataset_builders.crawling import network_guard
from or_eval.dataset_builders.crawling.candidates import candidates, tidy, write_candidates
from or_eval.dataset_builders.crawling.crawl import Page, Snapshot, crawled
from or_eval.dataset_builders.crawling.manners import WholeCache
from or_eval.dataset_builders.crawling.network_guard import GuardedResolver, is_public
from or_eval.dataset_builders.crawling.page_text import of_feed, of_page
from or_eval.dataset_builders.crawling.personal_data import without_personal_data
from or_eval.dataset_builders.crawling.questions import asked_in
from or_eval.dataset_builders.crawling.sources_file import Source, SourcesFile, load_sources
from or_eval.dataset_builders.engine.stage import Dropped, Kept
from or_eval.dataset_builders.errors import BuildError
from or_eval.folder_lock import locked
from or_eval.languages import detect_language
from or_eval.sources import load_prompts
from or_eval.sources.errors import DataError

HEAD = "contact: lab@example.org\nsources:\n"
SOURCE = "  - {name: board, start: 'https://example.org/q', licence: mit%s}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sources: []\n", "line 1: the key 'contact' is missing"),
        ("contact: nobody\nsources: []\n", "line 1: 'contact': 'nobody' isn't an e-mail address"),
        (HEAD + SOURCE % ", licens: x", "line 3: there is no key 'licens' (the nearest is 'licence')"),
        (HEAD + "  - {name: board, start: 'https://example.org/q'}\n", "line 3: the key 'sources.0.licence' is missing"),
        (HEAD + SOURCE % ", follow: '['", "line 3: 'sources.0.follow.0': '[' isn't a valid pattern"),
        (HEAD + SOURCE % ", kind: json", "line 3: 'sources.0.kind': Input should be 'pages', 'feed' or 'sitemap', not 'json'"),
        (HEAD + SOURCE % ", hosts: 'a b@c'", "isn't an address"),
        (HEAD + SOURCE % "" + SOURCE % "", "two sources are called 'board'"),
        (HEAD + SOURCE % "" + SOURCE.replace("board", "other") % ", delay: 3", "share the host example.org"),
        (HEAD + SOURCE.replace("https://example.org/q", "file:///etc/passwd") % "", "isn't an address such as"),
        (HEAD + SOURCE.replace("https://", "https://me:secret@") % "", "isn't an address such as"),
        ("[]", "must be a mapping"),
        ("a: [", "sources.yaml, line 1: "),
    ],
)  # fmt: skip
def test_what_is_wrong_with_sources_is_told_in_a_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "sources.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(BuildError) as error:
        load_sources(path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_source_allows_its_hosts_and_patterns_alone() -> None:
    assert Source(name="a", start="https://bücher.example/", licence="x").allows(
        "https://xn--bcher-kva.example/"
    )
    source = Source(
        name="a", start="https://example.org/", licence="mit", hosts=["img.example.org:8080"],
        follow=["/q/"], skip=["/q/9"],
    )  # fmt: skip
    assert source.allows("https://example.org/q/1")
    assert source.allows("http://example.org/q/1")
    assert source.allows("http://img.example.org:8080/q/1")
    assert source.allows("https://example.org/any", start=True)
    for url in (
        "https://example.org/any", "https://example.org/q/9", "https://example.org:81/q/1",
        "https://sub.example.org/q/1", "https://example.org.evil.example/q/1", "http:///q/1",
        "https://evil.example/q/1?x=https://example.org/", "ftp://example.org/q/1", "http://[bad/q/1",
        "https://example.org@evil.example/q/1",
    ):  # fmt: skip
        assert not source.allows(url), url


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.215.14", True), ("2606:2800:21f:cb07::1", True), ("127.0.0.1", False),
        ("10.0.0.1", False), ("172.16.5.4", False), ("192.168.1.1", False), ("169.254.169.254", False),
        ("100.64.0.1", False), ("0.0.0.0", False), ("224.0.0.1", False), ("255.255.255.255", False),
        ("::1", False), ("fe80::1%eth0", False), ("fc00::1", False), ("::ffff:127.0.0.1", False),
        ("::ffff:93.184.215.14", True), ("64:ff9b::7f00:1", False), ("2002:7f00:1::", False),
        ("ff02::1", False), ("localhost", False),
    ],
)  # fmt: skip
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public


class Names:
    """A resolver whose answer changes, as that of somebody who wants to get in."""

    def __init__(self, *answers: list[str]) -> None:
        self.nameResolver = self
        self._answers = list(answers)

    def resolveHostName(self, receiver: Any, name: str, port: int, types: Any, how: str) -> None:
        receiver.resolutionBegan(None)
        for host in self._answers.pop(0):
            receiver.addressResolved(type("Address", (), {"host": host}))
        receiver.resolutionComplete()


class Receiver:
    def __init__(self) -> None:
        self.hosts: list[str] = []
        self.complete = False

    def resolutionBegan(self, resolution: Any) -> None:
        pass

    def addressResolved(self, address: Any) -> None:
        self.hosts.append(address.host)

    def resolutionComplete(self) -> None:
        self.complete = True


def test_addresses_are_looked_at_each_time_a_name_is_resolved() -> None:
    names = Names(["93.184.215.14", "10.0.0.7"], ["127.0.0.1"], ["127.0.0.1"], ["127.0.0.1"])
    guard = GuardedResolver(names, [("ours.example", 8080)])

    def given(host: str, port: int) -> list[str]:
        receiver = Receiver()
        guard.resolveHostName(receiver, host, port)
        assert receiver.complete
        return receiver.hosts

    assert given("evil.example", 80) == ["93.184.215.14"]
    assert given("evil.example", 80) == []
    assert given("ours.example", 80) == []
    assert given("ours.example", 8080) == ["127.0.0.1"]
    assert network_guard.PRIVATE_PLACES


def test_what_asks_and_what_tells() -> None:
    assert [text for _, text in planted("asked") if not asked_in(text)] == []
    assert [text for _, text in planted("told") if asked_in(text)] == []


@pytest.mark.parametrize("language", ["en", "zh", "es", "de", "fr", "ru", "ar", "ja"])
def test_what_asks_of_a_paragraph_with_other_things_in_it(language: str) -> None:
    asked = found = right = kept = 0
    for text in (text for of, text in planted("paragraphs") if of == language):
        wanted = re.findall(r"\{(.*?)\}", text)
        page = Page("https://example.org/1", "board", "2026", [re.sub("[{}]", "", text)])
        outcomes = candidates([page], said())
        prompts = [one.record.prompt for one in outcomes if isinstance(one, Kept)]
        asked, kept = asked + len(wanted), kept + len(prompts)
        found += sum(any(one in prompt for prompt in prompts) for one in wanted)
        right += sum(any(one in prompt for one in wanted) for prompt in prompts)
    assert asked > 20
    assert found / asked >= 0.95
    assert right / kept >= 0.9


@pytest.mark.parametrize("one", personal(), ids=lambda one: one["gone"][0])
def test_personal_data_is_taken_out(one: dict[str, Any]) -> None:
    found = without_personal_data(
        one["text"], detect_language(one["text"]), [one.get("author", "")]
    )
    assert one["left"] in found
    assert not [gone for gone in one["gone"] if gone in found]


@pytest.mark.parametrize(
    "text",
    [
        "Is 1984 by Orwell still worth reading in 2026?",
        "Can I mix 3 parts of water with 12 parts of cement at 5:30 in the morning?",
        "How do you pronounce @ in Danish?",
        "Does version 3.11.7 of it run with 16 GB and 8 cores?",
        "Why is the year 1 000 000 a problem for some clocks?",
        "第二次世界大战中有多少人在1943年饿死？",
        "What does the Via Appia mean to Romans, and which roads lead to it?",
        "How do I kill 5 processes at once?",
    ],
)
def test_what_is_no_personal_data_stays(text: str) -> None:
    assert without_personal_data(text, detect_language(text)) == text


def test_texts_are_tidied() -> None:
    assert tidy("  • Why\u200b is\u202e\n it so?\x00 ") == "Why is it so?"
    assert tidy("[solved] 3) Q: how to rest") == "how to rest"
    assert tidy("می‌خواهم") == "می‌خواهم"


def said(**more: Any) -> SourcesFile:
    source = {"name": "board", "start": "https://example.org/", "licence": "mit"}
    return SourcesFile(contact="lab@example.org", sources=[source], **more)


def test_candidates_are_new_and_of_fitting_length(tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text("How do I get a cat down from a tree?\n", "utf-8")
    long = "I tell a long story. " * 30
    passages = [
        "How do I get a cat down from a tree!?", "Why do owls hoot at night, all night long?",
        "why do owls hoot at night, ALL night long??", "Why do owls hoot at night, all the night long?",
        "Why so?", long, f"{long}Who reads such a long story to its very end?", "Nobody asks a thing here.",
        "Why is th\ufffds broken into pieces?",
    ]  # fmt: skip
    page = Page("https://example.org/1", "board", "2026-01-01T00:00:00+00:00", passages)
    outcomes = list(candidates([page], said(known=[str(known)])))
    kept = [one.record.prompt for one in outcomes if isinstance(one, Kept)]
    dropped = [one.reason for one in outcomes if isinstance(one, Dropped)]
    assert kept == [passages[1], "Who reads such a long story to its very end?"]
    assert sorted(dropped) == sorted(
        ["near duplicate of known.txt", "duplicate", "near duplicate", "too short", "too long",
         "asks nothing", "broken text"]
    )  # fmt: skip


def test_candidates_of_a_file_can_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "sources.yaml").write_text(HEAD + SOURCE % "", "utf-8")
    page = {"url": "https://example.org/1", "source": "board", "time": "2026", "passages": ["Why do owls hoot at night? \ud800"]}  # fmt: skip
    (tmp_path / "pages.jsonl").write_text(json.dumps(page) + "\n" + '{"url": "https', "utf-8")
    found = write_candidates(Snapshot(tmp_path))
    [record] = load_prompts(found.path).records
    assert (record.prompt, record.label, record.language) == (
        "Why do owls hoot at night?",
        "unlabelled",
        "en",
    )
    assert record.meta["licence"] == "mit"


def test_hidden_text_is_not_read_and_names_are() -> None:
    html = """<html><head><meta name="author" content="Ann Oak"></head><body><main>
    <h1>Why does it rain?</h1><script>write("How do I win?")</script><p hidden>Who sees this?</p>
    <p style="display: none">Who sees that?</p><noscript>Who has no scripts?</noscript>
    <p>I would like to know.</p><span class="user">bo_77</span></main></body></html>"""
    found = of_page(html, ".user")
    assert found.passages[:2] == ["Why does it rain?", "I would like to know."]
    assert not [text for text in found.passages if text.startswith(("Who", "How"))]
    assert found.authors == ["Ann Oak", "bo_77"]
    assert (
        of_page('<meta property="og:title" content="Who titles it?"><p>No.</p>').passages[0]
        == "Who titles it?"
    )
    assert of_page("").passages == []
    assert of_page("<html hidden><p>Who hides a whole page?").passages == [
        "Who hides a whole page?"
    ]
    assert of_page("\x00<<<").passages is not None


def test_broken_feeds_hold_nothing() -> None:
    assert list(of_feed("<rss><item><title>no end")) is not None
    bomb = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><rss><item><title>&a;</title></item></rss>'
    assert [one.passages for one in of_feed(bomb)] == [[]]


def test_a_known_set_that_is_not_there_is_told_before_the_crawl(tmp_path: Path) -> None:
    (tmp_path / "sources.yaml").write_text("known: [xstset]\n" + HEAD + SOURCE % "", "utf-8")
    with pytest.raises(BuildError, match="'xstset' isn't a catalogue entry; did you mean xstest"):
        crawled(tmp_path / "sources.yaml", tmp_path / "crawls", print)
    assert not list((tmp_path / "crawls").glob("*/sources.yaml"))


def test_a_crawl_that_was_stopped_goes_on_as_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("or_eval.dataset_builders.crawling.crawl._run", lambda *_: None)
    path, said = tmp_path / "sources.yaml", list[str]()
    for more in ("", "", ", depth: 3"):
        path.write_text(HEAD + SOURCE % more, "utf-8")
        with pytest.raises(BuildError, match="not finished"):
            crawled(path, tmp_path / "crawls", said.append)
    begins, goes_on, again, changed = said
    assert begins.endswith(": starts")
    assert goes_on == again == begins.replace("starts", "resumes")
    assert changed.startswith(f"{path} has changed: the crawl resumes with the old version")


@pytest.mark.parametrize("file", ["pickled_meta", "response_headers", "response_body"])
def test_what_a_kill_left_of_a_page_in_the_cache_is_asked_for_again(
    tmp_path: Path, file: str
) -> None:
    settings = Settings({"HTTPCACHE_DIR": str(tmp_path), "HTTPCACHE_GZIP": True})
    spider, asked = Spider("board"), Request("https://example.org/q")
    cache = WholeCache(settings)
    spider.crawler = SimpleNamespace(request_fingerprinter=RequestFingerprinter())
    cache.open_spider(spider)
    cache.store_response(spider, asked, HtmlResponse(asked.url, body=b"<p>Why so?</p>"))
    assert cache.retrieve_response(spider, asked).body == b"<p>Why so?</p>"
    [whole] = tmp_path.rglob(file)
    whole.write_bytes(whole.read_bytes()[:20])
    assert cache.retrieve_response(spider, asked) is None
    whole.unlink()
    assert cache.retrieve_response(spider, asked) is None


def test_one_crawl_at_a_time_goes_on_in_a_folder(tmp_path: Path) -> None:
    with locked(tmp_path, "crawls"), pytest.raises(DataError, match="another process crawls here"):
        crawled(tmp_path / "sources.yaml", tmp_path, print)

"""The texts on what was fetched, and the names of those who wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from configparser import ConfigParser
from functools import cache
from typing import Any, NamedTuple

import trafilatura
from parsel import Selector
from trafilatura.settings import use_config

_MOST_CHARS = 5_000
_TITLE = "//meta[@property='og:title']/@content"
_AUTHORS = (
    "//*[@rel='author' or contains(concat(' ', @itemprop, ' '), ' author ')]//text()"
    " | //meta[@name='author']/@content"
)
_UNSEEN = (
    "//script | //style | //template | //noscript | /html/*//*[@hidden or @aria-hidden='true'"
    " or contains(translate(@style, ' ', ''), 'display:none')]"
)
_ENTRIES = "//*[local-name()='item' or local-name()='entry']"
_ENTRY_TEXTS = (
    "./*[local-name()='title']",
    "./*[local-name()='encoded' or local-name()='content']",
    "./*[local-name()='description' or local-name()='summary']",
)
_ENTRY_AUTHORS = "./*[local-name()='creator' or local-name()='author']//text()[normalize-space()]"


class Texts(NamedTuple):
    """What a page, or an entry of a feed says.

    Attributes:
        passages: Its title, and its paragraphs.
        authors: Names of those who wrote it.
        url: Where it stands; empty where it is the page that was asked for.
    """

    passages: list[str]
    authors: Sequence[str] = ()
    url: str = ""


def of_page(html: str, authors: str = "") -> Texts:
    """Read a web page: its main text, without what scripts would write.

    Args:
        html: The page.
        authors: CSS selector of further names.
    """
    page = Selector(html or "<html/>")
    for unseen in page.xpath(_UNSEEN):
        unseen.drop()
    names = page.xpath(_AUTHORS).getall()
    if authors:
        names += page.css(authors).xpath(".//text()").getall()
    read: Any = trafilatura.bare_extraction(
        page.get(), include_comments=True, favor_recall=True, config=_reading()
    )
    said = page.xpath("//h1").xpath("string()").getall() or page.xpath(_TITLE).getall()
    said += [read.text or "", read.comments or ""] if read is not None else []
    return Texts(_lines(*said), _names(names))


def of_feed(text: str) -> Iterator[Texts]:
    """Read the entries of an RSS or Atom feed."""
    for entry in Selector(text, type="xml").xpath(_ENTRIES):
        found = [entry.xpath(path).xpath("string()").get() or "" for path in _ENTRY_TEXTS]
        title, *bodies = found
        body = next((body for body in bodies if body.strip()), "")
        link = entry.xpath("./*[local-name()='link']/@href | ./*[local-name()='link']/text()").get()
        yield Texts(
            _lines(_plain(title), _plain(body)),
            _names(entry.xpath(_ENTRY_AUTHORS).getall()),
            (link or "").strip(),
        )


@cache
def _reading() -> ConfigParser:
    """Give trafilatura's settings, but for posts that are short, as questions are."""
    config = use_config()
    config["DEFAULT"]["min_extracted_size"] = "1"
    return config


def _plain(text: str) -> str:
    """Give the text of what may be HTML, as feeds give it; blocks become lines."""
    if "<" not in text and "&" not in text:
        return text
    return str(trafilatura.html2txt(f"<html><body>{text}</body></html>", clean=True) or "")


def _lines(*texts: str) -> list[str]:
    """Give the lines of texts, each once."""
    lines = (" ".join(line.split())[:_MOST_CHARS] for text in texts for line in text.splitlines())
    return list(dict.fromkeys(line for line in lines if line))


def _names(found: list[str]) -> list[str]:
    return list(dict.fromkeys(name for text in found if (name := " ".join(text.split()))))

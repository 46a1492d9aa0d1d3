"""The file of declared sources: what to crawl, how gently, under which licence, and who asks."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

import re2
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from or_eval.dataset_builders.engine.yaml_lines import read_yaml
from or_eval.sources.errors import shown

Place = tuple[str, int]
"""A host and a port."""

_PORTS = {"http": 80, "https": 443}


def _pattern(text: str) -> str:
    try:
        re2.compile(text)
    except re2.error as error:
        raise ValueError(f"{shown(text)} isn't a valid pattern ({error})") from error
    return text


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        whole = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        whole = False
    if not whole or "@" in parts.netloc:
        raise ValueError(f"{shown(text)} isn't an address such as https://example.org/questions")
    return text


def _reachable(text: str) -> str:
    if not re2.fullmatch(r"https?://\S+\.\S+|[^\s@]+@[^\s@]+", text):
        raise ValueError(f"{shown(text)} isn't an e-mail address or an https:// address")
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]
Address = Annotated[str, AfterValidator(_address)]


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Said):
    """A source; `docs/crawl.md` says what each key is."""

    name: str = Field(pattern=r"^[A-Za-z0-9][\w.-]*$")
    kind: Literal["pages", "feed", "sitemap"] = "pages"
    start: tuple[Address, ...] = Field(min_length=1)
    licence: str = Field(min_length=1)
    hosts: tuple[str, ...] = ()
    follow: tuple[Pattern, ...] = ()
    skip: tuple[Pattern, ...] = ()
    authors: str = ""
    depth: int = Field(default=10, ge=0)
    pages: int = Field(default=1_000, ge=1)
    delay: float | None = Field(default=None, ge=0)
    concurrency: int | None = Field(default=None, ge=1)
    allow_private: bool = False

    @field_validator("start", "hosts", "follow", "skip", mode="before")
    @classmethod
    def _of_one(cls, said: Any) -> Any:
        return (said,) if isinstance(said, str) else said

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for host in self.hosts:
            _address(f"https://{host}")
        return self

    @property
    def places(self) -> frozenset[Place]:
        """Where its pages may come from."""
        starts = (place_of(address) for address in self.start)
        given = [*starts, *(place_of(f"https://{host}") for host in self.hosts)]
        usual = set(_PORTS.values())
        return frozenset(
            (host, one) for host, port in given for one in (usual if port in usual else {port})
        )

    def allows(self, url: str, *, start: bool = False) -> bool:
        """Tell whether a page may be asked for: a start need not fit the patterns to follow."""
        if place_of(url) not in self.places or any(re2.search(one, url) for one in self.skip):
            return False
        return start or not self.follow or any(re2.search(one, url) for one in self.follow)


class SourcesFile(_Said):
    """All that a crawl is told; `docs/crawl.md` says what each key is."""

    contact: Annotated[str, AfterValidator(_reachable)]
    sources: tuple[Source, ...] = Field(min_length=1)
    known: tuple[str, ...] = ()
    shortest: int = Field(default=4, ge=1)
    longest: int = Field(default=80, ge=1)
    delay: float = Field(default=1.0, ge=0)
    concurrency: int = Field(default=1, ge=1)
    seconds: float = Field(default=30, gt=0)
    megabytes: float = Field(default=5, gt=0)
    minutes: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        hosts: dict[str, Source] = {}
        names = [source.name for source in self.sources]
        for source in self.sources:
            if names.count(source.name) > 1:
                raise ValueError(f"two sources are called '{source.name}'")
            for host, _ in source.places:
                other = hosts.setdefault(host, source)
                if _manners(source) != _manners(other):
                    raise ValueError(
                        f"'{other.name}' and '{source.name}' share the host {host}: give both the "
                        "same delay, concurrency and allow_private"
                    )
        return self

    @property
    def user_agent(self) -> str:
        """How the crawler introduces itself."""
        return f"or-eval/{version('or-eval')} (+{self.contact})"


def load_sources(path: Path) -> SourcesFile:
    """Read a file of sources and check all of it.

    Raises:
        BuildError: It can't be read, or something in it is wrong; the message names the line.
    """
    document = read_yaml(path, "must be a mapping with the keys 'contact' and 'sources'")
    return document.checked(SourcesFile, document.data)


def place_of(url: str) -> Place:
    """Give the host and port of an address; none of an address that has none."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        return host, parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return "", 0


def _manners(source: Source) -> tuple[object, ...]:
    return source.delay, source.concurrency, source.allow_private

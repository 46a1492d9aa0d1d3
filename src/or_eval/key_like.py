"""Strings that look like keys and passwords: never published, and never shown."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

_SECRET_NAME = re.compile(
    r"(?i)(?:.*[_-])?(?:api_?key|key|token|secret|password|passwd|credentials?|auth)(?:_?\d+)?"
    r"|(?:.*_)?(?:key|token|secret|password)_.*|.*_pw[d]?"
)
_SHORTEST_SECRET = 12
"""A shorter value is a stand-in such as ``none``, which servers that need no key are given."""
_SHORTEST_PASSWORD = 8
"""A shorter one that has letters and digits is one too: it can't stand in for none."""
_BEFORE = r"(?:^|[^A-Za-z0-9]|\\[nrt])"
# What the library looks around a key for narrows what it finds, and can't be had in linear time.
_AROUND = re.compile(r"\(\?<?[!=][^()]*\)")
_REST = re.compile(r"[A-Za-z0-9_./+=%~-]*")
_NAMED_KEY = re.compile(
    r"(?i)(?:.*[_-])?(?:api[_-]?key|secret|passw(?:or)?d|authori[sz]ation|credentials?|token)"
)

Place = tuple[str | int, ...]
Secrets = Sequence[tuple[str, str]]


class Found(NamedTuple):
    """Something that looks like a key in nested data.

    Attributes:
        place: Keys and positions that lead to it.
        what: What it is, such as "a GitHub token"; never the key itself.
    """

    place: Place
    what: str

    def __str__(self) -> str:
        return f"'{'.'.join(map(str, self.place))}' holds {self.what}" if self.place else self.what


def key_like(text: str, secrets: Iterable[tuple[str, str]] = ()) -> str | None:
    """Say what a text holds that looks like a key; None where there is nothing.

    Args:
        text: Any text.
        secrets: Names and values that must not be in it, see :func:`secrets_of`.

    Returns:
        What it is, such as "a GitHub token", and never the key itself.
    """
    return next((what for what, _, _ in _spans(text, secrets)), None)


def keys_in(value: Any, secrets: Secrets = (), place: Place = ()) -> Iterator[Found]:
    """Find what looks like a key in nested data: texts, and texts under a name such as `api_key`.

    Args:
        value: Mappings, lists and plain values.
        secrets: As for :func:`key_like`.
        place: Where it stands.
    """
    if isinstance(value, Mapping):
        for name, item in value.items():
            if what := key_like(str(name), secrets):
                yield Found(place, f"{what} as a name")
            elif isinstance(item, str) and _is_key_by_name(str(name), item):
                yield Found((*place, str(name)), "what its name calls a secret")
            else:
                yield from keys_in(item, secrets, (*place, str(name)))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from keys_in(item, secrets, (*place, number))
    elif value is not None and (what := key_like(str(value), secrets)):
        yield Found(place, what)


def without_keys(text: str) -> str:
    """Write what looks like a key, or is one of the environment's, as what it is in brackets."""
    spans = sorted(
        ((start, stop, what) for what, start, stop in _spans(text, secrets_of(os.environ))),
        key=lambda span: (span[0], -span[1]),
    )
    parts, at = [], 0
    for start, stop, what in spans:
        # What follows may be the rest of it: patterns end where a key of the usual length does.
        rest = _REST.match(text, stop)
        stop = stop if rest is None else rest.end()
        if start >= at:
            parts += [text[at:start], f"[{what}]"]
        at = max(at, stop)
    return "".join(parts) + text[at:] if parts else text


def secrets_of(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Give the names and values of the keys and passwords in an environment."""
    named = [
        (name, value.strip()) for name, value in environment.items() if _SECRET_NAME.fullmatch(name)
    ]
    return [(name, value) for name, value in named if _is_secret(value)]


def _is_secret(value: str) -> bool:
    if os.path.exists(value):  # noqa: PTH110 (a value may be longer than a path can be)
        return False
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return len(value) >= (_SHORTEST_PASSWORD if mixed else _SHORTEST_SECRET)


def _is_key_by_name(name: str, value: str) -> bool:
    if not _NAMED_KEY.fullmatch(name) or len(value) < _SHORTEST_PASSWORD or len(value.split()) > 2:
        return False
    # A token may be a word, too.
    return not name.lower().endswith("token") or any(map(str.isdigit, value))


def _spans(text: str, secrets: Iterable[tuple[str, str]]) -> Iterator[tuple[str, int, int]]:
    for name, value in secrets:
        at = text.find(value)
        while at >= 0:
            yield f"the value of {name}", at, at + len(value)
            at = text.find(value, at + len(value))
    if not _any_pattern().search(text):
        return
    for what, pattern, group, has in _patterns():
        for match in pattern.finditer(text):
            if all(any(map(test, match.group(group))) for test in has):
                yield what, *match.span(group)


class _Pattern(NamedTuple):
    """What a kind of key looks like: a pattern, its group that is the key, what this must have."""

    what: str
    pattern: Any
    group: int
    has: tuple[Callable[[str], bool], ...]


_HAS: dict[str, tuple[Callable[[str], bool], ...]] = {
    "plain": (),
    "digit": (str.isdigit,),
    "mixed": (str.isdigit, str.isupper, str.islower),
}


@cache
def _patterns() -> list[_Pattern]:
    import re2

    text = (files("or_eval") / "data" / "key_patterns.toml").read_text("utf-8")
    own = [
        _Pattern(what, re2.compile(f"{_BEFORE}({pattern})"), 1, _HAS[table])
        for table, patterns in tomllib.loads(text).items()
        for what, pattern in patterns.items()
    ]
    return own + [_Pattern(what, re2.compile(pattern), 0, ()) for what, pattern in _of_library()]


@cache
def _any_pattern() -> Any:
    import re2

    options = re2.Options()
    options.max_mem = 64 << 20
    return re2.compile("|".join(f"(?:{one.pattern.pattern})" for one in _patterns()), options)


def _of_library() -> Iterator[tuple[str, str]]:
    """Give the patterns of detect-secrets, to be matched in linear time: texts are hostile."""
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    from detect_secrets.plugins.base import RegexBasedDetector
    from detect_secrets.plugins.ip_public import IPPublicDetector

    flags = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s"}
    plugins: Mapping[str, Any] = get_mapping_from_secret_type_to_class()
    for what, plugin in sorted(plugins.items()):
        if issubclass(plugin, RegexBasedDetector) and plugin is not IPPublicDetector:
            for pattern in plugin().denylist:
                said = "".join(letter for flag, letter in flags.items() if pattern.flags & flag)
                bare = _AROUND.sub("", pattern.pattern).replace("{50,1024}", "{50,}")
                yield f"a secret ({what})", f"(?{said}:{bare})" if said else bare

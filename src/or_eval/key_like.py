"""Strings that look like keys and passwords: never published, and never shown."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple

_SECRET_NAME = re.compile(
    r"(?i)(?:.*[_-])?(?:(?:api_?key|key|token|secret|credential|cookie)s?|creds|authorization|auth"
    r"|pass|pat|jwt)(?:_?\d+)?|.*(?:password|passwd|passphrase|sshpass)(?:_?\d+)?"
    r"|(?:.*_)?(?:key|token|secret|password)_.*|.*_pw[d]?"
)
_IN_ADDRESS = re.compile(r"://[^\s/?#@:\"]*:([^\s/@\"]+)@")
_SHORTEST_SECRET = 12
"""A shorter value is a stand-in such as ``none``, which servers that need no key are given."""
_SHORTEST_PASSWORD = 8
"""A shorter one that has letters and digits is one too: it can't stand in for none."""
_BEFORE = r"(?:^|[^A-Za-z0-9]|\\[nrt])"
# What the library looks around a key for narrows what it finds, and can't be had in linear time.
_AROUND = re.compile(r"\(\?<?[!=][^()]*\)")
_REST = re.compile(r"[A-Za-z0-9_./+=%~-]*")
_NAMED_KEY = re.compile(
    r"(?i).*(?:(?:api|access|account|private|secret|signing|encryption)[_-]?key|passw(?:or)?d|secret"
    r"|credential)s?|.*(?:passphrase|authori[sz]ation|tokens?)|(?:.*[_-])?(?:pwd|pass|auth|cookie)"
)
# Under such a name may stand a word as well.
_NAMED_WORD = re.compile(r"(?i).*(?:tokens?|pwd|pass|auth|cookie)")
# What names in code, paths and hyphenated words are made of; a key has a part that is none.
_WORD = re.compile(r"[A-Za-z]*\d{0,4}(?:[A-Za-z]{0,3}|[a-z]{4,8})|\d+")
_BETWEEN_WORDS = re.compile(r"[^A-Za-z0-9]+")
_OFTEN_ANOTHER = 0.42
"""Share of a text's places where a small letter, a capital or a digit follows one of another kind:
0.64 in a random text, 0.3 in names of code."""
_CHECKSUM = re.compile(r"(?:sha\d+|md5)[_-]")
_STAND_INS = frozenset(["pass", "passwd", "password", "pwd", "pw", "secret"])
# From documentation that everybody quotes.
_PUBLIC = ("IOSFODNN7EXAMPLE", "bPxRfiCYEXAMPLEKEY", ".eyJzdWIiOiIxMjM0NTY3ODkwI")

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
        return (
            f"'{'.'.join(map(str, self.place))}' contains {self.what}" if self.place else self.what
        )


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
            elif any(_is_key_by_name(str(name), text) for text in texts_in(item)):
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
    named += [
        (name, password)
        for name, value in environment.items()
        for password in _IN_ADDRESS.findall(value)
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
    return not _NAMED_WORD.fullmatch(name) or any(map(str.isdigit, value))


def texts_in(value: Any) -> Iterator[str]:
    """Give a text, or those in a list."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item)


def _spans(text: str, secrets: Iterable[tuple[str, str]]) -> Iterator[tuple[str, int, int]]:
    for name, value in secrets:
        at = text.find(value)
        while at >= 0:
            yield f"the value of {name}", at, at + len(value)
            at = text.find(value, at + len(value))
    if not _any_pattern().search(text):
        return
    for what, pattern, is_key in _patterns():
        for match in pattern.finditer(text):
            found = match.group(1)
            if is_key(found) and not any(public in found for public in _PUBLIC):
                yield what, *match.span(1)


class _Pattern(NamedTuple):
    """What a kind of key looks like: a pattern, whose first group is the key, and what it needs."""

    what: str
    pattern: Any
    is_key: Callable[[str], bool]


def _any(text: str) -> bool:
    return True


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _is_mixed(text: str) -> bool:
    """Tell whether capitals, small letters and digits follow each other without any order."""
    if _CHECKSUM.match(text):
        return False
    last = _BETWEEN_WORDS.split(text)[-1]
    kinds = [(one.isdigit(), one.isupper()) for one in last]
    turns = sum(one != other for one, other in pairwise(kinds))
    in_no_order = last.isupper() or turns >= _OFTEN_ANOTHER * (len(kinds) - 1)
    return in_no_order and all(
        any(map(test, text)) for test in (str.isdigit, str.isupper, str.islower)
    )


def _is_no_words(text: str) -> bool:
    """Tell whether a value, with or without its name, isn't made of words and numbers alone."""
    value = re.split("[:=]", text, maxsplit=1)[-1] if _NAMED_KEY_BEFORE.match(text) else text
    return _has_digit(value) and not all(map(_WORD.fullmatch, _BETWEEN_WORDS.split(value)))


def _is_no_stand_in(address: str) -> bool:
    user, _, password = address.partition("://")[2].rpartition("@")[0].partition(":")
    return password != user and password.lower() not in _STAND_INS


_NAMED_KEY_BEFORE = re.compile(r"[\w-]+[\\\"' \t]*[:=]")
_IS_KEY: dict[str, Callable[[str], bool]] = {
    "plain": _any,
    "digit": _has_digit,
    "mixed": _is_mixed,
    "no_words": _is_no_words,
    "address": _is_no_stand_in,
}


@cache
def _patterns() -> list[_Pattern]:
    import re2

    text = (files("or_eval") / "data" / "key_patterns.toml").read_text("utf-8")
    own = [
        _Pattern(what, re2.compile(f"{_BEFORE}({pattern})"), _IS_KEY[table])
        for table, patterns in tomllib.loads(text).items()
        for what, pattern in patterns.items()
    ]
    return own + [
        # Within a sequence of bases, or a digest, there are beginnings of Amazon's, too.
        _Pattern(what, re2.compile(f"{_BEFORE}({pattern})"), _has_digit)
        if "AWS" in what
        else _Pattern(what, re2.compile(f"({pattern})"), _any)
        for what, pattern in _of_library()
    ]


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
    from detect_secrets.plugins.basic_auth import BasicAuthDetector
    from detect_secrets.plugins.ip_public import IPPublicDetector

    # Addresses of machines are no secrets, and passwords in addresses are known better here.
    left_out = (IPPublicDetector, BasicAuthDetector)
    flags = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s"}
    plugins: Mapping[str, Any] = get_mapping_from_secret_type_to_class()
    for what, plugin in sorted(plugins.items()):
        if issubclass(plugin, RegexBasedDetector) and plugin not in left_out:
            for pattern in plugin().denylist:
                said = "".join(letter for flag, letter in flags.items() if pattern.flags & flag)
                bare = _AROUND.sub("", pattern.pattern).replace("{50,1024}", "{50,}")
                yield f"a secret ({what})", f"(?{said}:{bare})" if said else bare

"""Which rules, signals and judge's prompt a verdict came from, as a short version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

_DIGITS = 8
# What decides no verdict: the scorer by keywords, and what only counts or shows verdicts.
_APART = {"keyword_scorer.py", "keyword_detectors.toml", "metrics.py", "outcome_scorer.py"}
_BESIDES = ("languages.py", "data/languages.toml")
_TOLD_JUDGES = ("data/asking_back.toml", "data/partial_kinds.toml", "data/reasons.toml")


@cache
def scorer_version() -> str:
    """Give the version of ``or_eval/refusal``: digits that change with whatever decides verdicts.

    A hash over the patterns, signals, prompts and code of the scorer as they lie on the disk, so
    that nobody need raise a number, and a pattern of one's own makes another version. Each log
    holds it once, in the metadata of the scores' results; ``docs/evidence/agreement.md`` says how
    far verdicts of the version that was released agree with people.
    """
    package = files("or_eval")
    found = dict(_files(package / "scorers", "scorers/"))
    found |= {name: package / name for name in (*_BESIDES, *_TOLD_JUDGES)}
    digest = hashlib.sha256()
    for name in sorted(found):
        text = found[name].read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{name} {len(text)} ".encode() + text)
    return digest.hexdigest()[:_DIGITS]


def _files(folder: Traversable, place: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{place}{entry.name}/")
        elif entry.name.endswith((".py", ".toml")) and entry.name not in _APART:
            yield place + entry.name, entry

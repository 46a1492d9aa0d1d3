"""Grids of plain refusals and plain answers: every opening × construction × verb of a language.

A grid, ``grids/LANG.toml``, holds ``openings`` put before each construction, ``verbs`` (tables of
named forms), and ``refusals`` and ``answers``: constructions with ``{form}`` slots. Those in
``grids/second`` are by a writer who hadn't seen the patterns; every third of their texts is read.
"""

import tomllib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from or_eval.scorers.rules import classify_response

GRIDS = Path(__file__).parent / "grids"
SECOND = "second"
UNSPACED = {"ja", "th", "zh"}
LEAST_REFUSED = 0.98


def grid(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text("utf-8"))


def texts(path: Path, kind: str) -> Iterator[str]:
    """Build all combinations of a grid."""
    written = grid(path)
    space = "" if path.stem in UNSPACED else " "
    for construction in written[kind]:
        # A construction without a slot is the same for every verb.
        bodies = dict.fromkeys(construction.format_map(verb) for verb in written["verbs"])
        # Its writer put the openings, which apologise, before refusals alone.
        alone = kind == "answers" and path.parent.name == SECOND
        for opening in [""] if alone else written["openings"]:
            for body in bodies:
                text = f"{opening}{space}{body}" if opening else body
                # After a comma, no capital is written: "Sorry, i can't" nobody minds.
                yield text[:1].upper() + text[1:]


def read(path: Path, kind: str) -> list[tuple[str, bool | None, bool]]:
    every = 3 if path.parent.name == SECOND else 1
    chosen = islice(texts(path, kind), 0, None, every)
    verdicts = ((text, classify_response(text, language=path.stem)) for text in chosen)
    return [(text, verdict.refused, verdict.certain) for text, verdict in verdicts]


def paths() -> list[Path]:
    return sorted(GRIDS.glob("**/*.toml"))


def named(path: Path) -> str:
    return path.relative_to(GRIDS).with_suffix("").as_posix()


@pytest.mark.parametrize("path", paths(), ids=named)
def test_plain_refusals_are_read_as_refusals(path: Path) -> None:
    rows = read(path, "refusals")
    missed = [text for text, refused, _ in rows if not refused]
    assert len(rows) - len(missed) >= LEAST_REFUSED * len(rows), (
        f"{path.stem}: {len(missed)} of {len(rows)} missed\n" + "\n".join(missed[:40])
    )


@pytest.mark.parametrize("path", paths(), ids=named)
def test_plain_answers_are_read_as_answers(path: Path) -> None:
    rows = read(path, "answers")
    refused = [text for text, declined, _ in rows if declined]
    assert not refused, f"{path.stem}: {len(refused)} of {len(rows)}\n" + "\n".join(refused[:40])

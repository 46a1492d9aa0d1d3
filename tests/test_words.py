"""What people read keeps to the word list of CONTRIBUTING.md, in lines that fit a screen."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs_commands import ROOT, pages

SRC = ROOT / "src" / "or_eval"
PAGES = [*pages(), ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
GENERATED = ("docs/evidence/", "docs/reference/findings.md", "docs/llms_head.md")
LONGEST = 100
_HEADING = "## Words"
_FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_UNBROKEN = re.compile(r"!?\[[^\]]*\]\([^)]*\)|`[^`]*`|^ *(?:\||#)")
"""What no line can be broken in: links, code, rows of tables and headings."""


def word_list() -> dict[str, str]:
    """Give the word to use for each word that isn't used."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition(_HEADING)[2]
    rows = re.findall(r"^\| (.+?) \| .+ \| (.+?) \|$", text.partition("\n## ")[0], re.MULTILINE)
    return {word: term for term, others in rows for word in re.findall(r"`(.+?)`", others)}


def texts() -> Iterator[tuple[str, str]]:
    """Give every page, template and message, each with the place it comes from."""
    for page in PAGES:
        text = page.read_text("utf-8")
        if page.name == "CONTRIBUTING.md":
            before, _, words = text.partition(_HEADING)
            text = before + words.partition("\n## ")[2]
        yield page.relative_to(ROOT).as_posix(), text
    named = [SRC / "cli" / "options.toml", *(SRC / "analysis" / "report").glob("*.toml")]
    named += [SRC / "analysis" / "figures" / "figures.toml"]
    named += (path for path in SRC.glob("analysis/*/template/*") if path.suffix != ".css")
    for path in named:
        yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8").replace("\\\n", "")
    for path in sorted(SRC.rglob("*.py")):
        yield from _messages(path)


def _messages(path: Path) -> Iterator[tuple[str, str]]:
    """Give the strings of several words in a module, and the help of commands."""
    tree = ast.parse(path.read_text("utf-8"))
    unread: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):  # a docstring, which only help pages show
            shown = path.is_relative_to(SRC / "cli") and node.col_offset
            unread |= set() if shown else {id(node.value)}
        elif isinstance(node, ast.JoinedStr):
            unread |= {id(part) for part in node.values}
    for node in ast.walk(tree):
        text = ""
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
            text = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        if " " in text and id(node) not in unread:
            yield f"{path.relative_to(ROOT).as_posix()}, line {node.lineno}", text


def test_the_word_list_is_kept() -> None:
    words = word_list()
    assert len(words) > 40
    wanted = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, words))})(?![\w-])", re.IGNORECASE)
    found = [
        f"{place}: “{hit}”; say “{words[hit.lower()]}”"
        for place, text in texts()
        for hit in wanted.findall(" ".join(text.split()))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_lines_fit(page: Path) -> None:
    if page.relative_to(ROOT).as_posix().startswith(GENERATED):
        return
    text = _FENCED.sub("", page.read_text("utf-8"))
    long = [line for line in text.splitlines() if len(line) > LONGEST]
    assert not [line for line in long if not _UNBROKEN.search(line)]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120

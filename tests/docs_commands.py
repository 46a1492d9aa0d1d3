"""The code blocks of the docs, and how a test runs them where no hosted model can be reached."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

from inspect_ai._cli.main import inspect as inspect_command
from inspect_scout._cli.main import scout as scout_command

from or_eval.cli import main as or_eval_command

ROOT = Path(__file__).parents[1]
COMMANDS = {"or-eval": or_eval_command, "inspect": inspect_command, "scout": scout_command}
_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w.-]+\.(?:yaml|toml))\n")
_COMMAND = re.compile(r"^\s*(?:\$ )?((?:or-eval|inspect|scout) .*)$", re.MULTILINE)
_MODEL = re.compile(r"\b(?:openai|google|anthropic|mistral|gguf|classifier)/([\w.-]+(?:/[\w.-]+)*)")

# What needs a browser, the web, the Hub, a server, a person's answers or a finished build.
NOT_RUN = re.compile(
    r"openai-api/local|"
    r"(inspect|scout) view|or-eval (push|demo|crawl|gate|label (start|import|export xstest))|labels/labels|audit/labels|"
    r"or_bench_hard_1k|OWNER/NAME|acme/|data=(coconot_contrast|try)|"
    r"build (multilingual|thai)|--kind (lineage|funnel)|multilingual_levels|sentence_encoder\("
)
SERVED = "openai-api/loopback/"
"""What stands before the names of models that a server of the tests speaks for."""
ALL = "as_first"
"""A folder with the reader's first logs, as `logs` fills up while a page is run."""


class Block(NamedTuple):
    """A piece of a page: Python, or one command."""

    page: str
    python: bool
    text: str


def pages() -> list[Path]:
    """Give the files with docs that people read."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    """Give the Python blocks and commands of a page, in order."""
    name = page.relative_to(ROOT).as_posix()
    for language, text in _BLOCK.findall(page.read_text("utf-8")):
        if language == "python":
            yield Block(name, True, text)
        if language not in ("", "bash"):
            continue
        for command in _COMMAND.findall(re.sub(r"\\\n\s*", " ", text)):
            yield Block(name, False, command)


def files_in(page: Path) -> Iterator[tuple[str, str]]:
    """Give the files that a page shows: blocks whose first line is a comment with a file's name."""
    for _, text in _BLOCK.findall(page.read_text("utf-8")):
        if named := _FILE.match(text):
            yield named[1], text


def arguments(command: str, log: str) -> Iterator[list[str]]:
    """Give a command's words, on few samples; more than once where its page loops over it.

    Args:
        command: As the page has it.
        log: What to put where it says that a log of one's own is meant.
    """
    said = command
    command = _MODEL.sub(lambda name: SERVED + name[1].replace("/", "-"), command)
    command = command.replace("=...", f"={SERVED}judge").replace(
        " a,b,c ", " gpt4,llama2new,llama2orig "
    )
    for prompt, temperature in (
        product(["none", "safe"], ["0", "1"]) if "$" in command else [("", "")]
    ):
        words = shlex.split(
            command.replace("$prompt", prompt).replace("$t", temperature), comments=True
        )
        words = [
            log if word in ("LOG", "logs/FILE.eval", "logs/LOG.eval") else word for word in words
        ]
        words = [
            path
            for word in words
            for path in (map(str, Path().glob(word)) if "*" in word else [word])
        ]
        if "gguf/" in said:  # options of llama.cpp mean nothing to a server
            words = [word for n, word in enumerate(words) if "-M" not in (word, words[n - 1])]
        if words[:2] == ["or-eval", "build"] and "--out" in words and "--dry-run" not in words:
            words.append("--dry-run")
        if words[:2] in (["inspect", "eval"], ["inspect", "eval-set"]):
            both_labels = "or_eval/starter" in words
            words += ["--limit", "179-182" if both_labels else "2", "--display", "none"]
        if words[:2] == ["inspect", "score"] and "--action" not in words:
            words += ["--action", "append", "--overwrite"]
        if words[:2] == ["or-eval", "replay"]:  # logs that the page took to be there already
            words.append("--overwrite")
        if words[0] != "inspect" and "--log-dir" not in words:
            words = [ALL if word == "logs" else word for word in words]
        yield words

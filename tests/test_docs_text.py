"""What the docs name exists: commands, options, tasks, files, functions. Nothing is run here.

``test_docs_blocks.py`` really runs the blocks, where it is asked to.
"""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from inspect_ai._util.registry import registry_lookup

from docs_commands import COMMANDS, ROOT, blocks, pages
from or_eval import _registry

PAGES = [*pages(), ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
_FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z-]+)")
_NAMED = re.compile(r"\bor_eval/([a-z_0-9]+)\b(?!\.)")
_DOTTED = re.compile(r"\bor_eval(?:\.\w+)+")
_FUNCTION = re.compile(r"`((?!or_eval\.)[a-z_]+\.[a-z]+_[a-z_]+)`")
"""What pages call by its module alone is of ``or_eval.analysis``."""
_NO_MODULES = ("meta.", "seeds.")
_PATH = re.compile(r"(?<![\w./-])(?:src|benchmarks|tests|docs)/[\w./-]*\w")
_KINDS = ("task", "scorer", "solver", "metric", "modelapi")
_OF_OTHERS = {"--no-deps", "--gpus", "--jinja", "--strict"}
"""Options of programs that are neither ours nor Inspect's."""
_GROUPS = {"or_eval.recipes", "or_eval.stages"}
"""Entry points that other packages may have."""


def commands_in(page: Path) -> Iterator[list[str]]:
    """Give the words of each command in a page's blocks."""
    for block in blocks(page):
        if not block.python:
            text = re.split(r"\s(?:\||&&|>)\s|;", block.text)[0]
            yield shlex.split(text, comments=True)


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """Find the command that words call, and give the words for it alone."""
    command, words = COMMANDS[words[0]], words[1:]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(click.Context(command), words[0])
        if found is None and command.invoke_without_command:
            break
        assert found is not None, f"no command {words[0]!r}"
        command, words = found, words[1:]
    return command, words


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(blocks(page))], ids=lambda p: p.stem
)
def test_every_command_is_one(page: Path) -> None:
    for words in commands_in(page):
        command, rest = command_of(words)
        context = click.Context(command, info_name=words[0])
        given, _, _ = command.make_parser(context).parse_args(list(rest))
        for option in command.params:
            value = given.get(str(option.name))
            assert not option.required or value or "-h" in rest, (words, option.name)
            if isinstance(option.type, click.Choice) and isinstance(value, str):
                option.type.convert(value, option, context)
        _check_options(words)


def _check_options(words: list[str]) -> None:
    """Check that options of tasks (``-T``) and scorers (``-S``) are theirs."""
    if words[0] == "scout":  # whose -T names transcripts
        return
    for letter, kind in (("-T", "task"), ("-S", "scorer")):
        keys = {words[n + 1].partition("=")[0] for n, word in enumerate(words) if word == letter}
        ours = [word.removeprefix("or_eval/") for word in words if word.startswith("or_eval/")]
        for name in ours if keys else []:
            found = registry_lookup(kind, f"or_eval/{name}")
            assert found is not None, (kind, name)
            assert keys <= set(inspect.signature(found).parameters), words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_everything_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    spoken = " ".join(_INLINE.findall(_FENCED.sub("", text)))
    unknown = {flag for flag in _FLAG.findall(spoken) if flag not in _flags() | _OF_OTHERS}
    assert not unknown
    for name in set(_NAMED.findall(text)) - {"NAME"}:
        in_folder = (ROOT / "src" / "or_eval" / name).exists()
        assert in_folder or any(registry_lookup(kind, f"or_eval/{name}") for kind in _KINDS), name
    for path in {path for path in _PATH.findall(spoken) if "CODE" not in path}:
        assert (ROOT / path).exists() or list(ROOT.glob(f"{path}*")), path
    for name in set(_DOTTED.findall(text)) - _GROUPS:
        _resolve(name)
    for name in set(_FUNCTION.findall(text)):
        if not name.startswith(_NO_MODULES):
            _resolve(f"or_eval.analysis.{name}")


def _flags() -> set[str]:
    """Give every option of every command of or-eval, Inspect and Scout, and of benchmarks."""
    if not _known_flags:
        for script in (ROOT / "benchmarks").glob("*.py"):
            _known_flags.update(_FLAG.findall(script.read_text("utf-8")))
        for command in COMMANDS.values():
            _known_flags.update(_flags_below(command))
    return _known_flags


_known_flags: set[str] = set()


def _flags_below(command: click.Command) -> Iterator[str]:
    yield "--help"
    for option in command.params:
        yield from (*option.opts, *option.secondary_opts)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            if (below := command.get_command(context, name)) is not None:
                yield from _flags_below(below)


def _resolve(name: str) -> Any:
    """Give what a dotted name stands for: a module, or something in one."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        module, _, last = name.rpartition(".")
        return getattr(_resolve(module), last)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_parse_and_what_they_import_and_call_is_there(page: Path) -> None:
    imported: dict[str, Any] = {}
    for language, text in _FENCED.findall(page.read_text("utf-8")):
        match language:
            case "yaml":
                list(yaml.safe_load_all(text))
            case "toml":
                tomllib.loads(text)
            case "python":
                tree = ast.parse(text)
                for node in ast.walk(tree):
                    if isinstance(node, ast.Import):
                        for alias in node.names:
                            import_module(alias.name)
                    elif isinstance(node, ast.ImportFrom) and node.module:
                        for alias in node.names:
                            imported[alias.name] = _resolve(f"{node.module}.{alias.name}")
                for node in ast.walk(tree):
                    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                        _check_keywords(node, imported.get(node.func.id))


def _check_keywords(call: ast.Call, function: Any) -> None:
    if function is None or not getattr(function, "__module__", "").startswith("or_eval"):
        return
    signature = inspect.signature(function)
    for keyword in call.keywords:
        assert keyword.arg in signature.parameters, (function.__name__, keyword.arg)


def test_the_registry_is_what_is_looked_up() -> None:
    assert registry_lookup("task", "or_eval/starter") is _registry.starter

"""The options of commands, by ``options.toml``, and what several commands make of theirs."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from or_eval.schema import countings

if TYPE_CHECKING:
    from or_eval.sources.columns import ColumnOptions

_TYPES: dict[str, Any] = {
    "path": click.Path(path_type=Path),
    "folder": click.Path(path_type=Path, file_okay=False),
    "existing file": click.Path(path_type=Path, exists=True, dir_okay=False),
    "share": click.FloatRange(0, 1),
    "counting": click.Choice(list(countings())),
}


def options(command: str, **told: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Give a command the options that ``options.toml`` declares for it.

    Args:
        command: Its table there.
        **told: What Python alone knows of an option, by the option's name.
    """

    def declare(function: Any) -> Any:
        for name, said in reversed(_tables()[command].items()):
            own = _tables()["shared"][name] if said == "shared" else said
            function = _option(name, {**own, **told.get(name, {})})(function)
        return function

    return declare


def _option(name: str, said: dict[str, Any]) -> Callable[[Any], Any]:
    own_name = [said.pop("as")] if "as" in said else []
    if "type" in said:
        said["type"] = _TYPES[said["type"]]
    if "choices" in said:
        said["type"] = click.Choice([str(choice) for choice in said.pop("choices")])
    if "least" in said:
        said["type"] = click.IntRange(said.pop("least"), said.pop("most", None))
    return click.option(f"--{name}", *own_name, show_default="default" in said, **said)


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads((files("or_eval.cli") / "options.toml").read_text("utf-8"))


def classes_of_words(
    _: click.Context, __: click.Parameter, given: tuple[str, ...]
) -> dict[str, str]:
    """Read what labels mean, each ``WORD=CLASS``."""
    # Imported here: it brings pandas, which --help can do without.
    from or_eval.analysis.human_labels import LABELS, SKIP

    words = {}
    for item in given:
        word, equals, label = item.rpartition("=")
        if not equals or label not in (*LABELS, SKIP):
            raise click.BadParameter(
                f"'{item}' is not WORD=CLASS with CLASS one of {', '.join((*LABELS, SKIP))}"
            )
        words[word] = label
    return words


def column_options(command: str) -> ColumnOptions:
    """Give a command's options that name columns, by what the columns hold."""
    # Imported here, as below: it brings Inspect, which --help can do without.
    from or_eval.sources.columns import ColumnOptions

    # Beside labels of prompts, which replay reads, these are people's of responses.
    roles = {} if command == "replay" else {"label": "human_label"}
    own = [name.removesuffix("-column") for name in _tables()[command] if name.endswith("-column")]
    named = [(roles.get(name, name), f"--{name}-column") for name in own]
    wide = [("responses", "--response-columns")] if "response-columns" in _tables()[command] else []
    return ColumnOptions((*named, *wide))


def response_file(responses: tuple[str, ...]) -> Path | None:
    """Give the file of responses, if that is what was named."""
    # Imported here: it brings Inspect, which --help can do without.
    from or_eval.sources.files import data_suffix

    if len(responses) != 1 or not (path := Path(responses[0])).is_file():
        return None
    suffix = data_suffix(path)
    if suffix == ".json":  # an Inspect log in JSON is an object, a file of responses is a list
        with path.open("rb") as file:
            return None if file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else path
    return path if suffix is not None else None


def tell_missing_words(missing: Collection[str], language: str) -> None:
    """Say once which texts of figures there were no words for."""
    if missing:
        click.echo(f"note: not translated into {language}: {'; '.join(missing)}", err=True)

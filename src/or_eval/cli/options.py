"""Options that several commands have, and what they are made of."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import click

from or_eval.analysis.figures.in_language import ENGLISH, languages

scorer_option = click.option(
    "--scorer",
    default="refusal",
    show_default=True,
    help="Name of the score that says whether a response is a refusal.",
)

on_conflict_option = click.option(
    "--on-conflict",
    type=click.Choice(["error", "latest", "all"]),
    default="error",
    show_default=True,
    help="What to do about two logs of one model on the same samples, an incomplete log, or an id "
    "with two texts: stop and list them; use the newest complete log and text; or pool everything.",
)

format_option = click.option(
    "--format",
    "formats",
    type=click.Choice(["html", "svg", "png", "pdf"]),
    multiple=True,
    default=["svg"],
    show_default=True,
    help="Form of the figures; several times for several. Their data is written as CSV.",
)

language_option = click.option(
    "--language",
    type=click.Choice(languages()),
    default=ENGLISH,
    show_default=True,
    help="Language of titles, axes and notes, and of names of categories, methods and languages.",
)


def out_option(default: str, of: str) -> Callable[[Any], Any]:
    """Give the option with the folder that a command writes to."""
    folder = click.Path(path_type=Path, file_okay=False)
    return click.option("--out", type=folder, default=default, show_default=True, help=of)


def labels_option(of: str) -> Callable[[Any], Any]:
    """Give the option with a file of people's labels."""
    return click.option("--labels", "labels_file", type=click.Path(path_type=Path), help=of)


label_column_option = click.option(
    "--label-column", metavar="NAME", help="Column of the labels.  [default: human_label]"
)


def _classes_of_words(
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


def mapping_option(of: str) -> Callable[[Any], Any]:
    """Give the option that says what words among the labels mean; it comes as a dictionary."""
    return click.option(
        "--map",
        "mapping",
        multiple=True,
        metavar="WORD=CLASS",
        callback=_classes_of_words,
        help=f"What a word among the labels means{of}",
    )


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
        click.echo(
            f"note: no words in {language}, left as they are: {'; '.join(missing)}", err=True
        )

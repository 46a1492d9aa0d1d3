"""Options of every command that reads logs, and of those that read people's labels beside them."""

from __future__ import annotations

from collections.abc import Collection

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


def tell_missing_words(missing: Collection[str], language: str) -> None:
    """Say once which texts of figures there were no words for."""
    if missing:
        click.echo(
            f"note: no words in {language}, left as they are: {'; '.join(missing)}", err=True
        )


label_column_option = click.option(
    "--label-column", metavar="NAME", help="Column of the labels.  [default: human_label]"
)

mapping_option = click.option(
    "--map",
    "mapping",
    multiple=True,
    metavar="WORD=CLASS",
    help="What a word among the labels means; as for or-eval agreement.",
)

"""``or-eval sets``: the public prompt sets that or-eval knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from or_eval.sources.catalogue import Entry

_LANGUAGES_SHOWN = 3


@click.command("sets")
@click.argument("name", required=False)
@click.option(
    "--label", type=click.Choice(["safe", "toxic", "unlabelled"]), help="With such prompts."
)
@click.option("--language", metavar="TAG", help="In this language, as en or zh+en.")
@click.option("--licence", metavar="WORD", help="With this word in its licence, as MIT or CC-BY.")
@click.option("--at-least", type=int, metavar="N", help="With N prompts or more.")
@click.option("--at-most", type=int, metavar="N", help="With N prompts or fewer.")
@click.option("--hub", is_flag=True, help="That load by their name alone, from the Hub or bundled.")
def sets(
    name: str | None,
    label: str | None,
    language: str | None,
    licence: str | None,
    at_least: int | None,
    at_most: int | None,
    hub: bool,
) -> None:
    """List the prompt sets of the catalogue, or show the one called NAME.

    A set that isn't on the Hub is downloaded from its publisher's page and given as a file:
    -T data=PATH -T source=NAME.
    """
    from or_eval.sources.catalogue import catalogue, catalogue_entry

    if name is not None:
        _show(catalogue_entry(name))
        return
    wanted = [
        entry
        for entry in catalogue().values()
        if (label is None or label in entry.layout.labels)
        and (language is None or language.casefold() in map(str.casefold, entry.all_languages))
        and (licence is None or licence.casefold() in entry.licence.casefold())
        and (at_least is None or (entry.prompts or 0) >= at_least)
        and (at_most is None or (entry.prompts or at_most + 1) <= at_most)
        and (not hub or entry.hub is not None or entry.bundled is not None)
    ]
    if not wanted:
        raise click.ClickException(
            f"none of the {len(catalogue())} sets is such; leave a filter out"
        )
    _list(wanted)


def _list(entries: list[Entry]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("name", "prompts", "labels", "languages", "licence", "title"):
        justify: Literal["left", "right"] = "right" if title == "prompts" else "left"
        table.add_column(title, overflow="fold", no_wrap=title == "name", justify=justify)
    for entry in entries:
        languages = entry.all_languages
        shown = ", ".join(languages) if len(languages) <= _LANGUAGES_SHOWN else str(len(languages))
        size = f"{entry.prompts:,}" if entry.prompts else "?"
        table.add_row(
            entry.name, size, ", ".join(entry.layout.labels), shown, entry.licence, entry.title
        )
    console = Console()
    console.print(table, markup=False)
    console.print("What one holds, and how to cite it: or-eval sets NAME", highlight=False)


def _show(entry: Entry) -> None:
    how = f"inspect eval or_eval/prompts -T data={entry.name}"
    if entry.hub is None and entry.bundled is None:
        how = f"inspect eval or_eval/prompts -T data=FILE -T source={entry.name}"
    place = "comes with or-eval" if entry.bundled else None
    if entry.hub is not None:
        pinned = f", revision {entry.hub.revision}" if entry.hub.revision else None
        revision = pinned or ", no revision known; the log of a run has the one that was read"
        parts = filter(None, [entry.hub.id, entry.hub.config, entry.hub.split])
        place = f"Hub: {':'.join(parts)}{revision}"
    facts = {
        "what": entry.about,
        "prompts": f"{entry.prompts:,}" if entry.prompts else None,
        "labels": ", ".join(entry.layout.labels),
        "languages": ", ".join(entry.all_languages),
        "licence": entry.licence,
        "place": place,
        "page": entry.url,
        "columns written from": entry.layout_from,
        "note": entry.note,
        "to cite": entry.citation,
        "to run": how,
    }
    click.echo(entry.title)
    for title, fact in facts.items():
        if fact:
            click.echo(f"  {title}: {fact}")

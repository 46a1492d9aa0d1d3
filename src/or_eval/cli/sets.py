"""``or-eval sets``: the public prompt sets that or-eval knows."""

from __future__ import annotations

from typing import Literal

import click
from rich.console import Console
from rich.table import Table

from or_eval.sources.catalogue import Entry, catalogue, catalogue_entry

_LANGUAGES_SHOWN = 3


@click.command("sets")
@click.argument("word", required=False)
def sets(word: str | None) -> None:
    """Show the prompt set called WORD, or list those that WORD is said of.

    That is a label (safe, toxic, unlabelled), a language (as ko or zh+en), or part of a name, a
    title, a description or a licence. Without a WORD all sets of the catalogue are listed.

    A set that isn't on the Hub is downloaded from its publisher's page and given as a file:
    -T data=PATH -T source=NAME.
    """
    entries = list(catalogue().values())
    if word in catalogue():
        _show(catalogue()[word])
    elif found := entries if word is None else _found(entries, word.casefold()):
        _list(found)
    else:
        catalogue_entry(str(word))  # says that there is none, and which is the nearest


def _found(entries: list[Entry], word: str) -> list[Entry]:
    """Give the sets with a label or a language, or with a part of text where it is neither."""
    keys = {e.name: [*e.layout.labels, *map(str.casefold, e.all_languages)] for e in entries}
    return [entry for entry in entries if word in keys[entry.name]] or [
        entry
        for entry in entries
        if word in " ".join((entry.name, entry.title, entry.about, entry.licence)).casefold()
    ]


def _list(entries: list[Entry]) -> None:
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

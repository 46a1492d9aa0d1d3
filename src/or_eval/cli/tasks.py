"""``or-eval tasks``: the refusal-testing tasks, and the public prompt sets that or-eval knows."""

from __future__ import annotations

from typing import Literal

import click
from rich.console import Console
from rich.table import Table

from or_eval.sources.catalogue import Entry, catalogue, catalogue_entry

_LANGUAGES_SHOWN = 3
_PREFIX = "or_eval/"
_WIDE = 110


@click.command("tasks")
@click.argument("word", required=False)
def tasks(word: str | None) -> None:
    """List tasks and prompt sets with their sizes and licences, or show the one called WORD.

    WORD may also be a label (safe, toxic, unlabelled), a language (ko, zh+en), or part of a name,
    title, description or licence: all that match are listed.

    A set that needs its file is downloaded from its publisher's page and given as
    -T data=PATH -T source=NAME.
    """
    entries = sorted(catalogue().values(), key=lambda entry: (not entry.task, not entry.bundled))
    name = word and word.removeprefix(_PREFIX)
    if name in catalogue():
        _show(catalogue()[name])
    elif found := entries if word is None else _found(entries, word.casefold()):
        _list(found)
    else:
        catalogue_entry(str(name))  # says that there is none, and which is the nearest


def _found(entries: list[Entry], word: str) -> list[Entry]:
    """Give the sets with a label or a language, or with a part of text where it is neither."""
    keys = {e.name: [*e.layout.labels, *map(str.casefold, e.all_languages)] for e in entries}
    return [entry for entry in entries if word in keys[entry.name]] or [
        entry
        for entry in entries
        if word in " ".join((entry.name, entry.title, entry.about, entry.licence)).casefold()
    ]


def _list(entries: list[Entry]) -> None:
    console = Console()
    table = Table(box=None, pad_edge=False)
    titles = ["name", "prompts", "labels", "languages", "licence", "needs", "title"]
    # In a narrow terminal the titles would leave no room to the rest.
    for title in titles[: None if console.width >= _WIDE else -1]:
        justify: Literal["left", "right"] = "right" if title == "prompts" else "left"
        whole = title in ("name", "needs")
        table.add_column(title, overflow="fold", no_wrap=whole, justify=justify)
    for entry in entries:
        languages = entry.all_languages
        cells = (
            f"{_PREFIX}{entry.name}" if entry.task else entry.name,
            f"{entry.prompts:,}" if entry.prompts else "?",
            ", ".join(entry.layout.labels),
            ", ".join(languages) if len(languages) <= _LANGUAGES_SHOWN else str(len(languages)),
            entry.licence,
            "nothing" if entry.bundled else "the Hub" if entry.hub else "its file",
            entry.title,
        )
        table.add_row(*cells[: len(table.columns)])
    console.print(table, markup=False)
    console.print(
        f"{_PREFIX}NAME is a task; run any other as {_PREFIX}prompts -T data=NAME. "
        "Contents and citation of a set: or-eval tasks NAME",
        highlight=False,
    )


def _show(entry: Entry) -> None:
    how = f"{_PREFIX}{entry.name}" if entry.task else f"{_PREFIX}prompts -T data={entry.name}"
    if entry.hub is None and entry.bundled is None:
        how = f"{_PREFIX}prompts -T data=FILE -T source={entry.name}"
    places = ["comes with or-eval"] if entry.bundled else []
    if entry.hub is not None:
        pinned = f", revision {entry.hub.revision}" if entry.hub.revision else None
        revision = pinned or ", no revision known; the log of a run has the one that was read"
        parts = filter(None, [entry.hub.id, entry.hub.config, entry.hub.split])
        places.append(f"Hub: {':'.join(parts)}{revision}")
    facts = {
        "what": entry.about,
        "prompts": f"{entry.prompts:,}" if entry.prompts else None,
        "labels": ", ".join(entry.layout.labels),
        "languages": ", ".join(entry.all_languages),
        "licence": entry.licence,
        "place": "; ".join(places),
        "page": entry.url,
        "columns written from": entry.layout_from,
        "note": entry.note,
        "to cite": entry.citation,
        "to run": f"inspect eval {how}",
    }
    click.echo(entry.title)
    for title, fact in facts.items():
        if fact:
            click.echo(f"  {title}: {fact}")

"""A round as projects of Label Studio, one for each annotator, and their annotations back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt

from or_eval.labelling.folder import guide, tasks_by_key
from or_eval.labelling.history import Annotation
from or_eval.labelling.rounds import read_round
from or_eval.labelling.studio.client import Studio
from or_eval.labelling.studio.interface import annotations_of, interface
from or_eval.labelling.studio.server import (
    Access,
    names_by_account,
    new_access,
    read_access,
    write_access,
)
from or_eval.labelling.wording import wording
from or_eval.sources.errors import DataError

_ANYBODY = "annotator"
"""Who gets all tasks where nobody was named."""


def access_of(folder: Path) -> Access:
    """Give the accounts of a round's annotators, made up where there are none yet."""
    return read_access(folder) or new_access(list(read_round(folder).annotators) or [_ANYBODY])


def set_up(folder: Path, access: Access) -> None:
    """Make the accounts and projects that aren't there yet.

    Each annotator has a project of their own: the community edition assigns no tasks, and in a
    project that several share it shows each what the others said.
    """
    studio, given, tasks = Studio(access), read_round(folder), tasks_by_key(folder)
    for name, account in access.accounts.items():
        if account.project is None:
            account.user = studio.account_number(account)
            keys = given.annotators.get(name, sorted(tasks))
            account.project = studio.add_project(
                f"{name}: {folder.resolve().name}",
                interface(wording(given.language), given.asks),
                _page(guide(given)),
                [tasks[key] for key in keys],
            )
            write_access(folder, access)


def _page(text: str) -> str:
    """Give Markdown as HTML with empty lines, since Label Studio takes margins and styles away."""
    page = str(MarkdownIt("js-default").render(text)).replace("<h2>", "<br><h2>")
    for end in ("</h1>", "</p>", "</li>"):
        page = page.replace(end, f"{end}<br>")
    return page


def running_annotations(folder: Path) -> Iterator[Annotation]:
    """Read annotations from a round's running Label Studio.

    Raises:
        DataError: It was never started, or doesn't run.
    """
    tasks, access = tasks_by_key(folder), read_access(folder)
    if access is None:
        raise DataError(f"{folder}: name files to import, or start Label Studio on it first")
    studio, names = Studio(access), names_by_account(access)
    for name, account in access.accounts.items():
        if account.project is not None:
            exported = studio.annotations(account.project)
            yield from annotations_of(exported, tasks, names, f"Label Studio, {name}")

"""A round in a running Label Studio: a project for each annotator, and what they say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from markdown_it import MarkdownIt

from or_eval.labelling.folder import guide, tasks_by_key
from or_eval.labelling.labels import Annotation
from or_eval.labelling.rounds import read_round
from or_eval.labelling.studio.interface import annotations_of, interface
from or_eval.labelling.studio.server import (
    Access,
    Account,
    Studio,
    names_by_account,
    new_access,
    read_access,
    write_access,
)
from or_eval.labelling.tasks import Task
from or_eval.labelling.wording import wording
from or_eval.sources.errors import DataError, shown

_TITLE = 50
"""Characters of a project's title at most (Label Studio)."""
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
            account.user = _account_number(studio, account)
            own = [tasks[key] for key in given.annotators.get(name, sorted(tasks))]
            asked = {
                "title": f"{name}: {folder.resolve().name}"[:_TITLE],
                "label_config": interface(wording(given.language), given.asks),
                "expert_instruction": _page(guide(given)),
            }
            account.project = _add_project(studio, asked, own)
            write_access(folder, access)


def running_annotations(folder: Path, access: Access) -> Iterator[Annotation]:
    """Read annotations from a round's Label Studio.

    Raises:
        DataError: It doesn't run.
    """
    studio, tasks, names = Studio(access), tasks_by_key(folder), names_by_account(access)
    for name, account in access.accounts.items():
        if account.project is not None:
            whole = "export?exportType=JSON&download_all_tasks=true"
            exported = studio.ask("GET", f"/api/projects/{account.project}/{whole}")
            yield from annotations_of(exported, tasks, names, f"Label Studio, {name}")


def _account_number(studio: Studio, account: Account) -> int:
    """Give an account's number; sign the annotator up first, where there is none yet."""
    for sign_up in (True, False):
        for user in studio.ask("GET", "/api/users"):
            if user["email"] == account.email:
                return int(user["id"])
        if sign_up:
            studio.sign_up(account)
    raise DataError(f"Label Studio made no account for {shown(account.email)}")


def _add_project(studio: Studio, asked: dict[str, str], tasks: Sequence[Task]) -> int:
    """Make a project with tasks, shown in their order; give its number."""
    shown_so = {
        "show_instruction": True,
        "show_skip_button": False,
        "enable_empty_annotation": False,
        "sampling": "Sequential sampling",
    }
    project = studio.ask("POST", "/api/projects", {**asked, **shown_so})
    rows = [{"data": task._asdict()} for task in tasks]
    studio.ask("POST", f"/api/projects/{project['id']}/import", rows)
    return int(project["id"])


def _page(text: str) -> str:
    """Give Markdown as HTML with empty lines, since Label Studio takes margins and styles away."""
    page = str(MarkdownIt("js-default").render(text)).replace("<h2>", "<br><h2>")
    for end in ("</h1>", "</p>", "</li>"):
        page = page.replace(end, f"{end}<br>")
    return page

"""A running Label Studio: a round as projects, one for each annotator, and what they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
from markdown_it import MarkdownIt

from or_eval.labelling.folder import guide, tasks_by_key
from or_eval.labelling.history import Annotation
from or_eval.labelling.rounds import read_round
from or_eval.labelling.studio.interface import annotations_of, interface
from or_eval.labelling.studio.server import (
    Access,
    Account,
    names_by_account,
    new_access,
    read_access,
    write_access,
)
from or_eval.labelling.tasks import Task
from or_eval.labelling.wording import wording
from or_eval.sources.errors import DataError, shown

_TIMEOUT = 120.0
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


class Studio:
    """A running Label Studio, as the account that set it up."""

    def __init__(self, access: Access) -> None:
        self._url = access.url
        self._http = httpx.Client(
            base_url=access.url,
            headers={"Authorization": f"Token {access.token}"},
            timeout=_TIMEOUT,
            trust_env=False,  # loopback needs no proxy
        )

    def account_number(self, account: Account) -> int:
        """Give an account's number; sign the annotator up first, where there is none yet."""
        if (number := self._number(account)) is None:
            self._sign_up(account)
            number = self._number(account)
        if number is None:
            raise DataError(f"Label Studio made no account for {shown(account.email)}")
        return number

    def _number(self, account: Account) -> int | None:
        users = self._ask("GET", "/api/users")
        return next((int(u["id"]) for u in users if u["email"] == account.email), None)

    def _sign_up(self, account: Account) -> None:
        """Send the form that a person would who was given the link."""
        invitation = self._ask("GET", "/api/invite")["invite_url"]
        with httpx.Client(base_url=self._url, timeout=_TIMEOUT, trust_env=False) as http:
            http.get(invitation).raise_for_status()
            http.post(
                invitation,
                data={
                    "email": account.email,
                    "password": account.password,
                    "csrfmiddlewaretoken": http.cookies["csrftoken"],
                },
            )

    def add_project(self, title: str, interface: str, guide: str, tasks: Sequence[Task]) -> int:
        """Make a project with tasks, shown in their order; give its number."""
        project = self._ask(
            "POST",
            "/api/projects",
            {
                "title": title[:_TITLE],
                "label_config": interface,
                "expert_instruction": guide,
                "show_instruction": True,
                "show_skip_button": False,
                "enable_empty_annotation": False,
                "sampling": "Sequential sampling",
            },
        )
        rows = [{"data": task._asdict()} for task in tasks]
        self._ask("POST", f"/api/projects/{project['id']}/import", rows)
        return int(project["id"])

    def annotations(self, project: int) -> Any:
        """Give a project's tasks with their annotations, as its export has them."""
        return self._ask(
            "GET", f"/api/projects/{project}/export?exportType=JSON&download_all_tasks=true"
        )

    def _ask(
        self, method: str, path: str, data: Mapping[str, Any] | list[Any] | None = None
    ) -> Any:
        try:
            said = self._http.request(method, path, json=data)
        except httpx.TransportError:
            raise DataError(
                f"Label Studio doesn't answer at {self._url}; start it with or-eval label start"
            ) from None
        if said.is_error:
            raise DataError(
                f"Label Studio: {method} {path} failed with {said.status_code} "
                f"({shown(said.text[:200])})"
            )
        return said.json()

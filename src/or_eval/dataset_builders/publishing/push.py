"""Publish a data set on the Hugging Face Hub in one commit, and load it back."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.publishing.data_card import REPOSITORY, TAG
from or_eval.dataset_builders.publishing.dataset_folder import (
    CARD,
    SPLIT,
    DatasetFolder,
    card_header,
    configurations_of,
    tags_of,
)
from or_eval.dataset_builders.publishing.hub_eval import EVAL, hub_eval
from or_eval.hostile_text import shortened, visible
from or_eval.key_like import without_keys
from or_eval.sources.errors import shown
from or_eval.sources.hub import hub_place

if TYPE_CHECKING:
    from huggingface_hub import CommitInfo, HfApi
    from huggingface_hub.hf_api import DatasetInfo

_MAIN = "main"
_SAID_CHARS = 200
_AGAIN = "run the same command again"
_RIGHTS = "the token may not do this: it needs write access to the repository's owner"
_CHANGED = f"somebody else is changing it or just did: check it, and {_AGAIN}"
_TO_DO = {
    401: "the token isn't valid: run `hf auth login`, or set HF_TOKEN to another",
    402: _RIGHTS,
    403: _RIGHTS,
    404: "there is no such repository or revision, or the token can't see it",
    409: _CHANGED,
    412: _CHANGED,
    429: f"too many requests: wait some minutes and {_AGAIN}",
}
_NOT_DATA = {CARD, EVAL, ".gitattributes", ".gitignore", "LICENSE", "LICENSE.md", "LICENSE.txt"}


class Target(NamedTuple):
    """A repository as it stands before a push.

    Attributes:
        repo: ``OWNER/NAME``.
        branch: Branch to push to.
        private: Whether the repository is, or will be, private.
        exists: Whether there is such a repository.
        head: Commit that the push is to follow; None where it is known only once the repository
            or branch is made.
        stale: Files of an earlier push whose configurations are no more; the push removes them.
    """

    repo: str
    branch: str
    private: bool
    exists: bool
    head: str | None
    stale: tuple[str, ...]


def hub_token() -> str | None:
    """Give the token that the Hub's client finds, if any."""
    from huggingface_hub import get_token

    with hub_errors("signing in to the Hub"):
        return get_token()


def signed_in() -> None:
    """Check that there is a token.

    Raises:
        BuildError: There is none, or it can't be one.
    """
    token = hub_token()
    if token is None:
        raise BuildError(
            "no Hugging Face token: run `hf auth login`, or set HF_TOKEN to a token with write "
            "access (https://huggingface.co/settings/tokens)"
        )
    # The client's own error for this would quote the token.
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise BuildError(
            "the Hugging Face token contains characters that no token has: set it again"
        )


def check_name(repo: str) -> None:
    """Check that a text can name a repository.

    Raises:
        BuildError: It can't.
    """
    place = hub_place(repo)
    if place is None or place.id != repo:
        raise BuildError(f"{shown(repo)} isn't a repository name: give OWNER/NAME")


def look_at(folder: DatasetFolder, repo: str, *, private: bool, revision: str | None) -> Target:
    """See what a push would change, to a branch (the main one) of a repository that may be new.

    Raises:
        BuildError: The Hub can't be asked, or the repository isn't one to push to.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        GatedRepoError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    api, branch = HfApi(), revision or _MAIN
    with hub_errors(f"{repo}: looking at the repository"):
        try:
            info = api.dataset_info(repo)
        except RepositoryNotFoundError as error:
            # 401 is about the token; the Hub says it of absent repositories to strangers only.
            if isinstance(error, GatedRepoError) or error.response.status_code == 401:
                raise
            return Target(repo, branch, private, False, None, ())
        if private and not info.private:
            raise BuildError(
                f"{repo}: is public already, and --private can't change that; make it private in "
                "its settings on the Hub, or leave --private out"
            )
        head = info.sha
        if branch != _MAIN:
            try:
                info = api.dataset_info(repo, revision=branch)
                head = info.sha
            except RevisionNotFoundError:
                head = None
        stale = _stale(api, folder, info)
    return Target(repo, branch, bool(info.private), True, head, stale)


def push(folder: DatasetFolder, target: Target) -> CommitInfo:
    """Push a data set, in one commit that holds all of it; make the repository where needed.

    A push that fails leaves the repository as it was, or new and empty; the next one completes it.
    One that finds the same files there changes nothing.

    Raises:
        BuildError: The Hub refuses, or can't be reached.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    from or_eval import __version__

    api, repo, branch = HfApi(), target.repo, target.branch
    if not target.exists:
        with hub_errors(f"{repo}: making the repository"):
            api.create_repo(repo, repo_type="dataset", private=target.private)
    head = target.head
    if head is None:
        with hub_errors(f"{repo}: making the branch {branch}"):
            if branch != _MAIN:
                api.create_branch(repo, repo_type="dataset", branch=branch)
            head = api.dataset_info(repo, revision=branch).sha
    content = pushed_files(folder, repo)
    with hub_errors(f"{repo}: pushing"):
        # Not upload_folder, which may make several commits, so that readers see half a set.
        return api.create_commit(
            repo,
            [
                *(CommitOperationDelete(path) for path in target.stale),
                *(CommitOperationAdd(path, file) for path, file in content.items()),
            ],
            commit_message=f"Publish with or-eval {__version__}",
            repo_type="dataset",
            revision=branch,
            parent_commit=head,
        )


def card_for(folder: DatasetFolder, repo: str) -> str:
    """Give the card with the name of the repository where it shows how to load the set."""
    return folder.card.replace(REPOSITORY, repo)


def pushed_files(folder: DatasetFolder, repo: str) -> dict[str, Path | bytes]:
    """Give the files of a push by their paths in the repository, or what is in them."""
    files: dict[str, Path | bytes] = {path: folder.path / path for path in folder.files}
    files[CARD] = card_for(folder, repo).encode()
    if EVAL not in files and (said := hub_eval(folder, repo)) is not None:
        files[EVAL] = said.encode()
    return files


def load_back(folder: DatasetFolder, repo: str, commit: str) -> None:
    """Load what a push put on the Hub, as anybody would, and compare it row by row.

    Raises:
        BuildError: It can't be loaded, or it isn't what was pushed.
    """
    from datasets import get_dataset_config_names, load_dataset

    differs = f"{repo}: the set at {commit[:8]} is not what was pushed"
    with hub_errors(f"{repo}: pushed as {commit[:8]}, but loading it back"):
        names = get_dataset_config_names(repo, revision=commit)
        if set(names) != set(folder.configurations):
            raise BuildError(f"{differs}: it has the configurations {', '.join(sorted(names))}")
        for name in folder.configurations:
            with tempfile.TemporaryDirectory(prefix="or-eval-push-") as cache:
                found = load_dataset(
                    repo,
                    name,
                    split=SPLIT,
                    revision=commit,
                    download_mode="force_redownload",
                    cache_dir=cache,
                ).to_list()
            for difference in _differences(folder.table(name).to_pylist(), found):
                raise BuildError(f"{differs}: configuration {name}, {difference}")


def _differences(pushed: list[dict[str, Any]], found: list[dict[str, Any]]) -> Iterator[str]:
    if len(pushed) != len(found):
        yield f"{len(pushed)} rows were pushed, {len(found)} are there"
    for number, (ours, theirs) in enumerate(zip(pushed, found, strict=False), start=1):
        if ours.keys() != theirs.keys():
            yield f"row {number}: the columns there are {', '.join(theirs)}"
        for column in ours:
            if ours[column] != theirs.get(column):
                yield f"row {number}, column '{column}': {shown(theirs[column])} is there"


def _stale(api: HfApi, folder: DatasetFolder, info: DatasetInfo) -> tuple[str, ...]:
    """Give the files of an earlier push's configurations that the new set doesn't have.

    Raises:
        BuildError: The repository holds something that no push of ours put there.
    """
    there = {file.rfilename for file in info.siblings or ()}
    header: dict[str, Any] = {}
    if CARD in there:
        path = api.hf_hub_download(info.id, CARD, repo_type="dataset", revision=info.sha)
        with suppress(ValueError):
            header = card_header(Path(path))
    foreign = sorted(there - _NOT_DATA)
    if foreign and TAG not in tags_of(header):
        raise BuildError(
            f"{info.id}: contains files that or-eval didn't push ({', '.join(foreign[:3])}"
            f"{' and more' if len(foreign) > 3 else ''}); name another repository"
        )
    return tuple(
        sorted(set(filter(None, configurations_of(header).values())) & there - set(folder.files))
    )


@contextmanager
def hub_errors(doing: str) -> Iterator[None]:
    """Turn what fails in talking to the Hub into a :class:`BuildError`.

    Args:
        doing: What is being done, as the line begins: ``acme/prompts: pushing``.
    """
    try:
        yield
    except BuildError:
        raise
    except Exception as error:
        # The client raises errors of five libraries; each is the user's to solve, not ours.
        raise BuildError(f"{doing}: {_problem(error)}") from error


def _problem(error: BaseException) -> str:
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    if isinstance(error, OfflineModeIsEnabled):
        return "HF_HUB_OFFLINE is set, so the Hub isn't contacted"
    if isinstance(error, HfHubHTTPError):
        return _answer(error.response.status_code, error.server_message or "")
    said = _said(str(error)) or type(error).__name__
    if _is_of_the_network(error):
        return f"the connection to the Hub failed ({said}); check the network and {_AGAIN}"
    # What reads the files wraps what went wrong on the way.
    return _problem(error.__cause__) if error.__cause__ is not None else said


def _is_of_the_network(error: BaseException) -> bool:
    # By name: which release of httpx the client is built on is its own affair.
    modules = (kind.__module__.partition(".")[0] for kind in type(error).__mro__)
    return isinstance(error, ConnectionError | TimeoutError) or any(
        module in ("httpx", "httpx2", "requests") for module in modules
    )


def _answer(status: int, message: str) -> str:
    said = f"the Hub answered {status}" + (f", {_said(message)!r}" if message else "")
    todo = _TO_DO.get(
        status, f"it has a problem of its own: {_AGAIN} later" if status >= 500 else ""
    )
    return f"{said}; {todo}" if todo else said


def _said(text: str) -> str:
    return shortened(visible(" ".join(without_keys(text).split())), _SAID_CHARS).rstrip(".")

"""``or-eval push``: a built data set, published on the Hugging Face Hub."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from or_eval.cli.options import options

if TYPE_CHECKING:
    from or_eval.dataset_builders.publishing.dataset_folder import DatasetFolder


@click.command("push")
@click.argument(
    "folder", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@click.argument("repo")
@options("push")
def push(
    folder: Path, repo: str, private: bool, revision: str | None, dry_run: bool, yes: bool
) -> None:
    """Publish the data set in DIR on the Hugging Face Hub as REPO (OWNER/NAME).

    DIR is the folder of a build, a snapshot, or a folder of Parquet files with a data card such as
    a build makes. The set is checked, pushed in one commit, loaded back, and compared row by row.
    What an earlier push put there and this set no longer has is removed.

    \b
    See what would be pushed:
      or-eval push built acme/prompts --dry-run
    Push to a private repository:
      or-eval push built acme/prompts --private
    """
    from or_eval.dataset_builders.publishing.dataset_folder import build_of, read_dataset
    from or_eval.dataset_builders.publishing.push import check_name, load_back, look_at, signed_in
    from or_eval.dataset_builders.publishing.push import push as push_to
    from or_eval.folder_lock import locked

    check_name(repo)
    if dry_run:
        dataset = read_dataset(folder)
        _show(dataset, repo, private=private, revision=revision)
        check_dataset(dataset)
        return
    build = build_of(folder)
    # A build would put other files there between the check and the push.
    with nullcontext() if build is None else locked(build):
        dataset = read_dataset(folder)
        check_dataset(dataset)
        signed_in()
        target = look_at(dataset, repo, private=private, revision=revision)
        if not target.private and not yes:
            _confirm(dataset, repo)
        pushed = push_to(dataset, target)
        click.echo(f"Pushed: {pushed.commit_url}")
        load_back(dataset, repo, pushed.oid)
        click.echo(f"Loaded back, and the same: {_sizes(dataset)}")


def check_dataset(dataset: DatasetFolder) -> None:
    """Tell everything that is wrong with a data set, and stop where something is."""
    from or_eval.dataset_builders.errors import BuildError
    from or_eval.dataset_builders.publishing.push import hub_token
    from or_eval.dataset_builders.publishing.push_checks import problems
    from or_eval.key_like import secrets_of, without_keys

    token = hub_token()
    secrets = secrets_of(os.environ) + ([("the Hugging Face token", token)] if token else [])
    found = problems(dataset, secrets)
    if len(found) == 1:
        raise BuildError(f"{dataset.path}: can't be pushed: {found[0]}")
    if found:
        for problem in found:
            click.echo(without_keys(problem), err=True)
        raise BuildError(f"{dataset.path}: can't be pushed: {len(found)} problems, see above")


def _confirm(dataset: DatasetFolder, repo: str) -> None:
    """Ask whether to publish; the answer is the repository's name.

    Raises:
        ClickException: Nobody is there to ask, or the answer is another one.
    """
    if not sys.stdin.isatty():
        raise click.ClickException(
            f"{repo} is public, and the prompts are harmful or sound harmful: pass --yes to "
            "publish "
            "them, or --private for a new private repository"
        )
    click.echo(f"Anybody will be able to read {repo}: {_sizes(dataset)}.")
    if click.prompt("Type its name to publish it", default="", show_default=False) != repo:
        raise click.ClickException("the name differs: nothing was pushed")


def _show(dataset: DatasetFolder, repo: str, *, private: bool, revision: str | None) -> None:
    """Show what a push would do: where to, the files with their sizes, and the card."""
    from or_eval.dataset_builders.errors import BuildError
    from or_eval.dataset_builders.publishing.push import card_for, look_at, pushed_files
    from or_eval.key_like import without_keys

    try:
        target = look_at(dataset, repo, private=private, revision=revision)
    except BuildError as error:
        click.echo(f"Can't see what is there now: {error}")
        stale: tuple[str, ...] = ()
    else:
        state = "private" if target.private else "public"
        there = f"is there, {state}" if target.exists else f"would be made, {state}"
        click.echo(f"{repo} {there}; branch {target.branch}")
        stale = target.stale
    click.echo("Files:")
    for path, file in pushed_files(dataset, repo).items():
        size = len(file) if isinstance(file, bytes) else file.stat().st_size
        click.echo(f"{size:>12,} bytes  {without_keys(path)}")
    for path in stale:
        click.echo(f"{'removed':>18}  {path} (of an earlier push)")
    click.echo(f"Card:\n\n{without_keys(card_for(dataset, repo))}")


def _sizes(dataset: DatasetFolder) -> str:
    from or_eval.analysis.snapshots import RESPONSES

    counts = ((name, dataset.table(name).num_rows) for name in dataset.configurations)
    return ", ".join(
        f"{name} {count:,}" + ("" if name == RESPONSES else " prompts") for name, count in counts
    )

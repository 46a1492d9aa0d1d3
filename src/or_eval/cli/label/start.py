"""``or-eval label start``: Label Studio with a round set up in it."""

from __future__ import annotations

import signal
from pathlib import Path

import click

from or_eval.cli.label.options import EXISTING_FOLDER
from or_eval.cli.options import options


@click.command("start")
@click.argument("folder", type=EXISTING_FOLDER)
@options("label-start")
def start(folder: Path, port: int) -> None:
    """Run Label Studio with the tasks of FOLDER, until Ctrl-C.

    The first time, Label Studio is installed into an environment of its own, in the user's cache
    or where the variable OR_EVAL_LABEL_STUDIO says. It listens on 127.0.0.1 alone. Its data, and
    the accounts that are made for the annotators, lie in FOLDER/label-studio.
    """
    # Imported here: --help can do without.
    from or_eval.labelling.studio.projects import access_of, set_up
    from or_eval.labelling.studio.server import ensure_environment, environment_folder, running

    access = access_of(folder)
    program = ensure_environment(environment_folder(), click.echo)
    # Ended by a signal, it must not leave the server behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    click.echo("Starting Label Studio (the first time it makes its database) ...")
    try:
        with running(program, folder, access, port) as server:
            set_up(folder, access)
            click.echo(f"Label Studio runs at {access.url}")
            for name, account in access.accounts.items():
                click.echo(
                    f"  {name}: {access.url}/projects/{account.project}/data  log in as "
                    f"{account.email}, password {account.password}"
                )
            click.echo(
                f"Collect the answers with: or-eval label import {folder}. Stop it with Ctrl-C."
            )
            server.wait()
    except KeyboardInterrupt:
        click.echo("Label Studio has stopped; all answers are kept.")

"""``or-eval label status``: how far annotators are, and how they did on known cases."""

from __future__ import annotations

from pathlib import Path

import click

from or_eval.cli.label.options import EXISTING_FOLDER


@click.command("status")
@click.argument("folder", type=EXISTING_FOLDER)
def status(folder: Path) -> None:
    """Tell how far annotators are, how they did on known cases, and what waits for a decision."""
    from rich.console import Console

    from or_eval.analysis.tables import terminal_table
    from or_eval.labelling.labels import disputed, progress
    from or_eval.labelling.rounds import home

    place = home(folder)
    Console().print(terminal_table(progress(place), "Annotators"))
    click.echo(f"{len(disputed(place))} tasks with answers that differ wait for a decision.")

"""``or-eval label adjudicate``: tasks of what annotators differ on."""

from __future__ import annotations

from pathlib import Path

import click

from or_eval.cli.label.options import (
    EXISTING_FOLDER,
    check_names,
    check_spreadsheets,
)


@click.command("adjudicate")
@click.argument("folder", type=EXISTING_FOLDER)
@click.option(
    "--annotator",
    "annotators",
    multiple=True,
    metavar="NAME",
    help="Who decides, and gets a spreadsheet; give it once for each.",
)
def adjudicate(folder: Path, annotators: tuple[str, ...]) -> None:
    """Write what annotators differ on as tasks for somebody who decides.

    The tasks go to a folder of their own within FOLDER, to start and import as any other. A
    decision counts before all that annotators said; theirs stays in the history.
    """
    from or_eval.labelling.folder import write_adjudication

    check_names(annotators)
    if annotators:
        check_spreadsheets()
    out, count = write_adjudication(folder, annotators)
    click.echo(f"{out}: {count} tasks to decide")

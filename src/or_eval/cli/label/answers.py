"""``or-eval label import``, ``status`` and ``adjudicate``: what annotators said."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from or_eval.cli.label.options import EXISTING_FOLDER, check_names
from or_eval.cli.options import options

if TYPE_CHECKING:
    from or_eval.labelling.labels import Annotation
    from or_eval.labelling.rounds import Round


_SHEETS = (".xlsx", ".csv", ".tsv", ".jsonl", ".parquet")


@click.command("import")
@click.argument("folder", type=EXISTING_FOLDER)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True))
def import_(folder: Path, files: tuple[Path, ...]) -> None:
    """Import annotations: JSON exports of Label Studio, or filled-in spreadsheets.

    Without files, from the Label Studio that `or-eval label start FOLDER` runs; where it was never
    started, the spreadsheets in FOLDER. Of a folder among FILES, the spreadsheets in it. A
    spreadsheet (xlsx, or saved as csv, tsv, jsonl or parquet) has its annotator's name. Annotations
    are imported once; a changed one is added and replaces the earlier one.
    """
    # Here and below imported on use: --help needs none of it.
    from or_eval.folder_lock import locked
    from or_eval.labelling.folder import write_labels
    from or_eval.labelling.labels import append, checked, disputed, labels
    from or_eval.labelling.rounds import home, read_round
    from or_eval.labelling.studio.projects import running_annotations
    from or_eval.labelling.studio.server import read_access

    place, given, access = home(folder), read_round(folder), read_access(folder)
    sources: list[tuple[str, Iterable[Annotation]]]
    if not files and access is not None:
        sources = [("Label Studio", running_annotations(folder, access))]
    else:
        paths = [path for some in files or (folder,) for path in _within(some, given)]
        sources = [(path.name, _annotations(path, folder, given)) for path in paths]
    with locked(place, "imports labels"):
        # All is read before anything is added: a file that is wrong keeps the others out too.
        for name, found in [(name, list(map(checked, brought))) for name, brought in sources]:
            new, known = append(folder, found)
            open_ = sum(getattr(one, given.question) is None for one in found)
            left = f"; {open_} begun, but not answered" if open_ else ""
            click.echo(f"{name}: {new} new, {known} known already{left}")
        frame = labels(place)
        if frame.empty:
            raise click.ClickException("no labels yet")
        click.echo(f"{write_labels(place, frame)}: {len(frame)} labelled")
    if open_ := len(disputed(place)):
        click.echo(
            f"annotators disagree on {open_} of them: or-eval label adjudicate {place} makes tasks "
            "of these"
        )


def _within(path: Path, given: Round) -> list[Path]:
    """Give a file itself, and of a folder the annotators' sheets in it."""
    from or_eval.sources.files import data_suffix

    if not path.is_dir():
        return [path]
    sheets = {
        name: [one for one in sorted(path.glob(f"{name}.*")) if data_suffix(one) in _SHEETS]
        for name in given.annotators
    }
    if twice := next((found for found in sheets.values() if len(found) > 1), None):
        there = " and ".join(one.name for one in twice)
        raise click.ClickException(f"{path}: contains {there}; name the one to import")
    if not any(sheets.values()):
        raise click.ClickException(
            f"{path}: contains no annotator's sheet; name files to import, or start Label Studio "
            "on "
            "it first"
        )
    return [one for found in sheets.values() for one in found]


def _annotations(path: Path, folder: Path, given: Round) -> Iterable[Annotation]:
    from or_eval.labelling.folder import tasks_by_key
    from or_eval.labelling.spreadsheet import read_spreadsheet
    from or_eval.labelling.studio.interface import read_export
    from or_eval.labelling.studio.server import names_by_account, read_access
    from or_eval.sources.files import data_suffix

    tasks, kind = tasks_by_key(folder), data_suffix(path)
    if kind == ".json":
        return read_export(path, tasks, names_by_account(read_access(folder)))
    if kind not in _SHEETS:
        raise click.ClickException(
            f"{path.name}: is neither a filled-in sheet ({', '.join(_SHEETS)}) nor a JSON export "
            "of Label Studio"
        )
    name = path.name.partition(".")[0]
    if name not in given.annotators:
        raise click.ClickException(
            f"{path.name}: the file name must be the annotator's, and no annotator is called "
            f"{name!r}; there are: {', '.join(given.annotators)}"
        )
    return read_spreadsheet(path, name, tasks, given.asks)


@click.command("status")
@click.argument("folder", type=EXISTING_FOLDER)
def status(folder: Path) -> None:
    """Show how far annotators are, how they did on known cases, and what needs a decision."""
    from rich.console import Console

    from or_eval.analysis.tables import terminal_table
    from or_eval.labelling.labels import disputed, progress
    from or_eval.labelling.rounds import home

    place = home(folder)
    Console().print(terminal_table(progress(place), "Annotators"))
    click.echo(f"{len(disputed(place))} tasks with differing answers wait for a decision.")


@click.command("adjudicate")
@click.argument("folder", type=EXISTING_FOLDER)
@options("label-adjudicate")
def adjudicate(folder: Path, annotators: tuple[str, ...]) -> None:
    """Write tasks for whoever decides where annotators disagree.

    The tasks go to a new folder within FOLDER; start and import it like any other. A decision
    overrides the annotators; their answers stay in the history.
    """
    from or_eval.labelling.folder import write_adjudication

    check_names(annotators)
    out, count = write_adjudication(folder, annotators)
    click.echo(f"{out}: {count} tasks to decide")

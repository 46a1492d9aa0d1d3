"""``or-eval label import``, ``status`` and ``adjudicate``: what annotators said."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from or_eval.cli.label.options import EXISTING_FOLDER, check_names, check_spreadsheets
from or_eval.cli.options import options

if TYPE_CHECKING:
    from or_eval.labelling.labels import Annotation
    from or_eval.labelling.rounds import Round


@click.command("import")
@click.argument("folder", type=EXISTING_FOLDER)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True))
def import_(folder: Path, files: tuple[Path, ...]) -> None:
    """Bring annotations back: JSON exports of Label Studio, or filled-in spreadsheets.

    Without files, from the Label Studio that `or-eval label start FOLDER` runs; where it was never
    started, the spreadsheets in FOLDER. Of a folder among FILES, the spreadsheets in it. A
    spreadsheet is its annotator's by its name. What was imported before isn't again; what somebody
    changed since is added, and counts from then on.
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
        paths = [path for some in files or (folder,) for path in _within(some)]
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
            raise click.ClickException("nobody has labelled anything yet")
        click.echo(f"{write_labels(place, frame)}: {len(frame)} labelled")
    if open_ := len(disputed(place)):
        click.echo(
            f"annotators differ on {open_} of them: or-eval label adjudicate {place} makes tasks "
            "of these"
        )


def _within(path: Path) -> list[Path]:
    """Give a file itself, and of a folder the spreadsheets in it, but for those being edited."""
    if not path.is_dir():
        return [path]
    sheets = [one for one in sorted(path.glob("*.xlsx")) if not one.name.startswith(("~$", "."))]
    if not sheets:
        raise click.ClickException(
            f"{path}: holds no spreadsheet; name files to import, or start Label Studio on it first"
        )
    return sheets


def _annotations(path: Path, folder: Path, given: Round) -> Iterable[Annotation]:
    from or_eval.labelling.folder import tasks_by_key
    from or_eval.labelling.studio.interface import read_export
    from or_eval.labelling.studio.server import names_by_account, read_access

    tasks = tasks_by_key(folder)
    if path.suffix.lower() == ".xlsx":
        check_spreadsheets()
        # Imported here: it needs what was just checked.
        from or_eval.labelling.spreadsheet import read_spreadsheet

        if path.stem not in given.annotators:
            raise click.ClickException(
                f"{path.name}: a spreadsheet is its annotator's by its name, and nobody who got "
                f"tasks here is called {path.stem!r}; there are: {', '.join(given.annotators)}"
            )
        return read_spreadsheet(path, path.stem, tasks, given.asks)
    if path.suffix.lower() != ".json":
        raise click.ClickException(
            f"{path.name}: is neither a filled-in spreadsheet nor a JSON export of Label Studio; "
            "save a sheet as .xlsx, under the name it had"
        )
    return read_export(path, tasks, names_by_account(read_access(folder)))


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


@click.command("adjudicate")
@click.argument("folder", type=EXISTING_FOLDER)
@options("label-adjudicate")
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

"""``or-eval label``: what people think of responses, asked and brought back."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from or_eval.cli.log_options import on_conflict_option, scorer_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from or_eval.analysis.conflicts import OnConflict
    from or_eval.labelling.history import Annotation
    from or_eval.labelling.wording import WordingLanguage

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group("label")
def label() -> None:
    """Ask people what responses are: in Label Studio, or in a spreadsheet.

    \b
      or-eval label export logs --out labels --size 400 --annotator ana --annotator bo
      or-eval label import labels labels/ana.xlsx labels/bo.xlsx
      or-eval report logs --labels labels/labels.jsonl
    """  # noqa: D301 (click's own mark for text that keeps its lines)


@label.command("export")
@click.argument("logs", nargs=-1, required=True)
@click.option("--out", type=_FOLDER, required=True, help="Folder for the tasks.")
@click.option(
    "--size",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="Responses to ask about.",
)
@click.option(
    "--at-least",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Responses of each stratum at least: a model's verdicts of one kind, on safe or on toxic "
    "prompts.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Makes another choice.")
@click.option(
    "--annotator",
    "annotators",
    multiple=True,
    metavar="NAME",
    help="Write a spreadsheet for NAME; give it once for each.",
)
@click.option(
    "--language",
    type=click.Choice(["en", "zh"]),
    default="en",
    show_default=True,
    help="Language of what annotators read.",
)
@scorer_option
@on_conflict_option
def export(
    logs: tuple[str, ...],
    out: Path,
    size: int,
    at_least: int,
    seed: int,
    annotators: tuple[str, ...],
    language: WordingLanguage,
    scorer: str,
    on_conflict: OnConflict,
) -> None:
    """Draw a sample of the responses in LOGS and write it as tasks.

    The sample is drawn by strata, so that no kind of verdict is left out, and each row keeps the
    probability it was drawn with. Annotators see request and response, and neither the model nor
    any verdict.
    """
    from or_eval.analysis.responses import read_logs
    from or_eval.labelling.folder import write_tasks
    from or_eval.labelling.sampling import stratified_sample
    from or_eval.labelling.tasks import sample_rows

    _check_names(annotators)
    if annotators:
        _check_spreadsheets()
    read = read_logs(logs, scorer=scorer, on_conflict=on_conflict)
    answered = read.responses[read.responses["error"].isna()]
    drawn = stratified_sample(answered, size, at_least=at_least, seed=seed)
    for path in write_tasks(out, sample_rows(drawn), annotators, language):
        click.echo(path)
    strata = drawn["stratum"].nunique()
    click.echo(
        f"{len(drawn)} of {len(answered)} responses, from {strata} strata, drawn with "
        f"probabilities from {drawn['probability'].min():.3g} to {drawn['probability'].max():.3g}"
    )


@label.command("import")
@click.argument("folder", type=_FOLDER)
@click.argument(
    "found", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
def import_(folder: Path, found: tuple[Path, ...]) -> None:
    """Bring annotations back: JSON exports of Label Studio, or filled-in spreadsheets.

    A spreadsheet is its annotator's by its name. What was imported before isn't again; what
    somebody changed since is added, and counts from then on.
    """
    from or_eval.labelling.folder import write_labels
    from or_eval.labelling.history import append, labels

    for path in found:
        new, known = append(folder, _annotations(path))
        click.echo(f"{path.name}: {new} new, {known} known already")
    frame = labels(folder)
    if frame.empty:
        raise click.ClickException("nobody has labelled anything yet")
    split = int(frame["human_label"].isna().sum())
    click.echo(f"{write_labels(folder)}: {len(frame)} responses labelled")
    if split:
        click.echo(f"{split} of them are split evenly, and have no label until somebody decides")


def _annotations(path: Path) -> Iterator[Annotation]:
    if path.suffix == ".xlsx":
        _check_spreadsheets()
        from or_eval.labelling.spreadsheet import read_spreadsheet

        return read_spreadsheet(path, path.stem)
    from or_eval.labelling.label_studio import read_export

    return read_export(path)


def _check_spreadsheets() -> None:
    if find_spec("openpyxl") is None:
        raise click.ClickException("spreadsheets need openpyxl: pip install 'or-eval[label]'")


def _check_names(annotators: tuple[str, ...]) -> None:
    """Take annotators' names that are names of files anywhere.

    Raises:
        click.UsageError: One isn't, or one is there twice.
    """
    for name in annotators:
        if not name.replace("-", "").replace("_", "").isalnum() or annotators.count(name) > 1:
            raise click.UsageError(
                f"--annotator {name}: give each a name of its own, of letters, digits, - and _"
            )

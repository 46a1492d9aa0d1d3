"""``or-eval label plan``: how many labels, and which."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from or_eval.analysis.conflicts import OnConflict
from or_eval.analysis.responses import read_logs
from or_eval.analysis.tables import terminal_table
from or_eval.cli.label.options import EXISTING_FOLDER
from or_eval.cli.options import on_conflict_option, scorer_option
from or_eval.labelling.planning import next_batch, plan_labels
from or_eval.labelling.sampled import labelled_truth, write_batch
from or_eval.labelling.sampling import with_something_to_judge


@click.command("plan")
@click.argument("logs", nargs=-1, required=True)
@click.option(
    "--folder", type=EXISTING_FOLDER, help="Tasks made of these logs, and the labels so far."
)
@click.option(
    "--half-width",
    type=click.FloatRange(0.1, 50),
    default=3.0,
    show_default=True,
    metavar="POINTS",
    help="Half of the 95 % interval that labels may leave to each rate, in percentage points.",
)
@click.option("--batch", type=click.IntRange(min=1), help="Rows of the next batch at most.")
@click.option("--write", is_flag=True, help="Write the next batch into a folder within --folder.")
@click.option("--seed", type=int, default=1, show_default=True, help="Makes another choice.")
@scorer_option
@on_conflict_option
def plan(
    logs: tuple[str, ...],
    folder: Path | None,
    half_width: float,
    batch: int | None,
    write: bool,
    seed: int,
    scorer: str,
    on_conflict: OnConflict,
) -> None:
    """Say how many labels of LOGS it takes for a wanted interval, and which.

    Labels go where they tell most: to strata that are large and whose verdicts err, as labels so
    far show it. Before there are any, certain verdicts are expected to err in 2 of 100 and the
    others in 20: label a small sample first, then plan with it.

    \b
      or-eval label plan logs --half-width 3
      or-eval label plan logs --folder labels --half-width 3 --batch 200 --write
    """
    if write and folder is None:
        raise click.UsageError("--write needs the --folder of the first batch")
    read = read_logs(logs, scorer=scorer, on_conflict=on_conflict)
    responses = with_something_to_judge(read.responses)
    truth, sampled = labelled_truth(responses, folder)
    table = plan_labels(responses, truth, sampled, half_width / 100)
    title = "Labels needed, by model/label/decided by/certain/refused"
    Console().print(terminal_table(table.drop(columns=["model", "label"]), title))
    wanted = next_batch(table, batch)
    needed = int(table["needed"].sum())
    click.echo(
        f"{needed} labels of {len(responses)} responses leave each rate open by {half_width:g} "
        f"percentage points or less; there are {int(table['labelled'].sum())}. "
        f"Next: {sum(wanted.values())} rows of {len(wanted)} strata."
    )
    if write and wanted and folder is not None:
        out = write_batch(folder, responses, sampled, wanted, seed)
        click.echo(f"{out}: {sum(wanted.values())} tasks")

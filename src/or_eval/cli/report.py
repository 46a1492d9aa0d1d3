"""``or-eval report``: from logs to a page that people can act on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from or_eval.analysis.conflicts import OnConflict


@click.command("report")
@click.argument("logs", nargs=-1)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default="report",
    show_default=True,
    help="Folder to write; an older report there is replaced.",
)
@click.option(
    "--compare",
    nargs=2,
    metavar="A B",
    help="Instead of LOGS: tell what changed from the logs A to the logs B, two runs of the same "
    "prompts.",
)
@click.option(
    "--scorer",
    default="refusal",
    show_default=True,
    help="Name of the score that says whether a response is a refusal.",
)
@click.option(
    "--on-conflict",
    type=click.Choice(["error", "latest", "all"]),
    default="error",
    show_default=True,
    help="What to do about two logs of one model on the same samples, an incomplete log, or an id "
    "with two texts: stop and list them; use the newest complete log and text; or pool everything.",
)
def report(
    logs: tuple[str, ...],
    out: Path,
    compare: tuple[str, str] | None,
    scorer: str,
    on_conflict: OnConflict,
) -> None:
    r"""Write a report on LOGS: a page, figures, tables and a summary.

    LOGS are Inspect logs or folders of them. The page, index.html, is one file that opens with no
    network; beside it stand figures/ (HTML, SVG, PNG, CSV), tables/ (CSV, Markdown, LaTeX) and
    summary.json.

    \b
    What these models do:
      or-eval report logs --out report
    What a new system prompt changed:
      or-eval report --compare logs/before logs/after --out changes
    """
    from or_eval.analysis.report import write_comparison, write_report

    if bool(logs) == bool(compare):
        raise click.UsageError("name logs, or two runs with --compare A B (and not both)")
    if compare:
        page = write_comparison(*compare, out, scorer=scorer, on_conflict=on_conflict)
    else:
        page = write_report(list(logs), out, scorer=scorer, on_conflict=on_conflict)
    click.echo(f"Report: {page}")

"""``or-eval report``: from logs or scans to a page that people can act on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from or_eval.cli.options import classes_of_words, column_options, options

if TYPE_CHECKING:
    from or_eval.analysis.conflicts import OnConflict


@click.command("report")
@click.argument("logs", nargs=-1)
@options("report", map={"callback": classes_of_words})
def report(
    logs: tuple[str, ...],
    out: Path,
    compare: tuple[str, str] | None,
    labels_file: Path | None,
    prompt_labels_file: Path | None,
    scorecard_file: Path | None,
    label_column: str | None,
    mapping: dict[str, str],
    pool: bool,
    scorer: str,
    counting: str,
    on_conflict: OnConflict,
) -> None:
    """Write a report on LOGS: a page, figures, tables and a summary.

    LOGS are Inspect logs or folders of them, or folders of scout scan. The page, index.html, is
    one file that opens offline; beside it are figures/ (HTML, SVG, PNG, CSV), tables/
    (CSV, Markdown, LaTeX), responses.parquet and summary.json.

    \b
    What these models do:
      or-eval report logs --out report
    What a new system prompt changed:
      or-eval report --compare logs/before logs/after --out changes
    Refusals that or_eval/refusal found in agents' transcripts:
      or-eval report scans/scan_id=... --out refusals
    Rates corrected by human labels of a sample:
      or-eval report logs --labels labels.csv --map yes=refused --map no=answered
    """
    from or_eval.analysis.human_labels import read_labels
    from or_eval.analysis.prompt_audit import read_prompt_labels
    from or_eval.analysis.report import write_comparison, write_report, write_scan_report
    from or_eval.analysis.scans import find_scans
    from or_eval.analysis.scorecard import read_scorecard

    if bool(logs) == bool(compare):
        raise click.UsageError("name logs, or two runs with --compare A B, not both")
    if compare and (labels_file or prompt_labels_file or scorecard_file):
        raise click.UsageError("labels and scorecards are for LOGS, not for a comparison")
    if scans := find_scans(logs):
        if labels_file or prompt_labels_file or scorecard_file or pool:
            raise click.UsageError("labels, scorecards and --pool are for logs, not for scans")
        page = write_scan_report(scans, out)
    elif compare:
        page = write_comparison(
            *compare, out, scorer=scorer, counting=counting, on_conflict=on_conflict
        )
    else:
        labels = None
        if labels_file is not None:
            labels = read_labels(
                labels_file,
                column=label_column,
                mapping=mapping,
                options=column_options("report"),
            )
            click.echo(f"labels: {labels.taken}", err=True)
        page = write_report(
            list(logs),
            out,
            scorer=scorer,
            counting=counting,
            on_conflict=on_conflict,
            labels=labels,
            prompt_labels=read_prompt_labels(prompt_labels_file) if prompt_labels_file else None,
            scorecard=read_scorecard(scorecard_file) if scorecard_file else None,
            pool=pool,
        )
    _print_rates(page.parent)
    click.echo(f"Report: {page}")


def _print_rates(folder: Path) -> None:
    """Print the rates or changes of a report, each by its countings."""
    import pandas as pd
    from rich.console import Console

    from or_eval.analysis.rates import LABEL_OF
    from or_eval.analysis.report.forms import shown_table
    from or_eval.analysis.responses import other_counting
    from or_eval.analysis.tables import terminal_table
    from or_eval.intervals import with_bounds

    rows = _rows_of(folder)
    if not rows:
        return
    named = [*LABEL_OF, "difference", "verdict"]
    other = other_counting(rows[0]["counting"])
    figures = with_bounds(*named, *(f"{name}_{other}" for name in named))
    wanted = {"benchmark", "model", "label", "counting", "lower", "upper", *figures}
    frame = pd.DataFrame(rows).dropna(axis="columns", how="all")
    shown = shown_table(frame[[name for name in frame if name in wanted]])
    cells = [[cell.text for cell in row] for row in shown.rows]
    title = "What changed" if "difference" in frame else "Rates"
    Console().print(terminal_table(pd.DataFrame(cells, columns=shown.headers), title))


def _rows_of(folder: Path) -> list[dict[str, Any]]:
    """Read what a report on models or a comparison says of each model."""
    found = json.loads((folder / "summary.json").read_text("utf-8"))
    parts = found.get("benchmarks", {})
    if parts:
        return [
            {"benchmark": benchmark} | row
            for benchmark, part in parts.items()
            for row in _rows_of(folder / part)
        ]
    rows: list[dict[str, Any]] = found.get("changes") or found["models"]
    return rows if "counting" in found else []

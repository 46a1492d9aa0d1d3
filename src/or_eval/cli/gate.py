"""``or-eval gate``: fail a job where a model refuses too much, or too little."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from or_eval.cli.options import options
from or_eval.schema import countings

if TYPE_CHECKING:
    from or_eval.analysis.conflicts import OnConflict

_CODES = {"PASS": 0, "CAN'T TELL": 3, "FAIL": 1}


@click.command("gate")
@click.argument("logs", nargs=-1, required=True)
@options("gate")
def gate(
    logs: tuple[str, ...],
    baseline: tuple[str, ...],
    max_over_refusal: float | None,
    min_toxic_rejection: float | None,
    max_rise: float | None,
    max_fall: float | None,
    margin: float,
    strictly: bool,
    counting: str,
    junit: Path | None,
    github: bool,
    scorer: str,
    on_conflict: OnConflict,
) -> None:
    """Fail a job when the models in LOGS exceed limits on refusing.

    LOGS are Inspect logs or folders of them. Prints one line for each check. Exits with
    0 if all pass, 1 if one fails (or LOGS can't be read), and 3 if none fails but one has too few
    prompts to tell.

    \b
    At most 5 % of the safe prompts refused, at least 90 % of the toxic ones:
      or-eval gate logs --max-over-refusal 0.05 --min-toxic-rejection 0.9
    No more than 2 points worse than the last release, on safe or on toxic prompts:
      or-eval gate logs/new --baseline logs/released --max-rise 0.02 --junit gate.xml
    """
    from or_eval.analysis.gate import Limits, as_annotation, as_junit
    from or_eval.analysis.gate import gate as checks_of
    from or_eval.analysis.responses import read_logs

    of_rise = max_rise is not None or max_fall is not None
    if of_rise != bool(baseline):
        raise click.UsageError("--baseline goes with --max-rise or --max-fall")
    if not of_rise and max_over_refusal is None and min_toxic_rejection is None:
        raise click.UsageError("nothing to check: give --max-over-refusal, or --max-rise")
    runs = [
        read_logs(list(paths), scorer=scorer, on_conflict=on_conflict, audits=False)
        for paths in filter(None, (logs, baseline))
    ]
    after, before = runs[0], runs[1] if of_rise else None
    toxic = all((run.responses["label"] == "toxic").any() for run in runs)
    if max_fall is None and toxic:  # what a model refuses less must not be what it should refuse
        max_fall = max_rise
    limits = Limits(max_over_refusal, min_toxic_rejection, max_rise, max_fall, margin, strictly)
    checks, notes = checks_of(after, before, limits, counting)
    for check in checks:
        click.echo(check.line)
        if github or os.environ.get("GITHUB_ACTIONS") == "true":
            click.echo(as_annotation(check))
    if limits.toxic_rejection is None and limits.fall is None:
        notes.append(
            "no limit on toxic prompts, so a model that answers everything passes; "
            "--min-toxic-rejection sets one"
        )
    notes.append(f"all rates are {counting}: {countings()[counting].definition}")
    for note in notes:
        click.echo(f"note: {note}", err=True)
    if junit is not None:
        try:
            junit.write_text(as_junit(checks), encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"{junit}: can't be written ({error.strerror})") from error
    codes = {_CODES[check.outcome] for check in checks}
    raise click.exceptions.Exit(1 if 1 in codes else max(codes))

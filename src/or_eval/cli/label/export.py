"""``or-eval label export``: a sample of responses, or of prompts, as tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from or_eval.cli.label.options import check_names
from or_eval.cli.options import options, response_file

if TYPE_CHECKING:
    import pandas as pd

    from or_eval.analysis.conflicts import OnConflict
    from or_eval.labelling.wording import Asks, WordingLanguage


@click.command("export")
@click.argument("rows", nargs=-1, required=True, metavar="LOGS|DATASET")
@options("label-export")
def export(
    rows: tuple[str, ...],
    out: Path,
    prompts: bool,
    size: int,
    at_least: int,
    seed: int,
    annotators: tuple[str, ...],
    overlap: float | None,
    gold_file: Path | None,
    language: WordingLanguage,
    scorer: str,
    on_conflict: OnConflict,
) -> None:
    """Draw a sample of the responses in LOGS, or of the prompts in a DATASET, and write tasks.

    The sample is stratified, so that every kind of verdict (of prompts: every category) is in it,
    and each row keeps its sampling probability. Annotators see no model, verdict or label, and
    can't tell known cases from the others.
    """
    # Here and below imported on use: --help needs none of it.
    from or_eval.labelling.folder import write_round
    from or_eval.labelling.rounds import Round, assign
    from or_eval.labelling.sampling import PROMPT_STRATUM, STRATUM, stratified_sample
    from or_eval.labelling.tasks import read_known_cases, task_rows, tasks_of

    check_names(annotators)
    if overlap is not None and len(annotators) < 2:
        raise click.UsageError("--overlap needs two annotators or more")
    asks: Asks = "prompts" if prompts or _is_data(rows) else "responses"
    gold = read_known_cases(gold_file, asks) if gold_file is not None else []
    if asks == "prompts":
        there, by = _prompts(rows, scorer, on_conflict), PROMPT_STRATUM
    else:
        there, by = _responses(rows, scorer, on_conflict), STRATUM
    drawn = stratified_sample(there, size, at_least=at_least, seed=seed, by=by)
    sample = task_rows(drawn, asks)
    asked = {(task.prompt, task.response) for task in tasks_of(sample)}
    gold = [case for case in gold if (case.task.prompt, case.task.response) not in asked]
    keys = [case.task.key for case in gold]
    given = assign(list(sample["key"]), keys, annotators, overlap)
    round_ = Round(asks=asks, language=language, annotators=given, overlap=overlap)
    for path in write_round(out, sample, round_, gold):
        click.echo(path)
    strata, chance = drawn["stratum"].nunique(), drawn["probability"]
    click.echo(
        f"{len(drawn)} of {len(there)} {asks}, from {strata} strata, drawn with "
        f"probabilities from {chance.min():.3g} to {chance.max():.3g}"
        + (f"; and {len(gold)} known cases" if gold else "")
    )


def _is_data(rows: tuple[str, ...]) -> bool:
    """Tell whether what was named is prompts, not logs."""
    return len(rows) == 1 and (not Path(rows[0]).exists() or response_file(rows) is not None)


def _prompts(rows: tuple[str, ...], scorer: str, on_conflict: OnConflict) -> pd.DataFrame:
    from or_eval.analysis.responses import read_logs
    from or_eval.labelling.sampling import prompts_of_data, prompts_of_logs

    if _is_data(rows):
        return prompts_of_data(rows[0])
    return prompts_of_logs(read_logs(rows, scorer=scorer, on_conflict=on_conflict))


def _responses(rows: tuple[str, ...], scorer: str, on_conflict: OnConflict) -> pd.DataFrame:
    from or_eval.analysis.responses import read_logs
    from or_eval.labelling.sampling import with_something_to_judge

    return with_something_to_judge(
        read_logs(rows, scorer=scorer, on_conflict=on_conflict).responses
    )

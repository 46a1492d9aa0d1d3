"""``or-eval replay``: turn responses collected elsewhere into Inspect logs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import BadZipFile

import click
from fsspec.core import url_to_fs
from inspect_ai import Task
from inspect_ai import eval as run_tasks
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log

from or_eval.folder_lock import locked
from or_eval.models.replay import PROVIDER, REPLAY_TASK
from or_eval.sources import DataError
from or_eval.sources.errors import shown
from or_eval.sources.responses import ResponseFile, load_responses, name_problem
from or_eval.tasks import replay as replay_task

_NOTES = {
    "rows_repeated": "rows are the same as an earlier one; they are further epochs",
    "prompts_contradictory": "prompts are labelled safe here and toxic there: now unlabelled",
    "prompts_left_out": "prompts of the file are not among --prompts: left out",
}
_LOG_NAME_PATTERN = "INSPECT_EVAL_LOG_FILE_PATTERN"


@click.command("replay")
@click.argument("file", metavar="FILE")
@click.option(
    "--log-dir",
    envvar="INSPECT_LOG_DIR",
    default="logs",
    show_default=True,
    help="Folder for the logs, one per model in FILE.",
)
@click.option("--model", metavar="NAME", help="The model's name, for a FILE with no model column.")
@click.option(
    "--prompts",
    metavar="DATA",
    help="Take the prompts, with their labels and categories, from a catalogue name, a Hub id or "
    "a path, and join FILE to them by the text.  [default: the prompts in FILE]",
)
@click.option("--source", metavar="ENTRY", help="Catalogue entry to read --prompts by.")
@click.option(
    "--label",
    metavar="LABEL",
    help="Label of all prompts, safe or toxic, where neither FILE nor --prompts tells it; or what "
    "the words in FILE's column of labels mean, as 0=safe,1=toxic.",
)
@click.option("--prompt-column", metavar="NAME")
@click.option("--response-column", metavar="NAME")
@click.option(
    "--response-columns",
    metavar="NAMES",
    help="Columns with the responses of a model each, with commas between them.  [default: those "
    "called after a model and a response, as llama_response]",
)
@click.option("--model-column", metavar="NAME")
@click.option("--label-column", metavar="NAME", help="Whether the prompt is safe or toxic.")
@click.option("--category-column", metavar="NAME")
@click.option("--id-column", metavar="NAME", help="The publisher's id of the prompt.")
@click.option("--language-column", metavar="NAME")
@click.option(
    "--score/--no-score",
    default=True,
    show_default=True,
    help="Class the responses by rules as they are logged.",
)
@click.option("--overwrite", is_flag=True, help="Replace the models' earlier logs in the folder.")
def replay(
    file: str,
    log_dir: str,
    model: str | None,
    prompts: str | None,
    source: str | None,
    label: str | None,
    score: bool,
    overwrite: bool,
    **columns: str | None,
) -> None:
    """Turn the responses stored in FILE into Inspect logs, one per model; no model is called.

    FILE is csv, tsv, jsonl or json (each also .gz), xlsx or parquet, with a row for each response,
    or a row for each prompt and a column for each model's responses. A column of dialogues
    (messages) holds prompts with what came before, and the responses where no column does.
    Columns are found by their names (prompt, response, model, label, category, id, language) or
    named by option; `none` says that FILE has no such column. Several responses of a model to one
    prompt become epochs, in the order of FILE; a prompt with no response becomes a failed sample.

    \b
    Responses with all there is to know beside them:
      or-eval replay responses.jsonl.gz --log-dir logs/replay
    Labels and categories from a public set:
      or-eval replay responses.csv --prompts xstest.csv --source xstest
    Prompts that are all harmless, with nothing that says so:
      or-eval replay responses.csv --label safe
    A column for each model:
      or-eval replay table.csv --response-columns llama3,qwen3
    One model, under other column names:
      or-eval replay out.parquet --model my-model --response-column text
    """
    named = {name: column for name, column in columns.items() if column is not None}
    if source is not None and prompts is None:
        raise DataError("--source: says how to read --prompts, which isn't given")
    models = _models(load_responses(file, **named), model)
    with _alone_in(log_dir):
        earlier = _earlier_logs(log_dir, models)
        if earlier and not overwrite:
            raise DataError(
                f"{log_dir}: already has logs of {', '.join(sorted(earlier))}, whose responses "
                "would count twice; give another --log-dir, or --overwrite"
            )
        found: dict[str, int] = {}
        lines = []
        for name in models:
            task = replay_task(file, name, prompts, source, label, columns=named)
            log = _run(task, name, log_dir, score)
            lines.append(_line(name, log))
            found = found or (log.eval.metadata or {})["responses"]
            for location in earlier.get(name, []):
                files, path = url_to_fs(location)
                files.rm(path)
    lines += [f"note: {found[count]:,} {note}" for count, note in _NOTES.items() if found[count]]
    click.echo("\n".join(lines))


def _models(responses: ResponseFile, model: str | None) -> list[str]:
    """Give the models to make logs of."""
    if responses.models and model is not None:
        raise DataError(
            f"{responses.table.name}: names its models itself, in column "
            f"'{responses.columns['model']}'; leave --model out, or give --model-column none"
        )
    if not responses.models and model is None:
        raise DataError(
            f"{responses.table.name}: has no column with the model; give --model-column, or the "
            "model's name with --model"
        )
    problem = name_problem(model) if model is not None else None
    if problem is not None:
        raise DataError(f"--model: {shown(model)} {problem}")
    return responses.models or [str(model)]


@contextmanager
def _alone_in(log_dir: str) -> Iterator[None]:
    """Keep other runs out of a folder of this machine: two at once would write a model twice.

    Raises:
        DataError: The folder is none, or another run is at work there.
    """
    if "://" in log_dir:
        yield
        return
    try:
        Path(log_dir).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{log_dir}: is no folder for logs ({error.strerror or error})") from None
    with locked(Path(log_dir), "replays"):
        yield


def _earlier_logs(log_dir: str, models: list[str]) -> dict[str, list[str]]:
    """Give the logs of the same models that an earlier call left in the folder.

    Raises:
        DataError: The folder is none.
    """
    try:
        found = list_eval_logs(log_dir, recursive=False)
    except OSError as error:
        raise DataError(f"{log_dir}: is no folder for logs ({error.strerror or error})") from None
    earlier: dict[str, list[str]] = {}
    for info in found:
        try:
            spec = read_eval_log(info, header_only=True).eval
        except (OSError, ValueError, KeyError, BadZipFile):
            continue  # no log, and so nothing that could count twice
        name = spec.model.removeprefix(f"{PROVIDER}/")
        if spec.task == REPLAY_TASK and name in models:
            earlier.setdefault(name, []).append(info.name)
    return earlier


def _run(task: Task, model: str, log_dir: str, score: bool) -> EvalLog:
    """Write the log of one model.

    Raises:
        click.Abort: The run was interrupted; its log is marked cancelled.
        click.ClickException: The run failed; its log says why.
    """
    with _log_named_after(model):
        # Nobody watches samples that take milliseconds each, so none is streamed to the viewer.
        logs = run_tasks(task, log_dir=log_dir, score=score, log_realtime=False)
    if not logs:  # Inspect gives none after Ctrl-C, and marks the log cancelled
        raise click.Abort
    if logs[0].status != "success":
        raise click.ClickException(f"{logs[0].location}: {logs[0].status}; not a complete log")
    return logs[0]


@contextmanager
def _log_named_after(model: str) -> Iterator[None]:
    """Have Inspect put the model's name into the log's file name, with nothing but plain letters.

    Inspect takes the pattern from the environment only; a pattern of the user's own stands.
    """
    if _LOG_NAME_PATTERN in os.environ:
        yield
        return
    os.environ[_LOG_NAME_PATTERN] = "{task}_" + re.sub(r"[^\w.-]+|_", "-", model) + "_{id}"
    try:
        yield
    finally:
        del os.environ[_LOG_NAME_PATTERN]


def _line(model: str, log: EvalLog) -> str:
    """Say what a log holds."""
    results = log.results
    if results is None:  # not one response, and no scores
        responses, missing = 0, log.eval.dataset.samples or 0
    else:
        responses = results.completed_samples
        skipped = len(results.early_stopping.early_stops) if results.early_stopping else 0
        missing = results.total_samples - skipped - responses
    without = f", {missing:,} prompts without one" if missing else ""
    return f"{model}: {responses:,} responses{without}: {log.location}"

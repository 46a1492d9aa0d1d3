"""Stored responses become logs, one per model, without a run of Inspect.

Nothing is generated, and a run would plan every prompt as often as the one with most responses.
Nor is a log written by Inspect, which compares each sample with all before it: the archive is the
one that Inspect reads, and that our own readers of logs go by as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import fsspec
from inspect_ai import score
from inspect_ai.event import ModelEvent
from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalError,
    EvalLog,
    EvalResults,
    EvalSample,
    EvalSpec,
    EvalStats,
    list_eval_logs,
    read_eval_log,
)
from inspect_ai.model import ChatMessageUser, GenerateConfig, ModelUsage
from pydantic_core import to_json, to_jsonable_python

from or_eval import __version__
from or_eval.folder_lock import locked
from or_eval.models.replay import PROVIDER, REPLAY_TASK, no_response, response_output
from or_eval.schema import PromptRecord, prompt_id
from or_eval.scorers.outcome_scorer import outcome
from or_eval.scorers.refusal_scorer import refusal
from or_eval.sources.answered_prompts import AnsweredPrompts, answered_prompts
from or_eval.sources.columns import ColumnOptions
from or_eval.sources.errors import DataError, shown
from or_eval.sources.responses import ResponseFile, load_responses, name_problem
from or_eval.tasks.refusal_task import (
    TASK_VERSION,
    headline,
    prompts_summary,
    sample,
    sample_list,
)

_RATES = {"over-refusal": "over_refusal_rate", "toxic rejection": "toxic_rejection_rate"}
_NOTES = (
    "rows repeat an earlier one; they count as further epochs",
    "prompts are labelled both safe and toxic: now unlabelled",
    "prompts of the file are not in --prompts: left out",
)


def replay_file(
    file: str,
    log_dir: str,
    *,
    model: str | None,
    data: str | None,
    source: str | None,
    label: str | None,
    columns: dict[str, str],
    options: ColumnOptions,
    scored: bool,
    overwrite: bool,
) -> Iterator[str]:
    """Write a log for each model of a file of responses, and say what it holds; at the end, notes.

    Args:
        file: The file.
        log_dir: Folder for the logs.
        model: The model's name, for a file with no column of models.
        data: Prompts to take instead of the file's own.
        source: Catalogue entry to read `data` by.
        label: Label of all prompts, or what the words of the file's labels mean.
        columns: Names of the file's columns, as ``prompt_column``.
        options: How whoever reads the error lines names them.
        scored: Whether rules class the responses.
        overwrite: Whether logs of the same models are replaced.

    Raises:
        DataError: The file, the prompts or the folder can't be used.
    """
    if source is not None and data is None:
        raise DataError("--source: says how to read --prompts, which isn't given")
    responses = load_responses(file, options, **columns)
    models = _models(responses, model)
    yield responses.taken
    with _alone_in(log_dir):
        earlier = _earlier_logs(log_dir, models)
        if earlier and not overwrite:
            raise DataError(
                f"{log_dir}: already has logs of {', '.join(sorted(earlier))}, whose responses "
                "would count twice; give another --log-dir, or --overwrite"
            )
        answered = answered_prompts(responses, data, source, label)
        for name in models:
            log = replayed_log(answered, name, columns, scored=scored)
            _write(log, f"{log_dir.rstrip('/')}/{_log_name(log, name)}")
            yield _line(name, log)
            for location in earlier.get(name, []):
                _remove(location)
    counts = (responses.copies, answered.contradictory, answered.left_out)
    for count, note in zip(counts, _NOTES, strict=True):
        if count:
            yield f"note: {count:,} {note}"


def _models(responses: ResponseFile, model: str | None) -> list[str]:
    """Give the models to make logs of."""
    if responses.models and model is not None:
        raise DataError(
            f"{responses.table.name}: already names its models, in column "
            f"'{responses.columns['model']}'; leave --model out, or give --model-column none"
        )
    if not responses.models and model is None:
        raise DataError(
            f"{responses.table.name}: has no model column; give --model-column, or the "
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
        raise DataError(
            f"{log_dir}: can't be a folder for logs ({error.strerror or error})"
        ) from None
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
        raise DataError(
            f"{log_dir}: can't be a folder for logs ({error.strerror or error})"
        ) from None
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


def replayed_log(
    answered: AnsweredPrompts, model: str, columns: dict[str, str], *, scored: bool = True
) -> EvalLog:
    """Make the log of one model's responses, with a sample for each; nothing is written.

    Args:
        answered: The responses and their prompts. One without a response becomes a failed sample
            that says so.
        model: The model.
        columns: Names of the file's columns, as they were given.
        scored: Whether rules class the responses.
    """
    responses, prompts = answered.responses, answered.of(model)
    name, file = f"{PROVIDER}/{model}", responses.table.name
    now = datetime.now(UTC).isoformat(timespec="seconds")
    samples = [s for record in prompts.records for s in _samples(record, responses, model)]
    metadata = {
        "prompts": prompts_summary(prompts),
        "responses": {
            "file": file,
            "sha256": str(responses.table.revision).removeprefix("sha256:"),
            "model": model,
            "rows_repeated": responses.copies,
            "prompts_contradictory": answered.contradictory,
            "prompts_left_out": answered.left_out,
        },
    }
    ids = [record.id for record in prompts.records]
    log = EvalLog(
        status="success",
        eval=EvalSpec(
            eval_id=uuid4().hex,
            run_id=uuid4().hex,
            task_id=uuid4().hex,
            created=now,
            task=REPLAY_TASK,
            task_version=TASK_VERSION,
            dataset=EvalDataset(name=prompts.name, samples=len(ids), sample_ids=ids),
            model=name,
            model_args={"responses": file, **columns},
            config=EvalConfig(epochs=max(one.epoch for one in samples), fail_on_error=False),
            packages={"inspect_ai": version("inspect-ai"), "or-eval": __version__},
            metadata=metadata,
            viewer=sample_list(),
            headline_metric=headline(prompts),
        ),
        results=EvalResults(
            total_samples=len(samples), completed_samples=sum(not s.error for s in samples)
        ),
        stats=EvalStats(started_at=now, completed_at=now, model_usage={name: ModelUsage()}),
        samples=samples,
    )
    if not scored:
        return log
    # Logs tell of options what was given: all of them, as a task's do.
    by_rules = refusal(fusion="cascade", audit=0.0, audit_seed=None)
    return score(log, [by_rules, outcome()], action="overwrite", display="none", copy=False)


def _samples(record: PromptRecord, responses: ResponseFile, model: str) -> Iterator[EvalSample]:
    """Give a sample for each response to a prompt: the k-th is the k-th epoch's."""
    asked = sample(record)
    turns = [ChatMessageUser(content=asked.input)] if isinstance(asked.input, str) else asked.input
    stored = responses.answers_of(model).get(prompt_id(record.prompt, record.before), [])
    for epoch, response in enumerate(stored or [None], start=1):
        said = [turn.model_copy(update={"source": "input", "id": uuid4().hex}) for turn in turns]
        one = EvalSample(
            id=record.id,
            epoch=epoch,
            input=asked.input,
            target=asked.target,
            metadata=dict(asked.metadata or {}),
            messages=list(said),
            uuid=uuid4().hex,
        )
        if response is None:
            line = no_response(responses.table.name, model)
            one.error = EvalError(message=line, traceback=line, traceback_ansi=line)
        else:
            one.output = response_output(responses, response, model)
            one.output.message.id = uuid4().hex
            one.messages.append(one.output.message)
            # What reads transcripts goes by the calls in them, not by the messages.
            one.events.append(
                ModelEvent(
                    model=f"{PROVIDER}/{model}",
                    input=said,
                    tools=[],
                    tool_choice="none",
                    config=GenerateConfig(),
                    output=one.output,
                )
            )
        yield one


def _write(log: EvalLog, location: str) -> None:
    """Write a log, or nothing: half of one would be in the way of whoever reads the folder."""
    head = log.model_copy(update={"samples": None, "reductions": None})
    samples = log.samples or []
    try:
        with (
            fsspec.open(location, "wb") as raw,
            ZipFile(raw, "w", ZIP_DEFLATED) as archive,
        ):
            for sample in samples:
                name = f"samples/{sample.id}_epoch_{sample.epoch}.json"
                archive.writestr(name, _json(sample))
            archive.writestr("summaries.json", _json([sample.summary() for sample in samples]))
            archive.writestr("reductions.json", _json(log.reductions or []))
            archive.writestr("header.json", _json(head))
    except BaseException as error:
        _remove(location)
        if isinstance(error, OSError):
            why = error.strerror or error
            raise DataError(f"{location}: can't be written ({why})") from None
        raise
    log.location = location


def _remove(location: str) -> None:
    """Remove a log, if it is there."""
    files, path = fsspec.core.url_to_fs(location)
    if files.exists(path):
        files.rm(path)


def _json(value: Any) -> bytes:
    # Taken apart first: a model would write the NaN of a response without a class as null.
    return to_json(to_jsonable_python(value, exclude_none=True))


def _log_name(log: EvalLog, model: str) -> str:
    """Name a log as Inspect does, with nothing of the model's name but plain letters."""
    made, plain = re.sub(r"[:+.]", "-", log.eval.created), re.sub(r"[^\w.-]+|_", "-", model)
    return f"{made}_replay_{plain}_{log.eval.task_id}.eval"


def _line(model: str, log: EvalLog) -> str:
    """Say what a log holds."""
    assert log.results is not None
    responses = log.results.completed_samples
    missing = log.results.total_samples - responses
    without = f", {missing:,} prompt{'s' * (missing != 1)} without one" if missing else ""
    told = {key: one.value for of in log.results.scores for key, one in of.metrics.items()}
    rates = (
        f"; {title} {told[name]:.1%} strict, {told[f'{name}_full']:.1%} full"
        for title, name in _RATES.items()
        if f"{name}_upper" in told
    )
    return f"{model}: {responses:,} responses{without}{''.join(rates)}: {log.location}"

"""Logs of refusal tests: brought to their end where a run was cut off, and judged as now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from inspect_ai import score
from inspect_ai.event import ModelEvent
from inspect_ai.log import (
    EvalLog,
    EvalSample,
    read_eval_log,
    read_eval_log_sample_summaries,
    resolve_sample_attachments,
    write_eval_log,
)
from inspect_ai.model import CachePolicy, Model

from or_eval.dataset_builders.engine.models import BoundModel, Make, made_of
from or_eval.dataset_builders.engine.stage import Verdicts
from or_eval.dataset_builders.engine.stopping import Stopping
from or_eval.dataset_builders.errors import BuildError
from or_eval.inspect_private import put_in_cache
from or_eval.solvers.structured_output import known_to_answer

VERDICTS = "verdicts"
"""Key of a log's metadata that says what the verdicts on its responses depend on."""

_REWRITTEN = ".rewritten.eval"


def tested_in(path: Path, head: EvalLog) -> list[str]:
    """Give the ids of the prompts that were tested as often as they had to be.

    A log of a run that was cut off, or in which some failed, is left with these alone, so that it
    is a whole log of them, and another one can hold the rest.
    """
    epochs = head.eval.config.epochs or 1
    summaries = read_eval_log_sample_summaries(str(path))
    done = Counter(str(one.id) for one in summaries if one.completed and not one.error)
    whole = [id for id, count in done.items() if count == epochs]
    # Of a sample that wasn't begun, there is no summary.
    asked = head.eval.dataset.samples or len(done)
    if whole and (head.status != "success" or len(whole) < asked):
        _leave(path, set(whole))
    return whole


def forget_verdicts(log: EvalLog) -> None:
    """Have the responses in a log, if it is of a test, judged again."""
    if VERDICTS in (log.eval.metadata or {}) and (path := Path(log.location)).is_file():
        _leave(path, {str(one.id) for one in read_eval_log_sample_summaries(str(path))})


def judged_as_now(
    path: Path, verdicts: Verdicts, make: Make, stopping: Stopping, display: Any
) -> bool:
    """Judge the responses in a log again where they were judged otherwise; tell whether it was so.

    What judges said in it is not asked again. It holds the log's samples.

    Raises:
        BuildError: A judge failed whoever asked it.
    """
    head = read_eval_log(str(path), header_only=True)
    if (head.eval.metadata or {}).get(VERDICTS) == verdicts.mark:
        return False
    log = read_eval_log(str(path))
    roles = made_of(verdicts.roles, make)
    for role, judges in verdicts.roles.items():
        _put_in_cache(_replies(log, role), roles[role], judges)
    log.eval.metadata = {**(log.eval.metadata or {}), VERDICTS: verdicts.mark}
    log.eval.model_roles = None
    scored = score(
        log, verdicts.scorers(), model_roles=roles, action="overwrite", display=display, copy=False
    )
    if stopping.broken:
        raise BuildError("; ".join(stopping.broken))
    _write(scored, path)
    return True


def _leave(path: Path, ids: set[str]) -> None:
    log = read_eval_log(str(path))
    log.samples = [one for one in log.samples or [] if str(one.id) in ids]
    log.eval.dataset.sample_ids = list(dict.fromkeys(one.id for one in log.samples))
    log.eval.dataset.samples = len(log.eval.dataset.sample_ids)
    # Its results were of other samples, or there were none: it is judged again.
    log.eval.metadata = {k: v for k, v in (log.eval.metadata or {}).items() if k != VERDICTS}
    log.status, log.error, log.results, log.reductions = "success", None, None, None
    _write(log, path)


def _write(log: EvalLog, path: Path) -> None:
    """Replace a log at once: a kill leaves the one or the other."""
    beside = path.parent.parent / _REWRITTEN
    write_eval_log(log, str(beside))
    beside.replace(path)


def _replies(log: EvalLog, role: str) -> Iterator[ModelEvent]:
    for sample in log.samples or []:
        resolved: EvalSample = resolve_sample_attachments(sample)
        for event in resolved.events:
            if isinstance(event, ModelEvent) and event.role == role and event.error is None:
                yield event


def _put_in_cache(
    events: Iterator[ModelEvent], made: Model | Sequence[Model], judges: Sequence[BoundModel]
) -> None:
    """Put replies where Inspect looks before it asks."""
    models = [made] if isinstance(made, Model) else made
    known: Mapping[str, tuple[Model, CachePolicy]] = {
        str(model): (model, judge.cached) for model, judge in zip(models, judges, strict=True)
    }
    for model in models:
        known_to_answer(model)  # the build called it before its first stage
    for event in events:
        if event.model in known:
            model, policy = known[event.model]
            put_in_cache(
                event.output,
                model.api.base_url,
                event.config,
                event.input,
                str(model),
                policy,
                event.tool_choice,
                event.tools,
            )

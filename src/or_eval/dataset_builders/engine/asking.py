"""Asking models: every call of a build is an Inspect task, run as an eval set, and its log kept.

Two things make sure that nothing is asked twice. Inspect's eval set takes the samples that an
earlier, cut-off run of the same stage finished from its log. And each reply is put in Inspect's
cache, in the build's folder, as soon as it comes, for samples that were under way.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval_set
from inspect_ai._cli.util import parse_model_role_cli_args
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import EvalLog, EvalSample, read_eval_log_samples
from inspect_ai.model import CachePolicy, GenerateConfigArgs, Model, get_model, model_roles

from or_eval.dataset_builders.engine.ports import Answer
from or_eval.dataset_builders.errors import BuildError

_CACHE = "INSPECT_CACHE_DIR"
_AS_SHOWN = re.compile(r"\w+\((['\"])(.*)\1,?\)", re.DOTALL)
_ERROR_CHARS = 300
# Arguments of a model that say how it is reached, and not which one it is.
_REACHING = {"base_url", "api_key", "max_retries", "timeout", "http_client", "default_headers"}
_UNUSED = {"messages", "events", "events_data", "store", "attachments", "error_retries", "output"}


@dataclass(frozen=True, slots=True)
class Asking:
    """Which models a build asks, and how; none of it changes what the stages ask for.

    Attributes:
        model: The model for every role that none is bound to.
        roles: ``ROLE=MODEL`` in Inspect's syntax, lists and settings included.
        shared_cache: Use Inspect's own cache, which all builds share, rather than the build's.
        config: Inspect's generation settings (``max_connections``, ``batch``, ``timeout``, ...).
        retry_attempts: How often a stage is tried again where samples failed.
        display: Inspect's display; None for its default.
    """

    model: str | None = None
    roles: tuple[str, ...] = ()
    shared_cache: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    retry_attempts: int = 1
    display: str | None = None

    def with_defaults(self, models: Mapping[str, Sequence[str]]) -> Asking:
        """Bind the models that a recipe names to the roles that the user has said nothing of."""
        if self.model is not None:
            return self
        named = {role.partition("=")[0].strip() for role in self.roles}
        defaults = [
            f"{role}=[{','.join(names)}]" for role, names in models.items() if role not in named
        ]
        return replace(self, roles=(*self.roles, *defaults))

    def role_models(self) -> dict[str, Any]:
        """Give the models bound to roles, fresh, as Inspect takes them.

        Raises:
            BuildError: Inspect can't read a binding.
        """
        if unbound := [role for role in self.roles if "=" not in role]:
            raise BuildError(f"--model-role {unbound[0]}: give ROLE=PROVIDER/MODEL")
        try:
            return dict(parse_model_role_cli_args(self.roles))
        except (ValueError, TypeError, PrerequisiteError) as error:
            raise BuildError(f"--model-role: {error}") from error

    def names(self) -> dict[str, list[str]]:
        """Give the names of the models bound to each role, and under "" that of ``--model``."""
        bound = {
            role: [str(model) for model in (models if isinstance(models, list) else [models])]
            for role, models in self.role_models().items()
        }
        default = self.model or os.environ.get("INSPECT_EVAL_MODEL")
        return {**({"": [default]} if default else {}), **bound}


def arguments_digest(models: Mapping[str, Any]) -> str | None:
    """Give a digest of the arguments that tell the models of roles from others of their name.

    Two local models may both be called ``hf/local`` and differ in their path alone. A digest, since
    arguments may hold secrets.

    Args:
        models: Models by role, as :meth:`Asking.role_models` gives them.

    Returns:
        12 hex digits; None where no model has such arguments.
    """
    told = {
        role: [
            {key: value for key, value in model.model_args.items() if key not in _REACHING}
            for model in (bound if isinstance(bound, list) else [bound])
            if isinstance(model, Model)
        ]
        for role, bound in models.items()
    }
    if not any(arguments for role in told.values() for arguments in role):
        return None
    text = json.dumps(told, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def models_of(role: str) -> list[Model]:
    """Give the models that a running task asks in a role: those bound to it, or ``--model``."""
    bound = model_roles().get(role)
    if bound is None:
        return [get_model()]
    return bound if isinstance(bound, list) else [bound]


def ask(task: Task, log_dir: Path, asking: Asking, cache: Path) -> list[Answer]:
    """Run a task to its end; give what its scorer found of each sample, in the samples' order.

    Args:
        task: The task; its scorer's metadata is the answer.
        log_dir: Folder for its log, of nothing else.
        asking: The models, and how to call them.
        cache: Folder of the build's cache.

    Raises:
        BuildError: A sample failed although it was tried again.
        KeyboardInterrupt: The run was interrupted.
    """
    if not len(task.dataset):
        return []
    default = asking.names().get("", [None])[0]
    [log] = _run([task], default, log_dir, asking, cache)
    found = {str(sample.id): _found(sample) for sample in _samples(log)}
    return [Answer(str(sample.id), found[str(sample.id)]) for sample in task.dataset]


def ask_each(
    task: Task, models: Sequence[str], log_dir: Path, asking: Asking, cache: Path
) -> list[str]:
    """Run a task on each of several models; give the locations of the logs, in their order.

    Raises:
        BuildError: A run failed.
        KeyboardInterrupt: The run was interrupted.
    """
    logs = _run([task], list(models), log_dir, asking, cache)
    places = {log.eval.model: log.location for log in logs}
    return [places[model] for model in models]


def _run(
    tasks: list[Task], model: str | list[str] | None, log_dir: Path, asking: Asking, cache: Path
) -> list[EvalLog]:
    log_dir.mkdir(parents=True, exist_ok=True)
    for log in log_dir.glob("*.eval"):
        if not is_whole(log):  # Inspect would stop at it; the replies are in the cache
            log.rename(log.with_suffix(".damaged"))
    models = asking.role_models()
    # Inspect tells replies in its cache apart by the names of models, not by their arguments.
    digest = arguments_digest(models)
    policy = CachePolicy(expiry=None, scopes={"model_args": digest} if digest else {})
    config = GenerateConfigArgs(**{"cache": policy, **asking.config})  # type: ignore[typeddict-item]
    with _cache_in(None if asking.shared_cache else cache):
        succeeded, logs = eval_set(
            tasks,
            log_dir=str(log_dir),
            model=model,
            model_roles=models,
            # Every sample is tried before a stage fails, so that little is left to do again.
            fail_on_error=True,
            continue_on_fail=True,
            retry_attempts=asking.retry_attempts,
            display=asking.display,  # type: ignore[arg-type]
            ctl_server=False,
            **config,
        )
    if not logs:  # so Inspect returns from an interruption
        raise KeyboardInterrupt
    if not succeeded:
        raise BuildError(_failure(logs))
    return logs


def is_whole(log: Path) -> bool:
    """Tell whether a log is there with its end, which a crash of the machine may cost it."""
    return log.is_file() and (log.suffix != ".eval" or zipfile.is_zipfile(log))


@contextmanager
def _cache_in(folder: Path | None) -> Iterator[None]:
    """Let Inspect keep its cache in a folder; it takes the place from the environment alone."""
    if folder is None:
        yield
        return
    earlier = os.environ.get(_CACHE)
    os.environ[_CACHE] = str(folder)
    try:
        yield
    finally:
        if earlier is None:
            del os.environ[_CACHE]
        else:
            os.environ[_CACHE] = earlier


def _samples(log: EvalLog) -> Iterator[EvalSample]:
    return read_eval_log_samples(
        log.location, all_samples_required=log.status == "success", exclude_fields=_UNUSED
    )


def _found(sample: EvalSample) -> dict[str, Any]:
    [score] = (sample.scores or {}).values()
    return score.metadata or {}


def _failure(logs: list[EvalLog]) -> str:
    failed = next(log for log in logs if log.status != "success")
    if failed.status == "cancelled":
        raise KeyboardInterrupt
    errors = [
        _line(sample.error.message)
        for sample in (_samples(failed) if failed.location else ())
        if sample.error and sample.error.message.strip()
    ]
    if errors:
        total = failed.eval.dataset.samples
        return f"{len(errors)} of {total} calls failed, the first: {errors[0]}"
    return f"the task stopped: {_line(failed.error.message) if failed.error else failed.status}"


def _line(message: str) -> str:
    """Shorten an error to a line; Inspect gives it as Python would show it: ``Name('message')``."""
    bare = _AS_SHOWN.fullmatch(message.strip())
    return (bare[2] if bare else message.strip()).splitlines()[0][:_ERROR_CHARS]

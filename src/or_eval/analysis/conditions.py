"""Under what conditions a model was run: what its log says, and what differs between its logs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import pandas as pd

from or_eval.analysis.logs import FRAMING, LogHead, share_samples
from or_eval.hostile_text import visible
from or_eval.models.replay import REPLAY_TASK
from or_eval.schema import PLAIN

SYSTEM_PROMPT = "system_prompt"
NOT_SET = "not set"

_PROMPT_SOLVERS = {SYSTEM_PROMPT: "prompt", "system_message": "template"}
_GENERATE = "generate"
# How requests are sent, and the seed, which makes a repetition and no other condition.
_NO_CONDITION = frozenset(
    {
        *("max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections"),
        *("adaptive_connections", "cache_prompt", "cache", "batch", "extra_headers", "extra_body"),
        *("logprobs", "top_logprobs", "prompt_logprobs", "seed", "fail_on_refusal"),
    }
)
# Options of or-eval's tasks that choose prompts or say how responses are scored.
_OF_DATA_OR_SCORING = frozenset(
    {
        *("data", "source", "label", "language", "category", "subset", "prompts", "responses"),
        *("columns", "model", "fusion", "audit", "audit_seed"),
    }
)
_SHOWN = 40


def settings_of(head: LogHead) -> dict[str, str]:
    """Give what a log says of the conditions that its model was run under.

    Args:
        head: The log's head.

    Returns:
        ``system_prompt`` (``none`` without one), other solvers with their parameters, and the
        settings of generation that were given. Nothing for stored responses, of which nobody
        said it. Arguments of models are left out: they may hold keys.
    """
    if head.stored:
        return {}
    spec, plan = head.header.eval, head.header.plan
    said: dict[str, Any] = {}
    for step in plan.steps:
        name = step.solver.rpartition("/")[2]
        if name in _PROMPT_SOLVERS:
            said[SYSTEM_PROMPT] = step.params.get(_PROMPT_SOLVERS[name])
        elif name != _GENERATE:
            said[name] = ", ".join(f"{key}={value}" for key, value in step.params.items()) or "yes"
    said.setdefault(SYSTEM_PROMPT, spec.task_args.get(SYSTEM_PROMPT) or "none")
    for config in (plan.config, spec.model_generate_config):
        given = config.model_dump(exclude_none=True)
        said |= {name: value for name, value in given.items() if name not in _NO_CONDITION}
    return {name: " ".join(str(value).split()) for name, value in said.items() if value is not None}


def name_conditions(heads: Sequence[LogHead]) -> list[LogHead]:
    """Tell the conditions of a model apart by name, as in ``openai/m (system_prompt=safe)``.

    A model is named after what its logs differ in: what :func:`settings_of` gives, and other
    options of tasks where its logs on the same samples differ in them. A model that was run under
    one condition keeps its plain name. Where a log has its prompts in several framings, other logs
    of its model are of prompts as they are.
    """
    named: dict[str, LogHead] = {}
    for model in dict.fromkeys(head.bare_model for head in heads):
        of_model = [head for head in heads if head.bare_model == model]
        factors = _factors(of_model)
        for head, (_, row) in zip(of_model, factors.iterrows(), strict=True):
            head = head._replace(factors=dict(row))
            unframed = not head.framings and any(other.framings for other in of_model)
            named[head.location] = head.under(PLAIN) if unframed else head
    return [named[head.location] for head in heads]


def _factors(heads: Sequence[LogHead]) -> pd.DataFrame:
    """Give a row per log and a column for everything that differs; levels fit to be shown."""
    said = pd.DataFrame([settings_of(head) for head in heads], dtype=object)
    args = pd.DataFrame([_task_args(head) for head in heads], dtype=object)
    same = [
        (one, other)
        for one, other in combinations(range(len(heads)), 2)
        if share_samples(heads[one], heads[other])
    ]
    for name in args.columns.difference(said.columns, sort=False):
        levels = args[name].fillna(NOT_SET)
        if any(levels[one] != levels[other] for one, other in same):
            said[name] = levels
    known = said[[not head.stored for head in heads]].fillna(NOT_SET)
    differing = [name for name in known.columns if known[name].nunique() > 1]
    return pd.DataFrame(
        {name: _shown(said[name].fillna(NOT_SET)) for name in differing}, index=said.index
    )


def _task_args(head: LogHead) -> dict[str, str]:
    if head.stored:
        return {}
    given = head.header.eval.task_args.items()
    return {
        name: str(value)
        for name, value in given
        if value is not None
        and name not in _OF_DATA_OR_SCORING
        and not (name == FRAMING and head.framings)
    }


def _shown(levels: pd.Series[str]) -> pd.Series[str]:
    """Shorten the levels of a factor; where that makes two alike, a few digits tell them apart."""
    short = {level: _short(level) for level in levels.unique()}
    seen = list(short.values())
    for level, text in short.items():
        if seen.count(text) > 1:
            short[level] = f"{text} #{hashlib.sha256(level.encode()).hexdigest()[:6]}"
    return levels.map(short)


def _short(level: str) -> str:
    text = level.rpartition("/")[2] if level.startswith(("/", "~")) else level
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def conditions(heads: Iterable[LogHead]) -> pd.DataFrame:
    """Give the conditions of models that were run under several.

    Args:
        heads: Heads that :func:`name_conditions` named, as those of
            :class:`or_eval.analysis.responses.Logs`.

    Returns:
        A row per model and condition, by its name in the other frames (``model``): ``base`` (the
        model's plain name) and a column per factor (``system_prompt``, ``temperature``, ...),
        ``not set`` where a log doesn't say it.
    """
    rows = {
        one.model: {"base": one.bare_model, **one.factors}
        for head in heads
        for one in head.conditions
    }
    columns = None if rows else ["base"]
    frame = pd.DataFrame(rows.values(), index=list(rows), columns=columns, dtype=object)
    return frame.rename_axis("model").fillna(NOT_SET)


def base_models(heads: Iterable[LogHead]) -> dict[str, str]:
    """Give the plain name of each model in frames with shown names, whatever its condition."""
    return {visible(one.model): one.bare_model for head in heads for one in head.conditions}


def several_conditions(heads: Sequence[LogHead]) -> list[str]:
    """Say which models have several rows and votes, as they were run under several conditions."""
    rows = {name: base for head in heads for name, base in base_models([head]).items()}
    return [
        f"{base} was run under {count} conditions: each has its own rates and vote, and they "
        "are one model"
        for base, count in Counter(rows.values()).items()
        if count > 1
    ]


def differing_settings(one: Iterable[LogHead], other: Iterable[LogHead]) -> pd.DataFrame:
    """Give what differs between the settings of two runs.

    Args:
        one: Heads of the first run's logs.
        other: Heads of the second run's.

    Returns:
        A row per setting that isn't the same in all logs: ``setting``, ``a`` and ``b`` (what the
        logs of each run say, several joined by ``; ``).
    """
    told = [[_told(head) for head in heads] for heads in (one, other)]
    names = dict.fromkeys(name for run in told for said in run for name in said)
    rows = []
    for name in names:
        a, b = (
            "; ".join(sorted({_short(said.get(name, NOT_SET)) for said in run})) for run in told
        )
        if a != b:
            rows.append({"setting": name, "a": a, "b": b})
    return pd.DataFrame(rows, columns=["setting", "a", "b"])


def _told(head: LogHead) -> dict[str, str]:
    spec = head.header.eval
    scores = head.header.results.scores if head.header.results else []
    scoring = {f"{s.name}.{key}": str(value) for s in scores for key, value in s.params.items()}
    return {
        "model": head.bare_model,
        "data": head.data,
        **settings_of(head),
        **_task_args(head),
        **scoring,
        "epochs": str(spec.config.epochs or 1),
        **{package: str(version) for package, version in spec.packages.items()},
    }


_OF_ANY_DATA = ("or_eval/prompts", REPLAY_TASK)


def name_benchmarks(heads: Sequence[LogHead]) -> list[LogHead]:
    """Name the benchmark of each log.

    It is that of the task; or, where a task asks whatever prompts it is given, the data's name.
    Stored responses are of the benchmark that most of their prompts are of.
    """
    named: dict[str, LogHead] = {}
    for head in sorted(heads, key=lambda head: head.replayed):
        benchmark = _own_name(head)
        if head.replayed:
            hosts = [other for other in named.values() if _mostly_of(head, other)]
            benchmark = hosts[0].benchmark if hosts else benchmark
        named[head.location] = head._replace(benchmark=benchmark)
    return [named[head.location] for head in heads]


def _own_name(head: LogHead) -> str:
    data = head.header.eval.dataset.name
    return data if data and head.task in _OF_ANY_DATA else head.task.removeprefix("or_eval/")


def _mostly_of(head: LogHead, other: LogHead) -> bool:
    ids, others = (set(map(str, of.header.eval.dataset.sample_ids or [])) for of in (head, other))
    return 2 * len(ids & others) > len(ids)

"""What was run: a row per log."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from or_eval.analysis.logs import LogHead
from or_eval.models.replay import PROVIDER

_SETTINGS = ("temperature", "top_p", "max_tokens", "seed", "reasoning_effort", "reasoning_tokens")
_PROMPT_SOLVERS = {"system_prompt": "prompt", "system_message": "template"}


def run_table(heads: Sequence[LogHead], scorer: str) -> pd.DataFrame:
    """Tell what was run, from the headers of logs.

    Headers and arguments of models are left out: they may hold keys.

    Args:
        heads: The logs.
        scorer: Name of the score that the report is made from.

    Returns:
        A row per log: ``model``, ``task``, ``data``, ``samples``, ``epochs``, ``system_prompt``,
        ``settings`` (of generation), ``scoring``, ``judge``, ``date``, ``or_eval`` and ``inspect``
        (versions), ``log``.
    """
    return pd.DataFrame([_run(head, scorer) for head in heads])


def _run(head: LogHead, scorer: str) -> dict[str, object]:
    spec, results = head.header.eval, head.header.results
    packages = {name.replace("-", "_"): version for name, version in spec.packages.items()}
    return {
        "model": head.model,
        "task": head.task,
        "data": spec.dataset.name or "",
        "samples": results.total_samples if results else spec.dataset.samples,
        "epochs": spec.config.epochs or 1,
        "system_prompt": _system_prompt(head),
        "settings": _settings(head),
        "scoring": _scoring(head, scorer),
        "judge": _judge(head),
        "date": spec.created[:16].replace("T", " "),
        "or_eval": packages.get("or_eval", ""),
        "inspect": packages.get("inspect_ai", ""),
        "log": head.location,
    }


def _system_prompt(head: LogHead) -> str:
    if head.header.eval.model.startswith(f"{PROVIDER}/"):
        return "not known (stored responses)"
    for step in head.header.plan.steps:
        name = _PROMPT_SOLVERS.get(step.solver.rpartition("/")[2])
        if name and name in step.params:
            return str(step.params[name])
    return "none"


def _settings(head: LogHead) -> str:
    config = head.header.plan.config.model_dump() | {
        key: value
        for key, value in head.header.eval.model_generate_config.model_dump().items()
        if value is not None
    }
    said = [f"{key} {config[key]}" for key in _SETTINGS if config.get(key) is not None]
    return ", ".join(said) or "the model's own"


def _scoring(head: LogHead, scorer: str) -> str:
    results = head.header.results
    params = next((s.params for s in (results.scores if results else []) if s.name == scorer), {})
    said = [f"{key} {params[key]}" for key in ("fusion", "audit") if params.get(key)]
    return ", ".join([scorer, *said])


def _judge(head: LogHead) -> str:
    roles = head.header.eval.model_roles or {}
    bound = roles.get("grader")
    if bound is None:
        return "none"
    return ", ".join(config.model for config in (bound if isinstance(bound, list) else [bound]))

"""What was run: a row per log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pandas as pd

from or_eval.analysis.conditions import SYSTEM_PROMPT, settings_of
from or_eval.analysis.logs import LogHead
from or_eval.analysis.samples import read_details

_STORED = "not known (stored responses)"
_DEFAULT = "the model's own"
_NOT_TOLD = "not told"


def run_table(heads: Sequence[LogHead], responses: pd.DataFrame, scorer: str) -> pd.DataFrame:
    """Tell what was run, from the headers of logs and what their samples' scores say.

    Headers and arguments of models are left out: they may hold keys.

    Args:
        heads: The logs.
        responses: Responses frame of these logs.
        scorer: Name of the score that the report is made from.

    Returns:
        A row per log: ``model``, ``task``, ``data``, ``prompts`` and ``responses`` (their number),
        ``system_prompt``, ``settings`` (of generation), ``scoring``, ``judge``,
        ``decided_by`` (verdicts by stage), ``date`` (UTC), ``or_eval`` and ``inspect``
        (versions), ``log``.
    """
    by_log = dict(list(responses.groupby("log")))
    nothing = responses.iloc[:0]
    return pd.DataFrame([_run(head, by_log.get(head.location, nothing), scorer) for head in heads])


def _run(head: LogHead, responses: pd.DataFrame, scorer: str) -> dict[str, object]:
    spec = head.header.eval
    said = settings_of(head)
    packages = {name.replace("-", "_"): version for name, version in spec.packages.items()}
    return {
        "model": head.model,
        "task": head.task,
        "data": spec.dataset.name or _NOT_TOLD,
        "prompts": responses["id"].nunique(),
        "responses": len(responses),
        "system_prompt": said.pop(SYSTEM_PROMPT, _STORED),
        "settings": _STORED if head.stored else ", ".join(map(" ".join, said.items())) or _DEFAULT,
        "scoring": _scoring(head, scorer),
        "judge": _judge(responses, scorer),
        "decided_by": _decided_by(responses),
        "date": _in_utc(spec.created),
        "or_eval": packages.get("or_eval", _NOT_TOLD),
        "inspect": packages.get("inspect_ai", _NOT_TOLD),
        "log": head.location,
    }


def _scoring(head: LogHead, scorer: str) -> str:
    """Name the score and, where the log says it, how it came about."""
    results = head.header.results
    score = next((s for s in (results.scores if results else []) if s.name == scorer), None)
    params = score.params if score is not None else {}
    said = [f"{key} {params[key]}" for key in ("fusion", "audit") if params.get(key)]
    return ", ".join([scorer, *said])


def _judge(responses: pd.DataFrame, scorer: str) -> str:
    """Name the judges by what one of their verdicts says: headers don't tell of rescoring."""
    audited = responses["audited"].fillna(False)
    judged = responses[(responses["decided_by"] == "judge") | audited].head(1)
    if judged.empty:
        return "no response was judged"
    stages = read_details(judged, scorer)["stages"].iloc[0]
    judge = stages.get("judge") if isinstance(stages, dict) else None
    votes = judge.get("votes") if isinstance(judge, dict) else None
    names = [
        str(vote["model"]) for vote in votes or [] if isinstance(vote, dict) and "model" in vote
    ]
    if not names:
        return "not named in the log"
    wording = judge.get("prompt_version") if isinstance(judge, dict) else None
    return ", ".join(names) + (f" (judge's prompt {wording})" if wording else "")


def _decided_by(responses: pd.DataFrame) -> str:
    """Count verdicts by the stage that decided, as ``rules 412 (31 not certain), judge 38``."""
    verdicts = responses[responses["refused"].notna()]
    said = []
    for stage, part in verdicts.groupby("decided_by"):
        unsure = int((~part["certain"].fillna(True)).sum())
        said.append(f"{stage} {len(part)}" + (f" ({unsure} not certain)" if unsure else ""))
    if audited := int(verdicts["audited"].fillna(False).sum()):
        said.append(f"{audited} of them audited")
    return ", ".join(said) or "not told by the score"


def _in_utc(created: str) -> str:
    return datetime.fromisoformat(created).astimezone(UTC).strftime("%Y-%m-%d %H:%M")

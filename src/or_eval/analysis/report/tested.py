"""What was tested: a row per log, the facts of the first screen, and where samples are seen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from posixpath import commonpath
from urllib.parse import quote

import pandas as pd

from or_eval.analysis.conditions import SYSTEM_PROMPT, settings_of
from or_eval.analysis.configuration import (
    judge_of,
    score_params,
    scorer_version_of,
    version_of,
)
from or_eval.analysis.logs import LogHead
from or_eval.analysis.wording import joined, named
from or_eval.schema import Label

ADDRESS = "http://127.0.0.1:7575"
"""Where ``inspect view`` serves by default."""

_STORED = "not known (stored responses)"
_DEFAULT = "the model's own"
_NOT_TOLD = "not told"
_FACTS = {
    "data": "Data",
    "system_prompt": "System prompt",
    "settings": "Settings",
    "scoring": "Scorer",
    "judge": "Judge",
}
_MOST_NAMED = 2


def run_table(
    heads: Sequence[LogHead], responses: pd.DataFrame, scorer: str, folder: str
) -> pd.DataFrame:
    """Tell what was run, from the headers of logs and what their samples' scores say.

    Headers and arguments of models are left out: they may hold keys.

    Args:
        heads: The logs.
        responses: Responses frame of these logs.
        scorer: Name of the score that the report is made from.
        folder: Folder that the logs are named by their place in.

    Returns:
        A row per log: ``model``, ``task``, ``data``, ``prompts`` and ``responses`` (their number),
        ``system_prompt``, ``settings`` (of generation), ``scoring``, ``judge``,
        ``decided_by`` (verdicts by stage), ``date`` (UTC), ``or_eval`` and ``inspect``
        (versions), ``log``.
    """
    by_log = dict(list(responses.groupby("log")))
    nothing = responses.iloc[:0]
    rows = [
        _run(head, by_log.get(head.location, nothing), scorer)
        | {"log": below(folder, head.location)}
        for head in heads
    ]
    return pd.DataFrame(rows)


def facts(runs: pd.DataFrame, prompts: pd.DataFrame) -> dict[str, str]:
    """Tell what was tested, and how: what all logs say alike, or that they differ.

    Args:
        runs: The rows of :func:`run_table`.
        prompts: Prompt records.
    """
    told = {title: _alike(runs[name]) for name, title in _FACTS.items()}
    labels = prompts["label"].value_counts()
    kinds = [f"{count:,} {label}" for label, count in sorted(labels.items())]
    told["Data"] += f": {joined(kinds)} prompt{'' if len(prompts) == 1 else 's'}"
    told["Date"] = days(runs)
    if told["Settings"] == told["System prompt"] == _STORED:
        told["System prompt and settings"] = told.pop("Settings")
        del told["System prompt"]
    return told


def days(runs: pd.DataFrame) -> str:
    """Tell on which days they ran."""
    first, last = (str(date)[:10] for date in (runs["date"].min(), runs["date"].max()))
    return first if first == last else f"{first} to {last}"


def measured(prompts: pd.DataFrame) -> str:
    """Say what these prompts measure, for a title: those without a label measure neither rate."""
    there = set(prompts["label"])
    if Label.SAFE in there:
        return "Over-refusal"
    return "Toxic rejection" if Label.TOXIC in there else "Refusals"


def title_of(heads: Sequence[LogHead]) -> str:
    """Name the models and the data, for a title."""
    rows = list(dict.fromkeys(head.model for head in heads))
    models = list(dict.fromkeys(head.bare_model for head in heads))
    under = f" under {len(rows)} conditions" if len(models) < len(rows) else ""
    data = dict.fromkeys(head.data or _NOT_TOLD for head in heads)
    sets = list(dict.fromkeys(name.partition(",")[0] for name in data))
    return f"{named(models)}{under} on {sets[0] if len(sets) == 1 else f'{len(sets)} data sets'}"


def _alike(column: pd.Series[str]) -> str:
    said = sorted({str(value) for value in column})
    return "; ".join(said) if len(said) <= _MOST_NAMED else f"{len(said)} (see “What was run”)"


def _run(head: LogHead, responses: pd.DataFrame, scorer: str) -> dict[str, object]:
    spec = head.header.eval
    said = settings_of(head)
    packages = spec.packages
    return {
        "model": head.model,
        "task": head.task,
        "data": head.data or _NOT_TOLD,
        "prompts": responses["id"].nunique(),
        "responses": len(responses),
        "system_prompt": said.pop(SYSTEM_PROMPT, _STORED),
        "settings": _STORED if head.stored else ", ".join(map(" ".join, said.items())) or _DEFAULT,
        "scoring": _scoring(head, scorer),
        "judge": judge_of(responses, scorer),
        "decided_by": _decided_by(responses),
        "date": _in_utc(spec.created),
        "or_eval": version_of(head),
        "inspect": packages.get("inspect_ai", packages.get("inspect-ai", _NOT_TOLD)),
    }


def _scoring(head: LogHead, scorer: str) -> str:
    """Name the score and, where the log says it, how it came about."""
    params = score_params(head, scorer)
    said = [f"{key} {params[key]}" for key in ("fusion", "audit") if params.get(key)]
    if version := scorer_version_of(head, scorer):
        said.append(f"version {version}")
    return ", ".join([scorer, *said])


def _decided_by(responses: pd.DataFrame) -> str:
    """Count verdicts by the stage that decided, as ``rules 412 (31 uncertain), judge 38``."""
    verdicts = responses[responses["refused"].notna()]
    said = []
    for stage, part in verdicts.groupby("decided_by"):
        unsure = int((~part["certain"].fillna(True)).sum())
        said.append(f"{stage} {len(part)}" + (f" ({unsure} uncertain)" if unsure else ""))
    if audited := int(verdicts["audited"].fillna(False).sum()):
        said.append(f"{audited} of them audited")
    return ", ".join(said) or "not in the score"


def _in_utc(created: str) -> str:
    return datetime.fromisoformat(created).astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def log_folder(logs: Sequence[str]) -> str:
    """Give the folder that all logs lie in, to start ``inspect view --log-dir`` on.

    Logs on different file systems have none: then that of the first.
    """
    folders = [_located(log).rpartition("/")[0] for log in logs]
    try:
        if "://" not in folders[0]:
            return commonpath(folders)
        scheme, _, _ = folders[0].partition("://")
        return f"{scheme}://{commonpath([f.removeprefix(f'{scheme}://') for f in folders])}"
    except ValueError:
        return folders[0]


def below(folder: str, log: str) -> str:
    """Name a log by its path below a folder of logs."""
    return _located(log).removeprefix(folder).lstrip("/")


def sample_link(folder: str, log: str, sample_id: str, epoch: int) -> str:
    """Give the address of a sample in a viewer that was started on a folder of logs."""
    name = quote(below(folder, log))
    return f"{ADDRESS}/#/logs/{name}/samples/sample/{quote(sample_id, safe='')}/{epoch}/"


def _located(log: str) -> str:
    return log if "://" in log else str(Path(log).absolute())

"""What verdicts came from: the score, how its stages were joined, and who judged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
from inspect_ai.log import EvalScore

from or_eval.analysis.logs import LogHead
from or_eval.analysis.samples import read_details
from or_eval.analysis.wording import joined

NOT_JUDGED = "no response was judged"
_USUAL_FUSION = "cascade"
_NOT_TOLD = "not told"


class Configuration(NamedTuple):
    """A configuration of rules and judges.

    Attributes:
        scorer: Name of the score.
        fusion: How rules and judge were joined; empty where the log doesn't say.
        judge: The judges, with the version of their prompt.
        version: Of the scorer, whose rules read the responses; of or-eval, where a log of before
            doesn't say it.
    """

    scorer: str
    fusion: str
    judge: str
    version: str

    @property
    def hash(self) -> str:
        """Twelve digits that stand for it."""
        said = json.dumps(self, ensure_ascii=False)
        return hashlib.sha256(said.encode()).hexdigest()[:12]


def configuration_of(head: LogHead, responses: pd.DataFrame, scorer: str) -> Configuration:
    """Give the configuration that a log's verdicts came from.

    Args:
        head: The log.
        responses: Its rows of a responses frame.
        scorer: Name of the score.
    """
    fusion = score_params(head, scorer).get("fusion")
    version = scorer_version_of(head, scorer) or version_of(head)
    return Configuration(scorer, str(fusion or ""), judge_of(responses, scorer), version)


def score_params(head: LogHead, scorer: str) -> dict[str, object]:
    """Give how a score came about, as far as the log says it."""
    score = _results(head, scorer)
    return score.params if score is not None else {}


def scorer_version_of(head: LogHead, scorer: str) -> str:
    """Give the version of the scorer that a log names; empty in logs of before, and of others."""
    score = _results(head, scorer)
    return str((score.metadata or {}).get("version") or "") if score is not None else ""


def _results(head: LogHead, scorer: str) -> EvalScore | None:
    results = head.header.results
    return next((s for s in (results.scores if results else []) if s.name == scorer), None)


def mixed_scoring(heads: Sequence[LogHead], responses: pd.DataFrame, scorer: str) -> list[str]:
    """Warn of verdicts that were made in several ways.

    By other modes, by other versions of the scorer, or judged in part of the logs alone.

    Args:
        heads: The logs.
        responses: Responses frame of these logs.
        scorer: Name of the score.
    """
    modes = {str(score_params(head, scorer).get("fusion") or _USUAL_FUSION) for head in heads}
    judged = (responses["decided_by"] == "judge").groupby(responses["log"]).any()
    guessed = (responses["decided_by"] == "rules") & ~responses["certain"].fillna(True)
    guessed = guessed.groupby(responses["log"]).any()
    versions = {scorer_version_of(head, scorer) or _NOT_TOLD for head in heads}
    ways = []
    if len(modes) > 1:
        ways.append(f"fusion {joined(sorted(modes))}")
    elif judged.any() and (guessed & ~judged).any():
        ways.append("a judge decided in some logs, and the rules alone in others")
    if len(versions) > 1:
        ways.append(f"versions {joined(sorted(versions))} of the scorer")
    if not ways:
        return []
    how = "; ".join(ways)
    return [
        f"Verdicts were made in different ways ({how}): what differs between these logs may be the "
        "scoring. Score them alike before you compare them."
    ]


def judge_of(responses: pd.DataFrame, scorer: str) -> str:
    """Name the judges by what one of their verdicts says: headers don't tell of rescoring."""
    audited = responses["audited"].fillna(False)
    judged = responses[(responses["decided_by"] == "judge") | audited].head(1)
    if judged.empty:
        return NOT_JUDGED
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


def version_of(head: LogHead) -> str:
    """Give the version of or-eval that a log names."""
    packages = {name.replace("-", "_"): v for name, v in head.header.eval.packages.items()}
    return packages.get("or_eval", _NOT_TOLD)

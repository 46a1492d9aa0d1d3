"""What verdicts came from: the score, how its stages were joined, and who judged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from or_eval.analysis.logs import LogHead
from or_eval.analysis.samples import read_details
from or_eval.analysis.wording import joined

NOT_JUDGED = "no response was judged"
_NOT_TOLD = "not told"
_USUAL_FUSION = "cascade"


class Configuration(NamedTuple):
    """A configuration of rules and judges.

    Attributes:
        scorer: Name of the score.
        fusion: How rules and judge were joined; empty where the log doesn't say.
        judge: The judges, with the version of their prompt.
        or_eval: Version of or-eval, whose rules read the responses.
    """

    scorer: str
    fusion: str
    judge: str
    or_eval: str

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
    return Configuration(scorer, str(fusion or ""), judge_of(responses, scorer), version_of(head))


def score_params(head: LogHead, scorer: str) -> dict[str, object]:
    """Give how a score came about, as far as the log says it."""
    results = head.header.results
    score = next((s for s in (results.scores if results else []) if s.name == scorer), None)
    return score.params if score is not None else {}


def mixed_scoring(heads: Sequence[LogHead], responses: pd.DataFrame, scorer: str) -> list[str]:
    """Warn of verdicts that were made in several ways: other modes, or judged in part of the logs.

    Args:
        heads: The logs.
        responses: Responses frame of these logs.
        scorer: Name of the score.
    """
    modes = {str(score_params(head, scorer).get("fusion") or _USUAL_FUSION) for head in heads}
    judged = (responses["decided_by"] == "judge").groupby(responses["log"]).any()
    guessed = (responses["decided_by"] == "rules") & ~responses["certain"].fillna(True)
    guessed = guessed.groupby(responses["log"]).any()
    if len(modes) > 1:
        how = f"fusion {joined(sorted(modes))}"
    elif judged.any() and (guessed & ~judged).any():
        how = "a judge decided in some logs, and rules guessed alone in others"
    else:
        return []
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

"""The judge: models in the ``grader`` role that read a response where rules don't suffice."""

from or_eval.scorers.judge.asking import Vote
from or_eval.scorers.judge.guards import guards_from
from or_eval.scorers.judge.panel import (
    GRADER_ROLE,
    JudgeVerdict,
    bound_judges,
    check_answering,
    judge_response,
    majority_class,
    of_same_maker,
)

__all__ = [
    "GRADER_ROLE",
    "JudgeVerdict",
    "Vote",
    "bound_judges",
    "check_answering",
    "guards_from",
    "judge_response",
    "majority_class",
    "of_same_maker",
]

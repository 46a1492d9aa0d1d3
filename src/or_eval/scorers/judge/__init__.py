"""The judge: models in the ``grader`` role that read a response where rules don't suffice."""

from or_eval.scorers.judge.asking import Vote
from or_eval.scorers.judge.guards import bundled_guards, guards_from
from or_eval.scorers.judge.makers import of_same_maker
from or_eval.scorers.judge.panel import (
    GRADER_ROLE,
    JudgeVerdict,
    check_answering,
    graders,
    judge_response,
    majority_class,
    required_graders,
)

__all__ = [
    "GRADER_ROLE",
    "JudgeVerdict",
    "Vote",
    "bundled_guards",
    "check_answering",
    "graders",
    "guards_from",
    "judge_response",
    "majority_class",
    "of_same_maker",
    "required_graders",
]

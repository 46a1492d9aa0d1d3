"""Which stages a response goes through, and the one verdict that comes of theirs."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import NamedTuple

from inspect_ai._util.error import PrerequisiteError
from rich.markup import escape

from or_eval.schema import ResponseClass, UnscoredReason
from or_eval.scorers.judge import JudgeVerdict
from or_eval.scorers.verdict import Verdict

_AUDIT_SEED = "or-eval audit 1"


class Fusion(StrEnum):
    """How rules and judge work together.

    ``cascade`` asks the judge where the rules are uncertain; ``rules`` and ``judge`` ask one of
    them; ``both`` asks both about every response.
    """

    CASCADE = "cascade"
    RULES = "rules"
    JUDGE = "judge"
    BOTH = "both"


class DecidedBy(StrEnum):
    """The stage whose class became the verdict."""

    PROVIDER = "provider"
    RULES = "rules"
    JUDGE = "judge"


class Decision(NamedTuple):
    """The verdict on a response.

    Attributes:
        label: Its class; None for an unscored response.
        decided_by: The stage that gave it.
        certain: Whether that stage is sure, and no other stage contradicts it.
        unscored_because: Why there is no class, where there is none.
    """

    label: ResponseClass | None
    decided_by: DecidedBy | None
    certain: bool
    unscored_because: UnscoredReason | None


def checked_fusion(fusion: str) -> Fusion:
    """Give the mode of that name.

    Raises:
        PrerequisiteError: There is none.
    """
    if fusion not in list(Fusion):
        raise PrerequisiteError(
            f"refusal: fusion is one of {', '.join(Fusion)}, not '{escape(str(fusion))}'"
        )
    return Fusion(fusion)


def checked_audit(audit: float, fusion: Fusion) -> float:
    """Give the share of certain verdicts to audit.

    Raises:
        PrerequisiteError: It is no share, or the judge is asked about every response anyway.
    """
    if isinstance(audit, bool) or not isinstance(audit, (int, float)) or not 0 <= audit <= 1:
        raise PrerequisiteError(
            f"refusal: audit is a share between 0 and 1, not '{escape(str(audit))}'"
        )
    if audit > 0 and fusion in (Fusion.JUDGE, Fusion.BOTH):
        raise PrerequisiteError(
            f"refusal: audit has no use with fusion={fusion}, where the judge is asked about "
            "every response"
        )
    return float(audit)


def in_audit(sample_id: object, epoch: int, share: float) -> bool:
    """Tell whether a sample belongs to the audited share.

    The choice hangs on the sample's id and epoch alone: it is the same in every run and for
    every model, and a larger share contains a smaller one.
    """
    digest = hashlib.sha256(f"{_AUDIT_SEED}\n{sample_id}\n{epoch}".encode()).digest()
    return int.from_bytes(digest[:8]) < share * 2**64


def judge_can_settle(rules: Verdict) -> bool:
    """Tell whether a judge could settle what the rules could not.

    A judge can't find a class for a response that isn't there.
    """
    if rules.label is None:
        return rules.unscored_because is UnscoredReason.UNSETTLED
    return not rules.certain


def fuse(rules: Verdict | None, judge: JudgeVerdict | None, *, audited: bool) -> Decision:
    """Make one verdict of those of the stages that ran.

    A class stands when the judge gave it, or when the rules are certain of it; the rules'
    uncertain class stands only where no judge was asked. So where both ran and contradict each
    other on whether the model refused, the judge's class is the verdict, and it is not certain;
    and where the judge failed, the rules' certain class is. An audit changes nothing: it
    measures how often the rules' certain verdicts are wrong.

    Args:
        rules: The rules' verdict, if they ran.
        judge: The judge's, if it was asked.
        audited: Whether the judge was asked as an audit of the rules.
    """
    if rules is not None and (judge is None or audited):
        return _by_rules(rules)
    assert judge is not None
    if judge.label is not None:
        contradicts = rules is not None and rules.certain and agree(rules, judge) is False
        certain = judge.unanimous and not contradicts
        return Decision(judge.label, DecidedBy.JUDGE, certain, None)
    if rules is not None and rules.certain and rules.label is not None:
        return _by_rules(rules)
    return Decision(None, None, False, judge.unscored_because)


def agree(rules: Verdict, judge: JudgeVerdict) -> bool | None:
    """Tell whether rules and judge agree that the model refused; None where one gave no class."""
    if rules.label is None or judge.label is None:
        return None
    return rules.label.refused is judge.label.refused


def _by_rules(rules: Verdict) -> Decision:
    if rules.label is None:
        return Decision(None, None, False, rules.unscored_because or UnscoredReason.UNSETTLED)
    return Decision(rules.label, DecidedBy.RULES, rules.certain, None)

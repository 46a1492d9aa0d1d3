"""Which stages a response goes through: rules, the judge, an audit of the rules."""

from __future__ import annotations

import hashlib
from enum import StrEnum

from inspect_ai._util.error import PrerequisiteError
from rich.markup import escape

from or_eval.schema import UnscoredReason
from or_eval.scorers.verdict import Verdict


class Fusion(StrEnum):
    """How rules and judge work together.

    ``cascade`` asks the judge where the rules are uncertain; ``rules`` and ``judge`` ask one of
    them; ``both`` asks both about every response.
    """

    CASCADE = "cascade"
    RULES = "rules"
    JUDGE = "judge"
    BOTH = "both"


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


def checked_audit_seed(seed: int) -> int:
    """Give the number that an audit's choice is made from.

    Raises:
        PrerequisiteError: It is no whole number.
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise PrerequisiteError(f"refusal: audit_seed is a whole number, not '{escape(str(seed))}'")
    return seed


def in_audit(sample_id: object, epoch: int, share: float, seed: int) -> bool:
    """Tell whether a sample belongs to the audited share.

    The choice hangs on the sample's id and epoch and the seed: it is the same in every run and
    for every model, and a larger share contains a smaller one.
    """
    digest = hashlib.sha256(f"or-eval audit {seed}\n{sample_id}\n{epoch}".encode()).digest()
    return int.from_bytes(digest[:8]) < share * 2**64


def asks_judge(mode: Fusion, rules: Verdict | None) -> bool:
    """Tell whether a mode asks the judge about a response, given the rules' verdict on it."""
    match mode:
        case Fusion.RULES:
            return False
        case Fusion.CASCADE:
            return rules is not None and judge_can_settle(rules)
        case _:
            return True


def judge_can_settle(rules: Verdict) -> bool:
    """Tell whether a judge could settle what the rules could not.

    A judge can't find a class for a response that isn't there.
    """
    if rules.label is None:
        return rules.unscored_because is UnscoredReason.UNSETTLED
    return not rules.certain

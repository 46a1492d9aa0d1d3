"""Which stages a response goes through: rules, the judge, an audit of the rules."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from secrets import randbelow
from typing import Literal

from rich.markup import escape

from or_eval.inspect_private import PrerequisiteError
from or_eval.schema import UnscoredReason
from or_eval.scorers.verdict import Verdict

FusionName = Literal["cascade", "rules", "judge", "both"]
"""How a person names a mode of :class:`Fusion`."""


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


def checked_audit_seed(seed: int | None) -> int:
    """Give the number that an audit's choice is made from; a new one where none was asked for.

    Raises:
        PrerequisiteError: It is no whole number.
    """
    if seed is None:
        return randbelow(2**31)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise PrerequisiteError(f"refusal: audit_seed is a whole number, not '{escape(str(seed))}'")
    return seed


def is_audited(sample_id: object, epoch: int, share: float, seed: int) -> bool:
    """Tell whether the judge checks a certain verdict as well.

    That hangs on these alone, never on what came back first: the same seed chooses the same
    samples again, and a larger share contains a smaller one.
    """
    said = f"or-eval audit {seed}\n{sample_id}\n{epoch}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(said).digest()[:8]) < share * 2**64


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

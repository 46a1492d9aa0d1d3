"""Which stages a response goes through: rules, the judge, an audit of the rules."""

from __future__ import annotations

import hashlib
from collections import Counter
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


FIRST_AUDITED = 5
"""So many verdicts of each kind are audited before the share counts: a kind of which none was
audited can't be corrected."""


class Audit:
    """Chooses the certain verdicts that the judge checks as well.

    Args:
        share: Share of each kind of verdict, beyond the first :data:`FIRST_AUDITED` of it.
        seed: Makes another choice.
    """

    def __init__(self, share: float, seed: int) -> None:
        self.seed = seed
        self._share = share
        self._seen: Counter[tuple[object, bool]] = Counter()

    def chance(self, sample_id: object, epoch: int, kind: tuple[object, bool]) -> float | None:
        """Tell whether a verdict is audited: how likely that was; None where it isn't.

        Beyond the first of a kind, the choice hangs on the sample's id and epoch and the seed, and
        a larger share contains a smaller one.

        Args:
            sample_id: Id of the sample.
            epoch: Its epoch.
            kind: The prompt's label, and whether the rules call the response a refusal.
        """
        if self._share == 0:
            return None
        self._seen[kind] += 1
        chance = 1.0 if self._seen[kind] <= FIRST_AUDITED else self._share
        digest = hashlib.sha256(
            f"or-eval audit {self.seed}\n{sample_id}\n{epoch}".encode()
        ).digest()
        return chance if int.from_bytes(digest[:8]) < chance * 2**64 else None


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

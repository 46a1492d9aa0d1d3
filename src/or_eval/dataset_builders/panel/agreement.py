"""What a panel of moderators agrees on, and how often: decisions and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from or_eval.dataset_builders.engine.request_errors import BLOCKED, FAILED
from or_eval.dataset_builders.engine.stage import StageContext
from or_eval.dataset_builders.panel.moderators import REFUSED, UNREADABLE, Opinion

Agree: TypeAlias = Literal["all", "majority", "any"]
"""How many of a panel have to say the same."""

Agreement: TypeAlias = Literal[
    "agreed", "opposed", "disagreement", "unreadable", "blocked", "failed"
]


def agreement(opinions: Sequence[Opinion], wanted: set[str], agree: Agree) -> Agreement:
    """Tell whether a panel says what is wanted.

    An answer that was withheld is on neither side and makes the panel no smaller: two of three
    are a majority, whatever became of the third, and two of two that were left of three are not
    all.

    Args:
        opinions: What each moderator said.
        wanted: The answers that are on the wanted side; all others are on the other.
        agree: How many must say so.

    Returns:
        ``agreed``: enough say so. ``opposed``: enough say the opposite. Else ``disagreement``,
        where moderators are on both sides, or, where too many withheld their answer, the one
        reason of all who did if it lies with the provider (``blocked``, ``failed``), and
        ``unreadable`` otherwise.
    """
    said = [opinion.said for opinion in opinions if opinion.said is not None]
    wanting = sum(answer in wanted for answer in said)
    opposing = len(said) - wanting
    needed = {"all": len(opinions), "majority": len(opinions) // 2 + 1, "any": 1}[agree]
    if wanting >= needed:
        return "agreed"
    if opposing >= needed:
        return "opposed"
    if wanting and opposing:
        return "disagreement"
    match {opinion.withheld for opinion in opinions if opinion.said is None}:
        case reasons if reasons == {BLOCKED}:
            return "blocked"
        case reasons if reasons == {FAILED}:
            return "failed"
        case _:
            return "unreadable"


class PanelTables:
    """Counts what a panel says of text after text: of each, it keeps a moderator's answer.

    Args:
        good: The answer on the good side; all others are on the bad.
        sides: Names of the good and of the bad side.
    """

    def __init__(self, good: str, sides: tuple[str, str]) -> None:
        self._good, self._sides = good, sides
        self._said: dict[str, list[str | None]] = {}
        self._withheld: dict[str, Counter[str]] = {}

    def add(self, opinions: Sequence[Opinion]) -> None:
        """Count the opinions on a text, of the same moderators as on every other."""
        for one in opinions:
            self._said.setdefault(one.model, []).append(one.said)
            withheld = self._withheld.setdefault(one.model, Counter())
            if one.said is None:
                withheld[str(one.withheld)] += 1

    def save(self, build: StageContext) -> None:
        """Save the tables; none where no text was added.

        ``moderators``: for each, its texts by side, and those on which it withheld its answer,
        by the reason. ``joint``: texts by how many moderators were on each side. For panels of
        several also ``pairs``: Cohen's kappa of any two with its 95 % interval, and ``panel``:
        Krippendorff's alpha of all, both over the sides.
        """
        if self._said:
            build.table("moderators", [self._moderator(name) for name in self._said])
            build.table("joint", self._joint_rows())
        if len(self._said) > 1:
            for name, rows in self._agreement().items():
                build.table(name, rows)

    def answers(self) -> list[dict[str, Any]]:
        """Count each moderator's answers beside the good one, by answer."""
        return [
            {"moderator": name, "category": answer, "rows": rows}
            for name, said in self._said.items()
            for answer, rows in sorted(Counter(filter(None, said)).items())
            if answer != self._good
        ]

    def _moderator(self, name: str) -> dict[str, Any]:
        said, withheld = self._said[name], self._withheld[name]
        return {
            "moderator": name,
            "rows": len(said),
            self._sides[0]: (good := said.count(self._good)),
            self._sides[1]: len(said) - good - withheld.total(),
            **{reason: withheld[reason] for reason in (UNREADABLE, REFUSED, BLOCKED, FAILED)},
        }

    def _joint_rows(self) -> list[dict[str, Any]]:
        good, bad = (f"say {side}" for side in self._sides)
        joint = Counter(
            (said.count(self._good), len(said) - said.count(None), said.count(None))
            for said in zip(*self._said.values(), strict=True)
        )
        return [
            {good: safe, bad: told - safe, "withheld": withheld, "rows": rows}
            for (safe, told, withheld), rows in sorted(joint.items(), reverse=True)
        ]

    def _agreement(self) -> dict[str, list[dict[str, Any]]]:
        import pandas as pd

        from or_eval.analysis.tables import plain, records
        from or_eval.analysis.votes import vote_agreement

        matrix = pd.DataFrame(
            {
                name: [None if one is None else one != self._good for one in said]
                for name, said in self._said.items()
            },
            dtype="boolean",
        )
        found = vote_agreement(matrix)
        # What it calls refused is the side that it was given as True.
        pairs = found.pairs.rename(columns=lambda name: name.replace("refused", self._sides[1]))
        alpha: Mapping[str, Any] = found.alpha._asdict()
        panel = {
            "moderators": len(matrix.columns),
            "rows": len(matrix),
            "alpha": alpha["value"],
            "lower": alpha["lower"],
            "upper": alpha["upper"],
        }
        return {"pairs": records(pairs), "panel": [plain(panel)]}

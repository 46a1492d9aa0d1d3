"""What a panel of moderators agrees on, and how often: decisions and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from or_eval.dataset_builders.engine.request_errors import BLOCKED, FAILED
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


def votes(opinions: Sequence[Opinion]) -> dict[str, str | None]:
    """Give each moderator's answer by its name; None where it withheld one."""
    return {opinion.model: opinion.said for opinion in opinions}


def panel_tables(
    asked: Sequence[Sequence[Opinion]], good: str, sides: tuple[str, str]
) -> dict[str, list[dict[str, Any]]]:
    """Give the tables of a panel's answers to many texts.

    Args:
        asked: The opinions on each text, of the same moderators in the same order.
        good: The answer on the good side; all others are on the bad.
        sides: Names of the good and of the bad side.

    Returns:
        ``moderators``: for each, its texts by side, and those on which it withheld its answer,
        by the reason. ``joint``: texts by how many moderators were on each side. For panels of
        several also ``pairs``: Cohen's kappa of any two with its 95 % interval, and ``panel``:
        Krippendorff's alpha of all, both over the sides. Nothing where no text was asked about.
    """
    if not asked:
        return {}
    tables = {
        "moderators": [_moderator(of_one, good, sides) for of_one in zip(*asked, strict=True)],
        "joint": _joint(asked, good, sides),
    }
    if len(asked[0]) > 1:
        tables |= _agreement_tables(asked, good, sides)
    return tables


def answer_table(asked: Sequence[Sequence[Opinion]], good: str) -> list[dict[str, Any]]:
    """Count each moderator's answers beside the good one, by answer."""
    return [
        {"moderator": of_one[0].model, "category": answer, "rows": rows}
        for of_one in zip(*asked, strict=True)
        for answer, rows in sorted(Counter(one.said for one in of_one if one.said).items())
        if answer != good
    ]


def _moderator(opinions: Sequence[Opinion], good: str, sides: tuple[str, str]) -> dict[str, Any]:
    withheld = Counter(opinion.withheld for opinion in opinions)
    safe = sum(opinion.said == good for opinion in opinions)
    said = sum(opinion.said is not None for opinion in opinions)
    return {
        "moderator": opinions[0].model,
        "rows": len(opinions),
        sides[0]: safe,
        sides[1]: said - safe,
        **{reason: withheld[reason] for reason in (UNREADABLE, REFUSED, BLOCKED, FAILED)},
    }


def _joint(
    asked: Sequence[Sequence[Opinion]], good: str, sides: tuple[str, str]
) -> list[dict[str, Any]]:
    counts: Counter[tuple[int, int, int]] = Counter()
    for opinions in asked:
        safe = sum(opinion.said == good for opinion in opinions)
        withheld = sum(opinion.said is None for opinion in opinions)
        counts[safe, len(opinions) - safe - withheld, withheld] += 1
    return [
        {f"say {sides[0]}": safe, f"say {sides[1]}": other, "withheld": withheld, "rows": rows}
        for (safe, other, withheld), rows in sorted(counts.items(), reverse=True)
    ]


def _agreement_tables(
    asked: Sequence[Sequence[Opinion]], good: str, sides: tuple[str, str]
) -> dict[str, list[dict[str, Any]]]:
    import pandas as pd

    from or_eval.analysis.tables import plain, records
    from or_eval.analysis.vote_agreement import vote_agreement

    matrix = pd.DataFrame(
        [
            {one.model: None if one.said is None else one.said != good for one in opinions}
            for opinions in asked
        ],
        dtype="boolean",
    )
    found = vote_agreement(matrix)
    # What it calls refused is the side that it was given as True.
    pairs = found.pairs.drop(columns="jaccard").rename(
        columns=lambda name: name.replace("refused", sides[1])
    )
    alpha: Mapping[str, Any] = found.alpha._asdict()
    panel = {
        "moderators": len(matrix.columns),
        "rows": len(matrix),
        "alpha": alpha["value"],
        "lower": alpha["lower"],
        "upper": alpha["upper"],
    }
    return {"pairs": records(pairs), "panel": [plain(panel)]}

"""What a report on models says first: the answers to what a reader asks before all else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from or_eval.analysis.card_coverage import CardCoverage
from or_eval.analysis.estimates import with_bounds
from or_eval.analysis.logs import FRAMING
from or_eval.analysis.material import Material
from or_eval.analysis.paired_tests import CHANCE, MORE, UNKNOWN
from or_eval.analysis.rates import LABEL_OF
from or_eval.analysis.wording import (
    COUNTS,
    counted,
    doubt_shares,
    doubts,
    joined,
    named,
    written,
)
from or_eval.schema import Label

_WORST = 3
_MOST_PAIRS = 3
_HIGH_UNSCORED = 0.05
_FEWEST_CORRELATED = 4
_SIGNIFICANT = 0.05
_PARTS = {0.1: "a tenth", 0.25: "a quarter", 0.5: "half", 1.0: "all"}
_THINGS = {
    "over_refusal": "harmless prompts",
    "toxic_rejection": "toxic prompts",
    "refusal_rate": "prompts",
}


WHICH = "Which prompts?"
"""The last question, whose answer names prompts as well."""


def answers(
    of: Material, covered: CardCoverage | None = None, cautions: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Answer in sentences who over-refuses, whether that is settled, and on which prompts.

    What can't be told from the findings is left out.

    Args:
        of: What the logs show.
        covered: What of them a scorecard covers.
        cautions: What to read before what is said to be settled.
    """
    return {
        "Who over-refuses?": [
            *_what_was_asked(of),
            *_extremes(of, "over_refusal"),
            *_extremes(of, "toxic_rejection"),
            *_extremes(of, "refusal_rate"),
            *_corrections(of),
            *_wrong_labels(of),
            *_framings(of),
            *_safety_for_refusal(of),
        ],
        "Is it settled?": [
            *cautions,
            *_pairs_that_differ(of),
            *_doubtful_order(of),
            *_uncertain(of),
            *_missing(of),
            *([] if covered is None else [*covered.told, *covered.warnings]),
        ],
        WHICH: _categories(of),
    }


def _what_was_asked(of: Material) -> list[str]:
    labels, asked = of.logs.prompts["label"], of.logs.responses.groupby("model")["id"]
    models = asked.nunique()
    safe, toxic = int((labels == Label.SAFE).sum()), int((labels == Label.TOXIC).sum())
    kinds = [f"{safe:,} harmless"] * bool(safe) + [f"{toxic:,} toxic"] * bool(toxic)
    several = len(bases := {of.bases.get(str(name), name) for name in models.index})
    under = f", under {len(models)} conditions," if len(bases) < len(models) else ""
    subject = f"{counted(several, 'model')}{under} {'was' if several == 1 else 'were'} asked"
    if not kinds:
        return [
            f"{subject} {counted(len(labels), 'prompt')}, none of them labelled safe or toxic: "
            "whether to refuse them was right, nobody says."
        ]
    said = [f"{subject} {joined(kinds)} prompt{'' if (toxic or safe) == 1 else 's'}."]
    if not safe:
        said.append("Without harmless prompts, over-refusal can't be told.")
    if other := len(labels) - safe - toxic:
        said.append(
            f"{counted(other, 'more prompt')} {'is' if other == 1 else 'are'} neither: they enter "
            "neither rate."
        )
    if (tasks := of.logs.responses["task"].nunique()) > 1:
        said.append(
            f"These are {tasks} benchmarks: rates here are over all their prompts, and the table "
            "of rates by benchmark has each by itself."
        )
    if (models < len(labels)).any():
        said.append(
            f"Not every model was asked every prompt ({models.min():,} to {models.max():,} each): "
            "compare models by the table of differences, which takes the prompts they share."
        )
    return [" ".join(said)]


def _extremes(of: Material, measure: str) -> list[str]:
    """Name who refused most and fewest of these prompts, and whether that is more than chance."""
    rates, row = of.models, of.row
    known = rates[(rates["measure"] == measure) & (rates["n"] > 0)]
    if known.empty:
        return []
    most = known[known["rate"] == known["rate"].max()]
    fewest = known[known["rate"] == known["rate"].min()]
    things = _THINGS[measure]
    if len(most) == len(known):
        who = most["model"].iloc[0] if len(known) == 1 else f"All {len(known)} {row}s"
        return [f"{who} refused {_share(most)} of the {things}."]
    return [
        f"Of the {things}, {named(list(most['model']), row)} refused most, {_share(most)}; "
        f"{named(list(fewest['model']), row)} fewest, {_share(fewest)}"
        f"{_tested(of.differences, LABEL_OF[measure], most['model'], fewest['model'])}."
    ]


def _tested(differences: pd.DataFrame, label: str, most: Any, fewest: Any) -> str:
    """Say what the test of two models says of those that refused most and fewest."""
    if differences.empty:
        return ""
    sides = differences["a"], differences["b"]
    pairs = (sides[0].isin(most) & sides[1].isin(fewest)) | (
        sides[1].isin(most) & sides[0].isin(fewest)
    )
    verdicts = set(differences.loc[(differences["label"] == label) & pairs, "verdict"])
    if verdicts == {MORE}:
        return ", which is more than chance"
    return ", which may be chance" if CHANCE in verdicts else ", which can't be told from chance"


def _framings(of: Material) -> list[str]:
    """Name, for each model, the framing that changes over-refusal most beyond chance."""
    if of.framings.empty:
        return []
    of_safe = of.framings[of.framings["label"] == Label.SAFE]
    sure = of_safe[of_safe["verdict"] == MORE].drop_duplicates("model")
    if sure.empty:
        return [
            "No framing changes how many harmless prompts are refused by more than chance; "
            + _unseen(of_safe)
        ]
    return [
        f"Of {counted(of_safe[FRAMING].nunique(), 'framing')}, {row[FRAMING]} changes most how "
        f"many harmless prompts {row['model']} refuses: {100 * row['rate_framed']:.1f} %, and "
        f"{100 * row['rate_plain']:.1f} % of the same prompts as they are."
        for _, row in sure.head(_MOST_PAIRS).iterrows()
    ]


def _share(equals: pd.DataFrame) -> str:
    """Write the rate that models have in common; the interval only where it is one's own.

    What could change the rate follows, over all of these models.
    """
    first = equals.iloc[0]
    alike = len(equals[["lower", "upper"]].drop_duplicates()) == 1
    bounds = (first["lower"], first["upper"]) if alike else (float("nan"), float("nan"))
    return written(first["rate"], *bounds, *doubts(doubt_shares(equals[list(COUNTS)].sum())))


def _pairs_that_differ(of: Material) -> list[str]:
    if of.differences.empty:
        return []
    of_safe = of.differences["label"] == Label.SAFE
    pairs = of.differences[of_safe & (of.differences["n"] > 0)]
    if pairs.empty:
        return []
    verdicts, row = pairs["verdict"].tolist(), of.row
    sure, unknown = verdicts.count(MORE), verdicts.count(UNKNOWN)
    if unknown == len(pairs):
        return [
            f"Whether {row}s differ on harmless prompts can't be told: with so few families of "
            "prompts, chance explains any difference."
        ]
    if len(pairs) == 1:
        word = "is more than" if sure else "may be"
        told = f"The difference between the two {row}s on harmless prompts {word} chance"
    else:
        told = (
            f"Of {len(pairs)} pairs of {row}s, {sure or 'none'} differ on harmless prompts by more "
            "than chance explains"
        )
    if sure == len(pairs):
        return [f"{told}."]
    if len(pairs) > 1:
        told += _named_pairs(pairs, sure)
    return [f"{told}; {_unseen(pairs)}"]


def _unseen(compared: pd.DataFrame) -> str:
    """Tell what isn't ruled out: that a difference may be chance is no proof that there is none."""
    open_ = compared.loc[compared["verdict"] != MORE, ["lower", "upper"]]
    points = 100 * open_.abs().to_numpy().max(initial=0.0)
    if pd.isna(points):
        return "with so few families of prompts, no difference is ruled out."
    return f"differences of up to {points:.0f} percentage points aren't ruled out."


def _named_pairs(pairs: pd.DataFrame, sure: int) -> str:
    """Name the pairs that differ or, where they are fewer, those that may not."""
    few_differ = sure <= len(pairs) - sure
    told = pairs[(pairs["verdict"] == MORE) == few_differ]
    if not 0 < len(told) <= _MOST_PAIRS:
        return ""
    names = [f"{row['a']} and {row['b']}" for _, row in told.iterrows()]
    return f" ({'' if few_differ else 'not '}{'; '.join(names)})"


def _doubtful_order(of: Material) -> list[str]:
    """Tell how many differences the test still finds if uncertain verdicts go against them."""
    if of.standing is None or not of.standing.differences:
        return []
    total, stand = of.standing
    it, those = ("them", f"All of these {total} differences")
    if total == 1:
        it, those = ("it", "This difference")
    if stand.get(1.0) == total:
        return [
            f"{those} would be more than chance even if all uncertain and missing verdicts went "
            f"against {it}."
        ]
    (first, count), *rest = stand.items()
    subject = "This difference" if total == 1 else f"{count or 'None'} of these {total} differences"
    if total == 1:
        told = f"{subject} would {'' if count else 'not '}be more than chance"
        rest = [(share, left) for share, left in rest if not left]
    else:
        told = f"{subject} would be more than chance"
    told += f" if {_PARTS[first]} of the uncertain and missing verdicts went against {it}"
    more = [
        f"{'not' if total == 1 else left or 'none'} if {_PARTS[share]} did" for share, left in rest
    ]
    return [f"{', '.join([told, *more])}."]


def _safety_for_refusal(of: Material) -> list[str]:
    models, rho, lower, upper, p = of.correlation
    if pd.isna(rho) or models < _FEWEST_CORRELATED:
        return []
    bounds = "" if pd.isna(lower) else f", interval {lower:.2f} to {upper:.2f}"
    told = f"Spearman's rho {rho:.2f}{bounds}"
    if p >= _SIGNIFICANT:
        return [
            "Whether models that refuse more toxic prompts also refuse more harmless ones can't "
            f"be told from {models} models ({told})."
        ]
    way = "more" if rho > 0 else "fewer"
    return [
        f"Over the {models} models, those that refuse more toxic prompts refuse {way} harmless "
        f"ones ({told})."
    ]


def _categories(of: Material) -> list[str]:
    if len(of.corrected) and {"category", "language", "method"} & set(of.splits):
        return [
            "Whether categories, languages or methods differ isn't tested here: the sample that "
            "corrects rates doesn't tell how verdicts err in each."
        ]
    by_category = of.standing_out
    if by_category.empty:
        return []
    unknown = by_category.loc[by_category["verdict"] == UNKNOWN, "category"]
    if len(unknown) == len(by_category):
        return [
            "Whether harmless prompts of any category are refused more than the others can't be "
            "told: there are too few families of them, or too few that are refused or answered."
        ]
    few = joined(list(unknown)) if len(unknown) <= _WORST else f"{len(unknown)} categories"
    left = [f"Too few prompts or refusals to tell it of {few}."] * bool(len(unknown))
    worst = by_category[(by_category["verdict"] == MORE) & (by_category["difference"] > 0)]
    if worst.empty:
        tested = by_category[by_category["verdict"] != UNKNOWN]
        tested = tested[["verdict", "difference_lower", "difference_upper"]]
        tested = tested.set_axis(["verdict", "lower", "upper"], axis=1)
        none = "No category of harmless prompts is refused more than the others beyond chance; "
        return [" ".join([none + _unseen(tested), *left])]
    told = [
        f"{row['category']}, {written(row['rate'], row['lower'], row['upper'])}"
        for _, row in worst.nlargest(_WORST, "rate", keep="all").iterrows()
    ]
    more = len(worst) - len(told)
    rest = f"; and {counted(more, 'other')}" if more else ""
    most = (
        "Harmless prompts are refused more than the others, beyond chance, in these categories: "
        f"{'; '.join(told)}{rest}."
    )
    return [" ".join([most, *left])]


def _corrections(of: Material) -> list[str]:
    if of.corrected.empty:
        return []
    safe = of.corrected[of.corrected["measure"] == "over_refusal"]
    if safe.empty:
        return []
    sampled, left = int(safe["sampled"].sum()), int(safe["uncorrected"].sum())
    by = "people's labels" if of.people else "the judge's audit"
    told = (
        f"Rates, differences and ranks are corrected by {by} of "
        f"{counted(sampled, 'response')} to harmless prompts: {_largest_change(safe, 'raw')}"
    )
    if left:
        told += (
            f" {counted(left, 'response')} of kinds that were not sampled "
            f"{'counts' if left == 1 else 'count'} uncorrected."
        )
    return [told]


def _wrong_labels(of: Material) -> list[str]:
    if of.prompt_audit is None:
        return []
    labels, _, corrected = of.prompt_audit
    safe = labels[(labels["label"] == Label.SAFE) & (labels["audited"] > 0)]
    rates = corrected[(corrected["measure"] == "over_refusal") & corrected["rate"].notna()]
    if safe.empty or rates.empty:
        return []
    row = safe.iloc[0]
    return [
        f"People were asked about {counted(int(row['audited']), 'safe prompt')} and call "
        f"{written(row['right'], row['lower'], row['upper'])} of them harmless. Over these alone, "
        f"{_largest_change(rates, 'as_labelled')}"
    ]


def _largest_change(rates: pd.DataFrame, was: str) -> str:
    """Tell what over-refusal was before a correction, of the model that it changes most."""
    most = rates.iloc[int((rates["rate"] - rates[was]).abs().argmax())]
    before, after = (
        written(*(most[name] for name in names))
        for names in (with_bounds(was), ("rate", "lower", "upper"))
    )
    return (
        f"over-refusal{' changes most of ' if len(rates) > 1 else ' of '}{most['model']}: {before} "
        f"becomes {after}."
    )


def _uncertain(of: Material) -> list[str]:
    responses = of.logs.responses
    verdicts = responses[responses["refused"].notna()]
    unsure = int(((verdicts["decided_by"] == "rules") & ~verdicts["certain"].fillna(True)).sum())
    if not unsure:
        return []
    are = "is a guess" if unsure == 1 else "are guesses"
    allowed = ", which rates allow for" if of.people and len(of.corrected) else ""
    return [
        f"{unsure:,} of {counted(len(verdicts), 'verdict')} "
        f"({100 * unsure / len(verdicts):.1f} %) {are} of rules that weren't certain, since no "
        f"judge was asked: expect errors among them{allowed}."
    ]


def _missing(of: Material) -> list[str]:
    responses = of.logs.responses
    missing = int(responses["refused"].isna().sum())
    if not missing:
        return []
    part = missing / len(responses)
    warning = " That is many: look into the reasons first." if part > _HIGH_UNSCORED else ""
    return [
        f"{missing:,} of {counted(len(responses), 'response')} ({100 * part:.1f} %) "
        f"{'has no verdict and counts' if missing == 1 else 'have no verdict and count'} neither "
        f"way.{warning}"
    ]

"""What a report on models says: the findings that ``template/report.txt`` puts into sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from or_eval.analysis.contrasts import MORE, UNKNOWN
from or_eval.analysis.human_labels import ANSWERED, REFUSED
from or_eval.analysis.logs import FRAMING
from or_eval.analysis.material import Material
from or_eval.analysis.report.contents import sentences
from or_eval.analysis.scorecard import CardCoverage
from or_eval.analysis.tables import records
from or_eval.analysis.wording import written
from or_eval.intervals import with_bounds
from or_eval.schema import Label, countings

_HIGH_UNSCORED = 0.05
_FEWEST_CORRELATED = 4
_WORST = 3
_PARTS = {0.1: "a tenth", 0.25: "a quarter", 0.5: "half", 1.0: "all"}


def answers(
    of: Material, covered: CardCoverage | None = None, cautions: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Answer in sentences whether differences are settled, how sure verdicts are, on which prompts.

    What can't be told from the findings is left out, and what the table of rates says itself.

    Args:
        of: What the logs show.
        covered: What of them a scorecard covers.
        cautions: What to read before what is said to be settled.
    """
    labels, responses = of.logs.prompts["label"], of.logs.responses
    asked = responses.groupby("model")["id"].nunique()
    verdicts = responses[responses["refused"].notna()]
    guessed = (verdicts["decided_by"] == "rules") & ~verdicts["certain"].fillna(True)
    missing = len(responses) - len(verdicts)
    return sentences(
        "report",
        cautions=cautions,
        row=of.row,
        counting=countings()[of.counting].name,
        **_countings(of),
        prompts=len(labels),
        safe=int((labels == Label.SAFE).sum()),
        toxic=int((labels == Label.TOXIC).sum()),
        tasks=responses["task"].nunique(),
        asked=(asked.min(), asked.max()),
        responses=len(responses),
        verdicts=len(verdicts),
        unsure=int(guessed.sum()),
        missing=missing,
        many_missing=missing > _HIGH_UNSCORED * len(responses),
        people=of.people,
        judge="human labels" if of.people else "the judge's audit",
        scorecard=[] if covered is None else [*covered.told, *covered.warnings],
        **_pairs(of),
        **_framings(of.framings),
        **_categories(of),
        expected=_expected(of),
        outside=_outside(of),
        corrected=_corrections(of),
        audited=_wrong_labels(of),
        correlation=_correlation(of),
    )


def _countings(of: Material) -> dict[str, Any]:
    """Find how far the two countings are apart: in rates, and in what differs beyond chance."""
    other = of.other.counting
    rates = of.models[of.models["n"] > 0]
    if of.said is not None and of.said.dropna().isin((REFUSED, ANSWERED)).all():
        rates = rates.iloc[:0]  # such labels correct both countings towards one rate
    apart = (rates["rate"] - rates[f"rate_{other}"]).abs()
    pairs = records(of.differences)
    by_one = [row for row in pairs if (row["verdict"] == MORE) != (row[f"verdict_{other}"] == MORE)]
    return {
        "beside": countings()[other].name,
        "other": f"rate_{other}",
        "apart": records(rates.loc[[apart.idxmax()]])[0] if (apart > 0).any() else None,
        "by_one": len(by_one),
        "compared": len(pairs),
    }


def _pairs(of: Material) -> dict[str, Any]:
    """Part the models that refuse more harmless prompts than another from those that don't."""
    pairs = of.differences
    if len(pairs):
        pairs = pairs[(pairs["label"] == Label.SAFE) & (pairs["n"] > 0)]
    rows = records(pairs)
    sure = [row for row in rows if row["verdict"] == MORE]
    behind = {row["a"] if row["difference"] > 0 else row["b"] for row in sure}
    compared = {row[side] for row in rows for side in "ab"}
    by_rate = [str(name) for name in of.models["model"].unique() if name in compared]
    left = None
    if of.standing is not None and of.standing.differences and sure:
        # the largest part that leaves all of them, or else that of which least is left
        stand = of.standing.stand
        share = max((part for part, left in stand.items() if left == len(sure)), default=min(stand))
        left = (_PARTS[share], stand[share])
    return {
        "pairs": len(rows),
        "sure": len(sure),
        "unknown": sum(row["verdict"] == UNKNOWN for row in rows),
        "behind": [name for name in by_rate if name in behind],
        "best": [name for name in by_rate if name not in behind],
        "unseen": _unseen(pairs),
        "standing": left,
    }


def _unseen(compared: pd.DataFrame, start: str = "") -> str:
    """Tell what isn't ruled out: that a difference may be chance is no proof that there is none."""
    if compared.empty:
        return ""
    open_ = compared.loc[compared["verdict"] != MORE, [f"{start}lower", f"{start}upper"]]
    points = 100 * open_.abs().to_numpy().max(initial=0.0)
    if pd.isna(points):
        return "there are too few families of prompts to rule out any difference."
    return f"differences of up to {points:.0f} percentage points can't be ruled out."


def _framings(framings: pd.DataFrame) -> dict[str, Any]:
    """Find, for each model, the framing that changes over-refusal most beyond chance."""
    if framings.empty:
        return {"framings": 0, "framed": [], "unseen_framing": ""}
    safe = framings[framings["label"] == Label.SAFE]
    return {
        "framings": safe[FRAMING].nunique(),
        "framed": records(safe[safe["verdict"] == MORE].drop_duplicates("model")),
        "unseen_framing": _unseen(safe),
    }


def _categories(of: Material) -> dict[str, Any]:
    found = of.standing_out
    told = found if found.empty else found[found["verdict"] != UNKNOWN]
    worst = told if told.empty else told[(told["verdict"] == MORE) & (told["difference"] > 0)]
    return {
        "groups_withheld": len(of.corrected) and {"category", "language", "method"} & {*of.splits},
        "categories": len(found),
        "untold": [] if found.empty else sorted({*found["category"]} - {*told["category"]}),
        "worst": [] if worst.empty else records(worst.nlargest(_WORST, "rate", keep="all")),
        "all_worst": len(worst),
        "unseen_category": _unseen(told, "difference_"),
    }


def _expected(of: Material) -> dict[str, Any] | None:
    """Tell what rate is to be expected of the model whose over-refusal is most open."""
    if of.usual is None:
        return None
    rows = of.models[of.models["measure"] == "over_refusal"]
    rows = rows[rows["expected"].notna() & (rows["uncertain"] > 0)]
    if rows.empty:
        return None
    most = rows.iloc[int((rows["highest"] - rows["lowest"]).argmax())]
    told = written(*(most[name] for name in with_bounds("expected")))
    worst = f"{100 * most['lowest']:.1f} to {written(most['highest'])}"
    return {"model": most["model"], "told": told, "worst": worst, "several": len(rows) > 1}


def _outside(of: Material) -> list[str]:
    """Name the languages of uncertain verdicts of which nobody labelled any like them."""
    if of.usual is None:
        return []
    responses = of.responses
    guessed = (responses["decided_by"] == "rules") & ~responses["certain"].fillna(True)
    told = pd.Series(of.usual.sampled[of.usual.cell[responses.index]], responses.index)
    languages = responses.loc[guessed & ~told, "response_language"].fillna("unknown languages")
    return sorted(map(str, languages.unique()))


def _corrections(of: Material) -> dict[str, Any] | None:
    rows = of.corrected
    if rows.empty or (safe := rows[rows["measure"] == "over_refusal"]).empty:
        return None
    sums = {"sampled": int(safe["sampled"].sum()), "left": int(safe["uncorrected"].sum())}
    return sums | {"change": _largest_change(safe, "raw", of)}


def _wrong_labels(of: Material) -> dict[str, Any] | None:
    if of.prompt_audit is None:
        return None
    labels, corrected = of.prompt_audit.labels, of.prompt_audit.corrected
    safe = records(labels[(labels["label"] == Label.SAFE) & (labels["audited"] > 0)])
    rates = corrected[(corrected["measure"] == "over_refusal") & corrected["rate"].notna()]
    if not safe or rates.empty:
        return None
    right = written(*(safe[0][name] for name in ("right", "lower", "upper")))
    change = _largest_change(rates, "as_labelled", of)
    return {"n": int(safe[0]["audited"]), "right": right, "change": change}


def _largest_change(rates: pd.DataFrame, was: str, of: Material) -> str:
    """Tell what over-refusal was before a correction, of the model that it changes most."""
    most = rates.iloc[int((rates["rate"] - rates[was]).abs().argmax())]
    before, after = (
        written(*(most[name] for name in names))
        for names in (with_bounds(was), ("rate", "lower", "upper"))
    )
    return (
        f"over-refusal ({countings()[of.counting].name}) {'changes most ' * (len(rates) > 1)}of "
        f"{most['model']}: {before} becomes {after}."
    )


def _correlation(of: Material) -> dict[str, Any] | None:
    found = of.correlation
    if pd.isna(found.rho) or found.models < _FEWEST_CORRELATED:
        return None
    told = written(found.rho, found.lower, found.upper, kind="number", between=" to ")
    return {**found._asdict(), "told": f"Spearman's rho {told}"}

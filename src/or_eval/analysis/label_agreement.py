"""Verdicts against people's labels: how far they agree, where not, and what a judge would add."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from or_eval.analysis.agreement import (
    MISSING,
    cohens_kappa,
    f1_score,
    fleiss_kappa,
    krippendorff_alpha,
)
from or_eval.analysis.human_labels import (
    ANNOTATOR,
    ANSWERED,
    ANSWERS,
    LABELS,
    REFUSED,
    Joined,
    Labels,
    truth_of,
)
from or_eval.analysis.responses import counted_as
from or_eval.analysis.samples import read_details
from or_eval.analysis.tables import plain, records, spreadsheet_safe
from or_eval.intervals import Estimate, bounded, rate_interval
from or_eval.schema import FULL, STRICT, Reason, ResponseClass, UnscoredReason

_STAGES = ("rules", "judge")
GROUPINGS = ("model", "category", "language")
_NO_JUDGE = (
    UnscoredReason.NO_RESPONSE.value,
    UnscoredReason.CUT_OFF.value,
    UnscoredReason.TOOL_CALL.value,
    UnscoredReason.BLOCKED.value,
    UnscoredReason.OTHER_MODEL.value,
    UnscoredReason.DEGENERATE.value,
)


class LabelAgreement(NamedTuple):
    """Verdicts measured against labels.

    Attributes:
        groups: Refused or not, for all, by model, category, language, and by part
            (certain, uncertain): ``by``, ``group``, ``n``, ``unscored``, ``agree`` (of those
            scored) and ``kappa`` by the strict counting, ``agree_full`` and ``kappa_full`` with
            partial refusals as answers on both sides, each with ``_lower`` and ``_upper``.
        classes: For each of these groups and each class, ``refused`` and ``refused_full`` among
            them:
            ``labelled``, ``said``, and ``precision``, ``recall``, ``f1`` with their bounds.
        confusion: Labels (rows) by verdicts (columns, ``unscored`` among them).
        raters: Agreement of the annotators with each other, and with or-eval as one more:
            ``raters``, ``measure``, ``on`` (``classes``, ``refused`` or ``refused_full``), ``n``,
            ``value``, ``lower``, ``upper``.
        cascade: ``responses``, ``judge_calls`` a cascade makes, ``saved`` (the share it doesn't),
            ``certain_right`` (the share of certain verdicts that the labels confirm).
        disagreements: The rows on which verdict and label differ on whether the model refused,
            strict.
    """

    groups: pd.DataFrame
    classes: pd.DataFrame
    confusion: pd.DataFrame
    raters: pd.DataFrame
    cascade: dict[str, float]
    disagreements: pd.DataFrame


def label_agreement(joined: pd.DataFrame, annotators: Sequence[str] = ()) -> LabelAgreement:
    """Measure verdicts against labels.

    Intervals treat the responses to one prompt as a family: that of a rate for shares,
    precision and recall, the jackknife over prompts for kappa, alpha and F1.

    Args:
        joined: A row per rated response: ``human`` (its label, one of :data:`LABELS`, missing where
            the annotators are split: such a row counts between raters alone);
            ``refused``, ``response_class``, ``unscored_because``, ``decided_by``, ``certain``,
            ``model``, ``category``, ``language`` (as in a responses frame); ``family`` (its
            prompt).
        annotators: Columns with the labels of single annotators, missing where there is none.
    """
    rated = _comparable(joined)
    rows = rated[rated["human"].notna()]
    groups: list[dict[str, Any]] = []
    classes: list[dict[str, Any]] = []
    for by, group, part in _parts(rows):
        place = {"by": by, "group": group}
        groups.append(place | _whether_refused(part))
        classes.extend(place | scores for scores in _class_scores(part))
    differ = rows["refused"].notna() & (rows["refused"] != rows["human_refused"])
    return LabelAgreement(
        pd.DataFrame(groups),
        pd.DataFrame(classes),
        _confusion(rows),
        _raters(rated, list(annotators)),
        _cascade(rows),
        joined.loc[rows.index[differ.fillna(False)]],
    )


def _comparable(joined: pd.DataFrame) -> pd.DataFrame:
    """Add what the measures need: whether the label means refused, and both sides' classes.

    By the full counting, too, where a label that says no more than refused or answered is taken at
    its word: people who had two words called most partial refusals answered.

    A class that no label names can't be agreed on: verdicts of such a class count as direct
    refusals among the classes. Where labels or verdicts say no more than refused or answered,
    these are the classes.
    """
    refused, full = (truth_of(joined["human"], key).eq(1) for key in (STRICT, FULL))
    verdict = joined["response_class"].where(joined["refused"].notna())
    unclassed = (joined["refused"].notna() & verdict.isna()).any()
    if unclassed or joined["human"].isin([REFUSED, ANSWERED]).any():
        verdict = joined["refused"].map({True: REFUSED, False: ANSWERED})
        label = refused.map({True: REFUSED, False: ANSWERED}).where(joined["human"].notna())
    else:
        label = joined["human"]
        unnamed = verdict.notna() & ~verdict.isin([*label.dropna().unique(), *ANSWERS])
        verdict = verdict.mask(unnamed, ResponseClass.DIRECT_REFUSAL.value)
    sure = joined["certain"].fillna(False) & joined["decided_by"].isin(["rules", "provider"])
    return joined.assign(
        human=label,
        human_refused=refused,
        human_refused_full=full,
        refused_full=counted_as(joined, FULL)["refused"],
        verdict=verdict,
        sure=sure,
        asks_judge=~sure & ~joined["unscored_because"].isin(_NO_JUDGE),
    )


def _parts(rows: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    yield "all", "all", rows
    for by in GROUPINGS:
        for group, part in rows.groupby(by, sort=True):
            yield by, str(group), part
    yield "part", "certain", rows[rows["sure"]]
    yield "part", "uncertain", rows[~rows["sure"]]


def _whether_refused(part: pd.DataFrame) -> dict[str, Any]:
    families = part["family"].to_numpy(dtype=object)
    told: dict[str, Any] = {"n": len(part), "unscored": int(part["refused"].isna().sum())}
    for end in ("", f"_{FULL}"):
        truth = part[f"human_refused{end}"].to_numpy(dtype=np.int64)
        said = part[f"refused{end}"].astype("Int64").to_numpy(dtype=np.int64, na_value=MISSING)
        scored = said != MISSING
        agree = rate_interval((truth == said)[scored], families[scored])
        told |= bounded(f"agree{end}", agree)
        told |= bounded(f"kappa{end}", cohens_kappa(truth, said, 2, families))
    return told


def _class_scores(part: pd.DataFrame) -> Iterator[dict[str, Any]]:
    scored = part[part["refused"].notna()]
    families = scored["family"].to_numpy(dtype=object)
    for name in (REFUSED, f"{REFUSED}_{FULL}"):
        truth, said = (scored[column].to_numpy(dtype=bool) for column in (f"human_{name}", name))
        yield _scores(name, truth, said, families)
    for name in sorted(set(part["human"]) | set(part["verdict"].dropna())):
        if name != REFUSED:
            of_class = (scored[side].eq(name).fillna(False) for side in ("human", "verdict"))
            truth, said = (flags.to_numpy(dtype=bool) for flags in of_class)
            yield _scores(name, truth, said, families)


def _scores(
    name: str, truth: NDArray[np.bool_], said: NDArray[np.bool_], families: NDArray[Any]
) -> dict[str, Any]:
    return {
        "class": name,
        "labelled": int(truth.sum()),
        "said": int(said.sum()),
        **bounded("precision", rate_interval(truth[said], families[said])),
        **bounded("recall", rate_interval(said[truth], families[truth])),
        **bounded("f1", f1_score(truth, said, families)),
    }


def _confusion(rows: pd.DataFrame) -> pd.DataFrame:
    table = pd.crosstab(rows["human"], rows["verdict"].fillna("unscored"))
    table = table.rename_axis(index=None, columns=None)
    return table.reindex(
        index=[name for name in LABELS if name in table.index],
        columns=[name for name in (*LABELS, "unscored") if name in table.columns],
    )


def _raters(rows: pd.DataFrame, annotators: list[str]) -> pd.DataFrame:
    classes = [
        name
        for name in LABELS
        if rows[[*annotators, "human", "verdict"]].isin([name]).any(axis=None)
    ]
    numbers = {name: number for number, name in enumerate(classes)}
    whether, fully = (
        truth_of(pd.Series(classes, classes, dtype="str"), key).to_dict() for key in (STRICT, FULL)
    )
    families = rows["family"].to_numpy(dtype=object)
    found = []
    for on, codes in (("classes", numbers), (REFUSED, whether), (f"{REFUSED}_{FULL}", fully)):
        given = {name: rows[name].map(codes) for name in [*annotators, "verdict"]}
        if on != "classes":
            given["verdict"] = rows[on]
        ratings: dict[str, NDArray[Any]] = {
            name: codes_of.astype("Int64").to_numpy(dtype=np.int64, na_value=MISSING)
            for name, codes_of in given.items()
        }
        size = int(max(codes.values(), default=0)) + 1
        for one, other in combinations(annotators, 2):
            kappa = cohens_kappa(ratings[one], ratings[other], size, families)
            found.append(_rating([one, other], "Cohen's kappa", on, ratings, kappa))
        for names in (annotators, [*annotators, "verdict"]):
            if len(names) < 2:
                continue
            stacked = np.column_stack([ratings[name] for name in names])
            fleiss = fleiss_kappa(stacked, size, families)
            alpha = krippendorff_alpha(stacked, size, families)
            found.append(_rating(names, "Fleiss' kappa", on, ratings, fleiss))
            found.append(_rating(names, "Krippendorff's alpha", on, ratings, alpha))
    return pd.DataFrame(found, columns=["raters", "measure", "on", "n", *Estimate._fields])


def _rating(
    names: Sequence[str],
    measure: str,
    on: str,
    ratings: dict[str, NDArray[Any]],
    estimate: Estimate,
) -> dict[str, Any]:
    given = np.column_stack([ratings[name] != MISSING for name in names]).sum(axis=1)
    rated_by = 2 if measure.startswith("Kripp") else len(names)
    shown = ["or-eval" if n == "verdict" else n.removeprefix(ANNOTATOR) for n in names]
    return {
        "raters": ", ".join(shown),
        "measure": measure,
        "on": on,
        "n": int((given >= rated_by).sum()),
        **estimate._asdict(),
    }


def _cascade(rows: pd.DataFrame) -> dict[str, float]:
    sure = rows[rows["sure"]]
    right = (sure["refused"] == sure["human_refused"]).mean() if len(sure) else np.nan
    calls = int(rows["asks_judge"].sum())
    return {
        "responses": len(rows),
        "judge_calls": calls,
        "saved": 1 - calls / len(rows) if len(rows) else np.nan,
        "certain_right": float(right),
    }


def reason_agreement(
    responses: pd.DataFrame, scorer: str = "refusal"
) -> tuple[int, Estimate, Estimate, pd.DataFrame] | None:
    """Compare the grounds that rules and judge name, where both read a response and name one.

    Returns:
        For how many both name one; of these the share for which it is the same, and Cohen's kappa,
        with intervals over prompts; and how often which went with which (``rules``, ``judge``,
        ``n``). None where there is nothing to compare.
    """
    judged = responses[responses["judge_class"].notna()]
    stages = read_details(judged, scorer)["stages"]
    pairs = pd.DataFrame({stage: [_named(said, stage) for said in stages] for stage in _STAGES})
    pairs = pairs.assign(family=judged["id"].to_numpy()).dropna()
    if pairs.empty:
        return None
    grounds, families = [reason.value for reason in Reason], pairs["family"].to_numpy()
    rules, judge = ([grounds.index(name) for name in pairs[stage]] for stage in _STAGES)
    return (
        len(pairs),
        rate_interval((pairs["rules"] == pairs["judge"]).to_numpy(dtype="float64"), families),
        cohens_kappa(rules, judge, len(grounds), families),
        pairs.groupby(list(_STAGES)).size().rename("n").reset_index(),
    )


def _named(stages: Any, stage: str) -> str | None:
    """Give the ground that a stage names; older scores have other words in its place."""
    said = stages.get(stage) if isinstance(stages, dict) else None
    reason = said.get("reason") if isinstance(said, dict) else None
    return reason if reason in list(Reason) else None


_SHOWN = (
    *("model", "id", "epoch", "human", "response_class", "refused", "certain", "decided_by"),
    *("category", "language", "prompt", "response", "evidence", "explanation"),
)


def write_agreement(
    found: LabelAgreement,
    labels: Labels,
    joined: Joined,
    reasons: pd.DataFrame | None,
    scorer: str,
    out: Path,
) -> list[Path]:
    """Write what was found into a folder.

    ``agreement.json`` holds all of it; ``groups.csv``, ``classes.csv``, ``confusion.csv`` and
    ``raters.csv`` the tables, ``reasons.csv`` the grounds that rules and judge name where both do;
    ``disagreements.jsonl`` the responses on which verdict and label
    differ, with prompt, response and evidence.

    Returns:
        The paths written.
    """
    out.mkdir(parents=True, exist_ok=True)
    tables = {
        "groups": found.groups,
        "classes": found.classes,
        "confusion": found.confusion.rename_axis("human").reset_index(),
        "raters": found.raters,
    }
    if reasons is not None:
        tables["reasons"] = reasons
    written = []
    for name, table in tables.items():
        written.append(out / f"{name}.csv")
        spreadsheet_safe(table).to_csv(written[-1], index=False)
    summary: dict[str, Any] = plain(
        {
            "joined_by": joined.by,
            "joined": int(joined.rows["human"].notna().sum()),
            "responses_without_label": joined.without_label,
            "labels_without_response": joined.without_response,
            "rows_without_label": labels.unlabelled,
            "cascade": found.cascade,
            **{name: records(table) for name, table in tables.items()},
        }
    )
    written.append(out / "agreement.json")
    written[-1].write_text(json.dumps(summary, ensure_ascii=False, indent=2) + "\n", "utf-8")
    written.append(out / "disagreements.jsonl")
    with written[-1].open("w", encoding="utf-8") as file:
        for row in records(_readable(found.disagreements, scorer)):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return written


def _readable(disagreements: pd.DataFrame, scorer: str) -> pd.DataFrame:
    """Give the disagreements with the texts that a person needs to judge them."""
    rows = disagreements
    if "log" in rows:
        rows = rows.assign(**read_details(rows, scorer)[["prompt", "response", "explanation"]])
    return rows[[column for column in _SHOWN if column in rows]]

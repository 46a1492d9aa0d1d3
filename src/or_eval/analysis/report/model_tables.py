"""The tables of a report on models, in order, each with its words."""

from __future__ import annotations

import pandas as pd

from or_eval.analysis.card_coverage import CardCoverage
from or_eval.analysis.discrimination import discrimination
from or_eval.analysis.epochs import epoch_variance
from or_eval.analysis.material import Material
from or_eval.analysis.paired_tests import MORE
from or_eval.analysis.rates import LABEL_OF, class_shares, fourfold
from or_eval.analysis.refusal_kinds import refusal_shares
from or_eval.analysis.report.contents import ReportTable, worded
from or_eval.analysis.wording import COUNTS, MEASURE_NAMES, doubt_shares, written

_CORRECTED = [
    *("model", "measure", "n", "raw", "raw_lower", "raw_upper", "rate", "lower", "upper"),
    *("known_lower", "known_upper", "sampled", "uncorrected", "missed", "false_alarms"),
]
_RANKED = {
    "over_refusal": ("over-refusal", "fewest safe prompts refused"),
    "balanced_accuracy": (
        "balanced accuracy",
        "highest mean of safe prompts answered and toxic ones refused",
    ),
}
_SPLIT = {"method": "rewriting method", "task": "benchmark"}
_COMPARED = {"safe": "over-refusal", "toxic": "toxic rejection", "unlabelled": "refusals"}
_ALWAYS = ("over_refusal", "toxic_rejection")
_NOT_CORRECTED = frozenset({"steadiness", "who-refused", "grounds", "vote-agreement"})


def model_tables(of: Material, covered: CardCoverage | None = None) -> list[ReportTable]:
    """Put what logs show into tables; those with nothing to say are left out."""
    responses, sample = of.responses, of.sample
    truth = "corrections-by-people" if of.people else "corrections-by-audit"
    people = of.prompt_audit
    corrected = "" if of.corrected.empty else "corrected"
    tables = [
        worded("models", models_table(of.models)),
        worded("corrections", of.corrected.reindex(columns=_CORRECTED), truth),
        *([] if people is None else _prompt_labels(*people)),
        worded("scorecard", pd.DataFrame() if covered is None else covered.rows),
        worded("worst-categories", of.standing_out),
        *(
            worded(
                f"ranking-{name.replace('_', '-')}",
                table,
                "ranking",
                measure=_RANKED[name][0],
                order=_RANKED[name][1],
            )
            for name, table in of.rankings.items()
        ),
        worded("differences", of.differences),
        worded("factors", of.effects),
        worded("framings", of.framings),
        worded("lineage", of.lineage),
        *(
            worded(f"{name}-differences", frame, "group-differences", thing=_SPLIT.get(name, name))
            for name, frame in of.groups.items()
        ),
        worded("steadiness", epoch_variance(responses)),
        *(
            worded(name, fourfold(responses, by, sample), "fourfold", corrected, by_language=said)
            for name, by, said in (
                ("fourfold", ("model",), ""),
                ("fourfold-by-language", ("model", "language"), " by language"),
            )
            if len(by) == 1 or "language" in of.splits
        ),
        worded("classes", class_shares(responses, found=sample)),
        worded("who-refused", refusal_shares(responses, "provenance")),
        worded("grounds", refusal_shares(responses, "reason")),
        worded("pairs", discrimination(responses, found=sample)),
        *_agreement(of),
        *(
            worded(
                f"rates-by-{name}",
                of.rates("model", name).drop(columns="families"),
                "rates-by",
                thing=_SPLIT.get(name, name),
            )._replace(opened=name == "task")
            for name in of.splits
        ),
        *(
            worded(
                f"models-by-{name}",
                wide_rates(of.rates("model", name), name),
                "models-by",
                column=name,
            )
            for name in of.splits
        ),
        *(
            worded(
                f"difference-matrix-{label}",
                difference_matrix(rows),
                "difference-matrix",
                rate=_COMPARED[str(label)],
            )
            for label, rows in ([] if of.differences.empty else of.differences.groupby("label"))
        ),
        worded("without-verdict", without_verdict(responses)),
    ]
    if corrected:
        tables = [
            table.also("as-they-stand") if table.name in _NOT_CORRECTED else table
            for table in tables
        ]
    return [table for table in tables if not table.frame.empty]


def _prompt_labels(
    labels: pd.DataFrame, consensus: pd.DataFrame, corrected: pd.DataFrame
) -> list[ReportTable]:
    columns = ["model", "measure", "consensus", "n", "refused", "families", "rate"]
    return [
        worded("prompt-labels", labels),
        worded("corrected-for-labels", corrected),
        worded("rates-by-consensus", consensus[[*columns, "lower", "upper"]]),
    ]


def headline(of: Material) -> ReportTable:
    """Give the two rates of each model with what could change them, for the first screen."""
    rates = models_table(of.models)
    shown = [name for name in LABEL_OF if name in rates and rates[name].notna().any()]
    ends = ("", "_lower", "_upper", "_raw", "_lowest", "_highest")
    wanted = [name + end for name in shown for end in ends if name + end != "toxic_rejection_raw"]
    frame = rates.reindex(columns=["model", *(name for name in wanted if name in rates)])
    by = f"Ordered by {MEASURE_NAMES[shown[0]]}, highest first. " if shown else ""
    note = f"{by}In brackets: 95 % intervals, where the rate may lie on other prompts of the kind."
    if not of.corrected.empty:
        who = "people's labels" if of.people else "the judge's audit"
        note += f" The rates are corrected by {who}."
    counts = of.models.groupby("model")[list(COUNTS)].sum().loc[frame["model"]]
    uncertain, missing = (shares.to_numpy() for shares in doubt_shares(counts))
    if uncertain.any() or missing.any():
        frame = frame.assign(uncertain_share=uncertain, without_verdict=missing)
        note += " Could be: " + (
            "what the rate would be if every uncertain verdict and every response without one fell "
            "to the answers, or to the refusals."
            if of.corrected.empty
            else "between what the rate of these very responses lies by that sample, if uncertain "
            "verdicts of kinds that it lacks fell to the answers, or to the refusals."
        )
    return ReportTable("headline", "Rates by model", note, frame)


def models_table(rates: pd.DataFrame) -> pd.DataFrame:
    """Put each model's two rates side by side.

    Args:
        rates: Rates by model (:func:`or_eval.analysis.rates.rates`).

    Returns:
        A row per model, the highest first rate first: ``over_refusal`` and ``toxic_rejection``
        with ``_lower`` and ``_upper``, ``_lowest`` and ``_highest`` (and ``_raw``, where rates are
        corrected), ``safe_n`` and ``toxic_n`` (responses with a verdict), ``safe_uncertain``,
        ``safe_without_verdict`` and those of toxic prompts (shares of all responses, errors among
        those without a verdict), ``unscored``, ``errors``.
    """
    rows = []
    for model, group in rates.groupby("model", sort=True):
        by = group.set_index("measure")
        row: dict[str, object] = {"model": model}
        for measure, label in LABEL_OF.items():
            known = measure in by.index
            if not known and measure not in _ALWAYS:
                continue
            for column in ("rate", "lower", "upper", "lowest", "highest"):
                name = measure if column == "rate" else f"{measure}_{column}"
                row[name] = by.at[measure, column] if known else float("nan")
            row[f"{label}_n"] = by.at[measure, "n"] if known else 0
            shares = doubt_shares(by.loc[measure]) if known else (float("nan"),) * 2
            names = (f"{label}_uncertain", f"{label}_without_verdict")
            row |= zip(names, shares, strict=True)
            if known and "raw" in by:
                row[f"{measure}_raw"] = by.at[measure, "raw"]
        rows.append(row | {name: by[name].sum() for name in ("unscored", "errors")})
    frame = pd.DataFrame(rows)
    by_value = [name for name in LABEL_OF if name in frame and frame[name].notna().any()]
    if not by_value:
        return frame
    return frame.sort_values(by_value[0], ascending=False, ignore_index=True, kind="stable")


def without_verdict(responses: pd.DataFrame) -> pd.DataFrame:
    """Count each model's responses without a verdict, by reason."""
    missing = responses[responses["refused"].isna()]
    reasons = missing["unscored_because"].fillna("unscored").rename("reason")
    return reasons.groupby([missing["model"], reasons]).size().rename("responses").reset_index()


def _agreement(of: Material) -> list[ReportTable]:
    if not of.agreement:
        return []
    alphas = "".join(
        f" Krippendorff's alpha over all {of.row}s on {label} prompts: "
        f"{written(*alpha, kind='number', between=' to ')}."
        for label, alpha in ((label, found.alpha) for label, found in of.agreement.items())
        if not pd.isna(alpha.value)
    )
    pairs = [found.pairs.assign(label=label) for label, found in of.agreement.items()]
    table = pd.concat(pairs, ignore_index=True)
    table.insert(0, "label", table.pop("label"))
    return [worded("vote-agreement", table, alphas=alphas)]


def wide_rates(rates: pd.DataFrame, column: str) -> pd.DataFrame:
    """Put each model's rates by a column into one line, as papers print them.

    Args:
        rates: Rates by model and that column (:func:`or_eval.analysis.rates.rates`).
        column: ``category``, ``language``, ...

    Returns:
        A row per model and ``rate``, and a column per value of the column: percentages with
        their intervals, as text. Where there are more values than models, they go down instead,
        and models across.
    """
    known = rates[rates["n"] > 0]
    figures = zip(known["rate"], known["lower"], known["upper"], strict=True)
    cells = known.assign(
        rate=known["measure"].map(MEASURE_NAMES),
        text=[written(*estimate, kind="percentage") for estimate in figures],
    )
    down, across = "model", column
    if known[column].nunique() > known["model"].nunique():
        down, across = across, down
    return _flat(cells.pivot(index=["rate", down], columns=across, values="text").fillna("—"))


def difference_matrix(differences: pd.DataFrame) -> pd.DataFrame:
    """Put the differences between models into a matrix, as papers print them.

    Args:
        differences: Of one label, a row per pair
            (:func:`or_eval.analysis.comparisons.compare_columns`).

    Returns:
        A row per model and a column per model: how many percentage points more the row's model
        refuses than the column's, with the interval, as text; a star where that is more than
        chance.
    """
    columns = ["a", "b", "difference", "lower", "upper", "verdict"]
    both = [
        cell
        for a, b, value, lower, upper, verdict in differences[columns].itertuples(index=False)
        for cell in ((a, b, value, lower, upper, verdict), (b, a, -value, -upper, -lower, verdict))
    ]
    cells = [
        (a, b, written(*estimate, kind="points") + "*" * (verdict == MORE))
        for a, b, *estimate, verdict in both
    ]
    table = pd.DataFrame(cells, columns=["a", "b", "text"])
    table = table.pivot(index="a", columns="b", values="text").fillna("")
    return _flat(table.rename_axis(index="model"))


def _flat(table: pd.DataFrame) -> pd.DataFrame:
    """Put the index among the columns, also where a model or a category is called as it is."""
    return table.reset_index(allow_duplicates=True).rename_axis(columns=None)

"""The tables of a report on models, in order, each with its words."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan

import pandas as pd

from or_eval.analysis.contrasts import MORE
from or_eval.analysis.discrimination import discrimination, epoch_variance
from or_eval.analysis.material import Material
from or_eval.analysis.rates import LABEL_OF, class_shares, fourfold, refusal_shares
from or_eval.analysis.report.contents import ReportTable, worded
from or_eval.analysis.responses import other_counting
from or_eval.analysis.scorecard import CardCoverage
from or_eval.analysis.wording import MEASURE_NAMES, doubt_shares, written
from or_eval.intervals import NO_ESTIMATE, Estimate, bounded, with_bounds
from or_eval.schema import STRICT

_CORRECTED = [
    *("model", "measure", "n", "raw", "raw_lower", "raw_upper", "rate", "lower", "upper"),
    *("known_lower", "known_upper", "sampled", "uncorrected", "missed", "false_alarms"),
]
_CONSENSUS = ["model", "measure", "consensus", "n", "refused", "families", "rate", "lower", "upper"]
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
_BY_CLASS = frozenset({"prompt-labels", "scorecard", "classes", "without-verdict"})
"""Tables that hold whatever counts as refused."""
_NOT_CORRECTED = frozenset({"steadiness", "who-refused", "grounds", "vote-agreement"})


def model_tables(of: Material, covered: CardCoverage | None = None) -> list[ReportTable]:
    """Put what logs show into tables; those with nothing to say are left out."""
    corrected = not of.corrected.empty
    found = []
    for table in _tables(of, covered):
        if table.frame.empty:
            continue
        if table.name not in _BY_CLASS:
            table = table._replace(frame=table.frame.assign(counting=of.counting))
        raw = corrected and table.name in _NOT_CORRECTED
        found.append(table.also("as-they-stand") if raw else table)
    return found


def _tables(of: Material, covered: CardCoverage | None) -> Iterator[ReportTable]:
    responses, sample = of.responses, of.sample
    alike = of.by_category_alike
    more = "" if alike.empty else "categories-alike"
    by_model = worded("models", models_table(of.models, alike), more=more)
    yield by_model if of.usual is None else by_model.also("expected")
    by_whom = "corrections-by-people" if of.people else "corrections-by-audit"
    other, names = of.other.counting, map(str, of.corrected)
    beside = [name for name in names if f"_{other}" in name and name != f"refused_{other}"]
    table = of.corrected.reindex(columns=[*_CORRECTED, *beside, "counting"])
    yield worded("corrections", table, by_whom)
    if of.prompt_audit is not None:
        labels, consensus, _ = of.prompt_audit
        yield worded("prompt-labels", labels)
        yield worded("corrected-for-labels", of.corrected_for_labels)
        yield worded("rates-by-consensus", consensus[_CONSENSUS])
    if covered is not None:
        yield worded("scorecard", covered.rows)
    yield worded("worst-categories", of.standing_out)
    for name, table in of.rankings.items():
        measure, order = _RANKED[name]
        kind = f"ranking-{name.replace('_', '-')}"
        yield worded(kind, table, "ranking", measure=measure, order=order)
    yield worded("differences", of.differences)
    yield worded("factors", of.effects)
    yield worded("framings", of.framings)
    yield worded("lineage", of.lineage)
    for name, frame in of.groups.items():
        thing = _SPLIT.get(name, name)
        yield worded(f"{name}-differences", frame, "group-differences", thing=thing)
    yield worded("steadiness", epoch_variance(responses))
    more = "" if of.corrected.empty else "corrected"
    yield worded("fourfold", fourfold(responses, found=sample), more=more, by_language="")
    if "language" in of.splits:
        table = fourfold(responses, ("model", "language"), sample)
        yield worded("fourfold-by-language", table, "fourfold", more, by_language=" by language")
    yield worded("classes", class_shares(of.strict.responses, found=of.strict.sample))
    yield worded("who-refused", refusal_shares(responses, "provenance"))
    yield worded("grounds", refusal_shares(responses, "reason"))
    yield worded("pairs", discrimination(responses, found=sample))
    if of.agreement:
        yield _agreement(of)
    for name in of.splits:
        table = of.rates("model", name).drop(columns="families")
        more = "" if of.usual is None else "expected"
        found = worded(f"rates-by-{name}", table, "rates-by", more, thing=_SPLIT.get(name, name))
        yield found._replace(opened=name == "task")
    for name in of.splits:
        table = wide_rates(of.rates("model", name), name)
        yield worded(f"models-by-{name}", table, "models-by", column=name)
    for label, rows in [] if of.differences.empty else of.differences.groupby("label"):
        matrix, rate = difference_matrix(rows), _COMPARED[str(label)]
        yield worded(f"difference-matrix-{label}", matrix, "difference-matrix", rate=rate)
    missing = responses[responses["refused"].isna()].fillna({"unscored_because": "unscored"})
    reasons = missing.groupby(["model", "unscored_because"]).size().rename("responses")
    yield worded("without-verdict", reasons.rename_axis(["model", "reason"]).reset_index())


def models_table(rates: pd.DataFrame, alike: pd.DataFrame | None = None) -> pd.DataFrame:
    """Put each model's two rates side by side.

    Args:
        rates: Rates by model (:func:`or_eval.analysis.rates.rates`).
        alike: Those in which categories count alike.

    Returns:
        A row per model, the highest first rate first: ``over_refusal`` and ``toxic_rejection``
        with ``_lower`` and ``_upper``, ``_lowest`` and ``_highest`` (and ``_expected`` with its
        bounds, where that can be told; ``_raw``, where rates are corrected; ``_full`` or that of
        another counting beside it, with its bounds; ``_macro`` with its bounds, where there are any
        with categories alike), ``counting``, ``safe_n`` and ``toxic_n`` (responses with a verdict),
        ``safe_uncertain``, ``safe_without_verdict`` and those of toxic prompts (shares of all
        responses, errors among those without a verdict), ``unscored``, ``errors``.
    """
    rows, known_alike = [], {}
    counting = rates["counting"].iloc[0] if len(rates) else STRICT
    other = other_counting(counting)
    if alike is not None:
        figures = alike[["model", "measure", "rate", "lower", "upper"]].itertuples(index=False)
        known_alike = {(model, measure): Estimate(*told) for model, measure, *told in figures}
    for model, group in rates.groupby("model", sort=True):
        by = group.set_index("measure")
        row: dict[str, object] = {"model": model, "counting": counting}
        for measure, label in LABEL_OF.items():
            known = measure in by.index
            if not known and measure not in _ALWAYS:
                continue
            for column in ("rate", "lower", "upper", "lowest", "highest"):
                name = measure if column == "rate" else f"{measure}_{column}"
                row[name] = by.at[measure, column] if known else nan
            for end in with_bounds(f"{{}}_{other}"):
                row[end.format(measure)] = by.at[measure, end.format("rate")] if known else nan
            for name in ("expected", f"expected_{other}"):
                if name in by:
                    told = by.loc[measure, with_bounds(name)] if known else NO_ESTIMATE
                    row |= bounded(f"{measure}_{name}", Estimate(*told))
            if known_alike:
                row |= bounded(f"{measure}_macro", known_alike.get((model, measure), NO_ESTIMATE))
            row[f"{label}_n"] = by.at[measure, "n"] if known else 0
            shares = doubt_shares(by.loc[measure]) if known else (nan,) * 2
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


def _agreement(of: Material) -> ReportTable:
    alphas = "".join(
        f" Krippendorff's alpha over all {of.row}s on {label} prompts: "
        f"{written(*alpha, kind='number', between=' to ')}."
        for label, alpha in ((label, found.alpha) for label, found in of.agreement.items())
        if not pd.isna(alpha.value)
    )
    pairs = [found.pairs.assign(label=label) for label, found in of.agreement.items()]
    table = pd.concat(pairs, ignore_index=True)
    table.insert(0, "label", table.pop("label"))
    return worded("vote-agreement", table, alphas=alphas)


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
            (:func:`or_eval.analysis.contrasts.contrasts`).

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

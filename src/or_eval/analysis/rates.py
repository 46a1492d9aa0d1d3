"""Over-refusal and toxic rejection, by whatever splits the responses, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from or_eval.analysis.corrections import (
    Corrections,
    Floats,
    corrected_mean,
    expected,
    prompt_weights,
    sampling_error,
    widened,
)
from or_eval.analysis.jackknife import SHARE, jackknife
from or_eval.intervals import (
    SMALLEST_EFFECT,
    EffectiveSize,
    Estimate,
    bounded,
    effective_size,
    rate_interval,
    t_quantile,
    with_bounds,
    with_worst_case,
)
from or_eval.schema import Label, Outcome, ResponseClass

_CORRECTION = (
    *("raw", "raw_lower", "raw_upper", "known_lower", "known_upper"),
    *("sampled", "uncorrected", "missed", "false_alarms"),
)
_DIGITS = 9
NOT_GIVEN = "not given"
"""Stands for the kind of a refusal of which nobody said it: in an old log, or by rules."""
MEASURES = {Label.SAFE: "over_refusal", Label.TOXIC: "toxic_rejection"}
"""What the refused share of the prompts of a label is called."""
_OF_UNLABELLED = {Label.UNLABELLED: "refusal_rate"}
LABEL_OF = {name: label.value for label, name in (MEASURES | _OF_UNLABELLED).items()}
"""The label whose prompts a rate is of."""


def measures_in(responses: pd.DataFrame) -> dict[Label, str]:
    """Give the labels whose prompts have rates, and what these are called.

    Those of safe and of toxic prompts; where no prompt has a label, one of all prompts.
    """
    return MEASURES if responses["label"].isin(list(MEASURES)).any() else _OF_UNLABELLED


def prompt_means(responses: pd.DataFrame) -> pd.DataFrame:
    """Give the refused share of each model's responses to each prompt.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.

    Returns:
        A row per prompt id, a column per model, in order of appearance; NaN where a model has no
        response with a verdict.
    """
    refused = responses["refused"].astype("Float64")
    means = refused.groupby([responses["id"], responses["model"]], sort=False).mean().unstack()
    means = means.reindex(index=pd.unique(responses["id"]), columns=pd.unique(responses["model"]))
    return means.astype("float64")


def by_prompt(responses: pd.DataFrame, column: str) -> pd.Series[Any]:
    """Give what a column says of each prompt, by its id."""
    return responses.drop_duplicates("id").set_index("id")[column]


def rates(
    responses: pd.DataFrame,
    by: Sequence[str] = ("model",),
    found: Corrections | None = None,
    usual: Corrections | None = None,
) -> pd.DataFrame:
    """Give the refused share of safe and of toxic prompts' responses.

    Prompts without a label enter neither rate; where there are no others, theirs is the
    ``refusal_rate``.

    A rate is the mean over prompts of the refused share of the responses to each, so that a
    prompt counts once however often it was asked; its interval counts families
    (:func:`or_eval.intervals.rate_interval`).

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        by: Columns that split the responses, as ``("model", "category")``; responses that have
            no value there are left out.
        found: Corrections of the verdicts (:func:`or_eval.analysis.corrections.corrections`),
            where there are any. Rates are corrected then, and their intervals wider for what
            the sample leaves open.
        usual: The same, with what is usual of verdicts of which nothing was sampled.

    Returns:
        A row per group and label, sorted: the columns of ``by``, ``measure`` (``over_refusal``,
        ``toxic_rejection`` or ``refusal_rate``), ``n`` (responses with a verdict), ``refused``,
        ``uncertain`` (verdicts that are not certain), ``unscored`` (responses with none, errors
        left out), ``errors``, ``families``, ``rate``, ``lower``, ``upper``, and ``lowest`` and
        ``highest``: what the
        rate would be if every uncertain verdict and every response without one fell to the
        answers, or to the refusals (with corrections: of those of a kind that was not sampled, and
        others as far as the sample leaves them open).
        With corrections also ``raw``, ``raw_lower`` and
        ``raw_upper`` (the verdicts as they stand), ``known_lower`` and ``known_upper`` (where the
        rate of these very responses lies), ``sampled`` (responses whose truth is known),
        ``uncorrected`` (responses with verdicts of a kind that was not sampled), ``missed`` and
        ``false_alarms`` (errors in the sample).
        With `usual` also ``expected``, ``expected_lower`` and ``expected_upper``: the rate of these
        very responses that is to be expected of people who label them. Verdicts that it tells
        nothing of, and responses without one, widen it as they do ``lowest`` and ``highest``; there
        is none where that is so of all that are uncertain.
    """
    groups = _Groups.of(responses, by)
    frame = groups.frame
    refused = frame["refused"].to_numpy(np.float64, na_value=np.nan)
    verdicts, failed = ~np.isnan(refused), frame["error"].notna().to_numpy(bool)
    unsure = ~verdicts | ~frame["certain"].fillna(True).to_numpy(bool)
    counted = {
        "n": verdicts,
        "refused": refused == 1,
        "uncertain": unsure & verdicts,
        "unscored": ~verdicts & ~failed,
        "errors": failed,
    }
    table = groups.keys.assign(**{name: groups.counted(flags) for name, flags in counted.items()})
    told = groups.means(refused)
    table["families"] = [len(np.unique(families)) for _, families in told]
    found_rates = [rate_interval(*of) for of in told]
    awaited = {} if usual is None else _expected(groups, usual, unsure)
    taken, open_ = refused, unsure
    if found is not None:  # what a sample tells is open no more
        taken = expected(frame, found).to_numpy()
        open_ = unsure & ~found.sampled[found.cell[frame.index]]
    ends = [groups.mean(np.where(open_, side, taken)) for side in (0.0, 1.0)]
    if found is None:
        return _with(table, found_rates, *ends).assign(**awaited)
    corrected = [corrected_mean(frame.iloc[rows], found) for rows in groups.rows()]
    sizes = [effective_size(*of) if len(of[0]) else None for of in told]
    of_prompts = [one.for_prompts(size) for one, size in zip(corrected, sizes, strict=True)]
    known = np.array([one.estimate for one in corrected]).reshape(-1, 3)
    value = np.array([one.value for one in of_prompts])
    lowest = np.maximum(ends[0] - (value - known[:, 1]), 0.0)
    highest = np.minimum(ends[1] + (known[:, 2] - value), 1.0)
    more = [
        (*raw, *one.estimate[1:], *one[2:]) for raw, one in zip(found_rates, corrected, strict=True)
    ]
    told_more = pd.DataFrame(more, columns=list(_CORRECTION))
    corrected_rates = _with(table, of_prompts, lowest, highest).assign(**awaited)
    return pd.concat([corrected_rates, told_more], axis=1)


def _expected(groups: _Groups, usual: Corrections, unsure: NDArray[np.bool_]) -> dict[str, Floats]:
    """Give the expected rates of groups, with what is told of no verdict at either end."""
    frame = groups.frame
    told = usual.sampled[usual.cell[frame.index]]
    known = (groups.counted(unsure & told) > 0) | (groups.counted(unsure) == 0)
    bounds = []
    for side, end in ((0.0, "lower"), (1.0, "upper")):
        at_worst = frame.assign(refused=frame["refused"].mask(unsure & ~told, bool(side)))
        truth = usual.truth[frame.index].mask(unsure & ~told, side)
        of = usual._replace(truth=truth)
        ends = [corrected_mean(at_worst.iloc[rows], of).estimate for rows in groups.rows()]
        bounds.append([getattr(mean, end) for mean in ends])
    means = [corrected_mean(frame.iloc[rows], usual).estimate.value for rows in groups.rows()]
    names = with_bounds("expected")
    return {
        name: np.where(known, np.array(of), np.nan)
        for name, of in zip(names, (means, *bounds), strict=True)
    }


def _with(
    table: pd.DataFrame, estimates: Sequence[Estimate], lowest: Floats, highest: Floats
) -> pd.DataFrame:
    rates = np.array(estimates, dtype=np.float64).reshape(-1, 3)
    named = dict(zip(("rate", "lower", "upper"), rates.T, strict=True))
    return table.drop(columns="label").assign(**named, lowest=lowest, highest=highest)


def macro_averages(
    responses: pd.DataFrame, column: str = "category", by: Sequence[str] = ("model",)
) -> pd.DataFrame:
    """Give the mean of the rates of the groups of a column, each group counting alike.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        column: What groups the prompts; those without a value are left out.
        by: Columns that split the responses.

    Returns:
        A row per split: the columns of ``by``, ``measure``, ``groups`` (that have a verdict),
        ``rate``, ``lower`` and ``upper`` (:func:`macro_interval`). None with fewer than two groups.
    """
    groups = _Groups.of(responses, [*by, column])
    told = groups.means(groups.frame["refused"].to_numpy(np.float64, na_value=np.nan))
    rows = []
    for places in groups.keys.groupby([*by, "measure"], sort=True).indices.values():
        parts = [told[at] for at in places if len(told[at][0])]
        if len(parts) > 1:
            values, families = (np.concatenate(part) for part in zip(*parts, strict=True))
            of = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
            names = groups.keys.loc[places[0], [*by, "measure"]]
            rows.append((*names, len(parts), *macro_interval(values, families, of)))
    return pd.DataFrame(rows, columns=[*by, "measure", "groups", "rate", "lower", "upper"])


def macro_interval(values: Floats, families: NDArray[Any], groups: NDArray[Any]) -> Estimate:
    """Give the mean of groups' rates, with an interval for other prompts of the same groups.

    It is made as that of a rate is (:func:`or_eval.intervals.rate_interval`), of weighted prompts:
    their variance is that within groups. What a group of few families doesn't show of its own
    variance, since its rate was fitted to them, is supposed to be that of a rate like the mean
    (with one family: all of it); the degrees of freedom are those of the smallest groups, or
    of all families where these are fewer.

    Args:
        values: A value between 0 and 1 for each prompt.
        families: Number of each prompt's family.
        groups: Number of each prompt's group, from 0.
    """
    family = np.unique(families, return_inverse=True)[1]
    size, count = np.bincount(groups), int(groups.max()) + 1
    weights = 1 / count / size[groups]
    share = float(values @ weights)
    if family.max() == 0:
        return Estimate(share, np.nan, np.nan)
    cells, members = np.unique(np.column_stack([groups, family]), axis=0, return_counts=True)
    known = size**2 / np.bincount(cells[:, 0], members**2)  # families of a group, in equal ones
    prompts = 1 / float((weights**2).sum())
    effective = 1 / float((np.bincount(family, weights) ** 2).sum())
    apart = weights * (values - (np.bincount(groups, values) / size)[groups])
    seen, own = float((np.bincount(family, apart) ** 2).sum()), float((apart**2).sum())
    worst, independent = prompts / effective, share * (1 - share)
    alike = max(seen / own, SMALLEST_EFFECT) if own > 0 else worst
    unseen = alike * independent * float((1 / (size * known)).sum()) / count**2
    variance = max(seen, SMALLEST_EFFECT * own) + unseen
    effect = variance * prompts / independent if independent else worst
    supposed = with_worst_case(effect, worst, prompts * min(share, 1 - share), effective)
    freedom = float((1 / known).sum() ** 2 / (1 / known**3).sum())
    t = t_quantile(round(max(min(freedom, effective - 1), 1.0), 1))
    return EffectiveSize((prompts / effect, t), (prompts / supposed, t)).interval(share)


def class_shares(
    responses: pd.DataFrame,
    by: Sequence[str] = ("model",),
    found: Corrections | None = None,
) -> pd.DataFrame:
    """Give the share of each response class among responses that have one, by prompt label.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        by: Columns that split the responses.
        found: Corrections of the verdicts, where there are any: answers are as many then as they
            say, and refusals that verdicts missed are of the classes that the others are of.

    Returns:
        A row per group, label and class: the columns of ``by``, ``label``, ``response_class``,
        ``n`` (responses of the class), ``total``, ``share`` (a mean over prompts, as a rate is),
        ``lower``, ``upper``.
    """
    groups = _Groups.of(responses, by)
    frame = groups.frame
    classed = (frame["response_class"].notna() & frame["refused"].notna()).to_numpy(bool)
    names = [name.value for name in ResponseClass]
    if found is None:
        return _kinds(groups, "response_class", names, classed)
    is_class = np.column_stack([frame["response_class"] == name for name in names])
    members = np.full(is_class.shape, np.nan)
    errors = np.zeros((len(groups.keys), len(names)))
    for at, rows in enumerate(groups.rows()):
        told = rows[classed[rows]]
        of, flags = frame.iloc[told], is_class[told]
        if len(told):
            members[told] = _as_expected(expected(of, found), flags)
            errors[at] = sampling_error(of, found, partial(_means, prompt_weights(of), flags))
    return _kinds(groups, "response_class", names, classed, members, errors)


def refusal_shares(
    responses: pd.DataFrame, kind: Literal["provenance", "reason"], by: Sequence[str] = ("model",)
) -> pd.DataFrame:
    """Give the share that refusals of each kind make of all responses with a verdict.

    The shares of a group add up to its refusal rate.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        kind: Who refused, or on what ground.
        by: Columns that split the responses.

    Returns:
        A row per group, label and kind that occurs: the columns of ``by``, ``label``, the kind,
        ``n`` (refusals of the kind), ``total``, ``share``, ``lower``, ``upper``. Nothing where no
        refusal has a kind.
    """
    groups = _Groups.of(responses, by)
    refused = groups.frame["refused"].fillna(False).to_numpy(bool)
    named = groups.frame[kind].fillna(NOT_GIVEN).where(refused)
    if groups.frame.loc[refused, kind].isna().all():
        named = named.iloc[:0]
    groups = groups._replace(frame=groups.frame.assign(**{kind: named}))
    scored = groups.frame["refused"].notna().to_numpy(bool)
    table = _kinds(groups, kind, sorted(named.dropna().unique()), scored)
    return table[table["n"] > 0].reset_index(drop=True)


def _kinds(
    groups: _Groups,
    column: str,
    names: Sequence[str],
    known: NDArray[np.bool_],
    members: Floats | None = None,
    errors: Floats | None = None,
) -> pd.DataFrame:
    """Give the share of responses of each kind in each group; a mean over prompts, as a rate is."""
    parts = []
    for at, name in enumerate(names):
        flags = (groups.frame[column] == name).fillna(False).to_numpy(bool) & known
        values = np.where(known, flags, np.nan) if members is None else members[:, at]
        shares = [rate_interval(*of) for of in groups.means(values)]
        if errors is not None:
            shares = [widened(one, e, SHARE) for one, e in zip(shares, errors[:, at], strict=True)]
        table = groups.keys.assign(n=groups.counted(flags), total=groups.counted(known), _at=at)
        table[column] = str(name)
        figures = pd.DataFrame(shares, columns=["share", "lower", "upper"])
        parts.append(pd.concat([table, figures], axis=1))
    by = [str(name) for name in groups.keys if name != "measure"]
    columns = [*by, column, "n", "total", "share", "lower", "upper"]
    if not parts:
        return pd.DataFrame(columns=columns)
    table = pd.concat(parts, ignore_index=True)
    table = table.sort_values([*by, "_at"], kind="stable", ignore_index=True)
    return table[columns]


def _means(weights: Floats, is_class: NDArray[np.bool_], refused: pd.Series[float]) -> Floats:
    means: Floats = weights @ _as_expected(refused, is_class)
    return means


def _as_expected(refused: pd.Series[float], is_class: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Give how far responses are of each class, where they are refusals as far as is expected."""
    value = refused.to_numpy()
    kinds = is_class[:, 1:].astype(np.float64)
    usual = kinds.sum(axis=0) / kinds.sum() if kinds.any() else np.eye(kinds.shape[1])[-1]
    kinds[is_class[:, 0]] = usual
    return np.column_stack([1 - value, value[:, None] * kinds])


def fourfold(
    responses: pd.DataFrame,
    by: Sequence[str] = ("model",),
    found: Corrections | None = None,
) -> pd.DataFrame:
    """Give the four cells of label and verdict, and what is computed from them.

    A positive is a toxic prompt, and to refuse is to call it one: precision is the share of
    toxic prompts among those refused; recall is the toxic rejection rate. All of these hang on how
    many prompts of the set are toxic: they can't be compared between sets of another mix.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        by: Columns that split the responses.
        found: Corrections of the verdicts, where there are any; cells then hold what they say,
            which needn't be whole numbers.

    A prompt counts once for each model, as in :func:`rates`: what several responses to it did
    are parts of it.

    Returns:
        A row per group: the columns of ``by``, ``safe answered``, ``safe refused``,
        ``toxic answered``, ``toxic refused`` (prompts, or parts of them), and ``accuracy``,
        ``precision`` and ``f1``, each with ``_lower`` and ``_upper``
        (:func:`or_eval.analysis.jackknife.jackknife`); NaN where there is nothing to tell it from.
    """
    labelled = responses[responses["label"].isin(list(MEASURES))]
    rows = []
    for values, group in labelled.groupby(list(by), sort=True):
        refused = group["refused"].astype("float64") if found is None else expected(group, found)
        refused = refused[refused.notna()]
        if refused.empty:
            continue
        group = group.loc[refused.index]
        asked = group.groupby(["model", "id"])["id"].transform("size").to_numpy(np.float64)
        toxic, part = (group["label"] == Label.TOXIC).to_numpy(), 1 / asked

        def cells(
            refused: pd.Series[float], toxic: NDArray[np.bool_] = toxic, part: Floats = part
        ) -> Floats:
            sides = np.column_stack([1 - refused, refused]) * part[:, None]
            return np.column_stack([sides * ~toxic[:, None], sides * toxic[:, None]])

        def figures(refused: pd.Series[float], cells: Callable[..., Floats] = cells) -> Floats:
            with np.errstate(invalid="ignore"):
                return np.array([of(cells(refused).sum(axis=0)) for of in _OF_FOUR.values()])

        errors = 0 * figures(refused) if found is None else sampling_error(group, found, figures)
        of, columns = (
            group["own_family" if "model" in by else "family"].to_numpy(dtype=object),
            cells(refused),
        )
        counts = columns.sum(axis=0).round(_DIGITS).tolist()
        row = dict(zip(by, values, strict=True)) | {
            name.value: int(n) if n == int(n) else n
            for name, n in zip(Outcome, counts, strict=True)
        }
        for (name, statistic), error in zip(_OF_FOUR.items(), errors, strict=True):
            estimate = jackknife(columns, statistic, of, span=SHARE)
            row |= bounded(name, widened(estimate, error, SHARE))
        rows.append(row)
    columns_of = [*by, *(name.value for name in Outcome), *with_bounds(*_OF_FOUR)]
    return pd.DataFrame(rows, columns=columns_of)


# Of safe answered, safe refused, toxic answered and toxic refused: (..., 4).
_OF_FOUR: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "accuracy": lambda s: (s[..., 0] + s[..., 3]) / s.sum(axis=-1),
    "precision": lambda s: s[..., 3] / (s[..., 3] + s[..., 1]),
    "f1": lambda s: 2 * s[..., 3] / (2 * s[..., 3] + s[..., 1] + s[..., 2]),
}


class _Groups(NamedTuple):
    """Responses split by columns and by label, and in each group by model and prompt.

    Attributes:
        frame: The responses that are in a group.
        keys: A row per group, sorted: the columns that split, ``label`` and ``measure``.
        group: Number of each response's group.
        cell: Number of its group's, model's and prompt's responses.
        group_of: Group of each of these.
        family_of: Number of their family.
        family: The column that tells families.
    """

    frame: pd.DataFrame
    keys: pd.DataFrame
    group: NDArray[Any]
    cell: NDArray[Any]
    group_of: NDArray[Any]
    family_of: NDArray[Any]
    family: str

    @classmethod
    def of(cls, responses: pd.DataFrame, by: Sequence[str]) -> _Groups:
        """Split responses; those without a value in one of the columns are left out."""
        measures = measures_in(responses)
        wanted = responses["label"].isin(list(measures)) & responses[list(by)].notna().all(axis=1)
        frame, names = responses[wanted], [*by, "label"]
        groups = frame.groupby(names, sort=True)
        keys = groups.size().index.to_frame(index=False)
        keys["measure"] = keys["label"].map({label.value: name for label, name in measures.items()})
        family = "own_family" if "model" in by else "family"
        group = groups.ngroup().to_numpy()
        cells = frame.groupby([*names, "id", *{"model"} - {*by}], sort=False)
        cell = cells.ngroup().to_numpy()
        _, first = np.unique(cell, return_index=True)
        families = pd.factorize(frame[family])[0]
        return cls(frame, keys, group, cell, group[first], families[first], family)

    def counted(self, flags: NDArray[np.bool_]) -> NDArray[Any]:
        """Count the responses of each group of which something holds."""
        return np.bincount(self.group[flags], minlength=len(self.keys))

    def rows(self) -> list[NDArray[np.intp]]:
        """Give the places of each group's responses."""
        order = np.argsort(self.group, kind="stable")
        return np.split(order, np.cumsum(self.counted(np.ones(len(order), bool)))[:-1])[
            : len(self.keys)
        ]

    def means(self, values: Floats) -> list[tuple[Floats, NDArray[Any]]]:
        """Give for each group the mean of each cell, missing values aside, and its family."""
        known = ~np.isnan(values)
        size = np.bincount(self.cell[known], minlength=len(self.group_of))
        sums = np.bincount(self.cell[known], values[known], len(self.group_of))
        there = np.flatnonzero(size)
        there = there[np.argsort(self.group_of[there], kind="stable")]
        ends = np.searchsorted(self.group_of[there], np.arange(1, len(self.keys)))
        means = np.split(sums[there] / size[there], ends)
        families = np.split(self.family_of[there], ends)
        return list(zip(means, families, strict=True))[: len(self.keys)]

    def mean(self, values: Floats) -> Floats:
        """Give the mean of each group's means."""
        return np.array([of.mean() if len(of) else np.nan for of, _ in self.means(values)])

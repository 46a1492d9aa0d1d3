"""Are safe prompts safe? Rates by what people say of prompts, and corrected by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from or_eval.analysis.corrections import PRIOR, Corrections, expected
from or_eval.analysis.human_labels import CHANCE, labels_in, probability
from or_eval.analysis.rates import MEASURES, rates
from or_eval.intervals import LEVEL, Estimate, alone, bounded, normal_quantile, with_bounds
from or_eval.schema import Label
from or_eval.sources.columns import columns_by_role
from or_eval.sources.errors import DataError, shown
from or_eval.sources.files import read_table

HARMS = ("harmless", "harmful", "unclear")
_RIGHT = {Label.SAFE: "harmless", Label.TOXIC: "harmful"}
"""What people say of a prompt whose label is right."""

_BY = "by "
_DRAWS = 4000
_SEED = 20250101
_EDGE = 1e-9
_ENDS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)

Floats = NDArray[np.float64]


class PromptAudit(NamedTuple):
    """What people's labels of prompts say.

    Attributes:
        labels: A row per label of the prompts: ``label``, ``prompts``, ``audited``, and ``right``
            (share of the labels that people agree with) with ``lower`` and ``upper``.
        consensus: Rates (:func:`or_eval.analysis.rates.rates`) by ``model`` and ``consensus``.
        corrected: A row per model and measure: ``model``, ``measure``, ``audited``, ``right`` (as
            above, among the prompts that the model has a verdict on), ``as_labelled`` (the rate
            over all prompts of the label, corrected where verdicts are) and ``rate`` (over those
            whose label is right), each with ``_lower`` and ``_upper`` (``lower``, ``upper`` for the
            rate).
    """

    labels: pd.DataFrame
    consensus: pd.DataFrame
    corrected: pd.DataFrame


def read_prompt_labels(path: Path) -> pd.DataFrame:
    """Read what people say of prompts: ``labels.jsonl`` of such a round, or a file like it.

    Args:
        path: A file with ``id`` or ``prompt``, and ``harm`` (harmless, harmful, unclear), or a
            column ``by NAME`` for each annotator; ``probability`` where prompts were not equally
            likely to be asked about.

    Returns:
        A row per prompt: ``id`` and ``prompt`` (missing where the file has none), ``harm`` (missing
        where annotators are split), ``consensus`` and ``chance``.

    Raises:
        DataError: The file can't be read, or a row holds something else.
    """
    table = read_table(labels_in(path))
    voters = [column for column in table.columns if column.startswith(_BY)]
    columns = columns_by_role(table, ("harm", "id", "prompt"), {}, ["harm"])
    if not {"id", "prompt"} & set(columns):
        raise DataError(f"{table.name}: prompt labels need a column id or prompt beside harm")
    rows = []
    for row in table.rows:
        said = {"harm": row.text(columns["harm"])} | {name: row.text(name) for name in voters}
        for name, word in said.items():
            if word not in ("", *HARMS):
                raise row.error(name, f"{shown(word)} isn't one of {', '.join(HARMS)}")
        harm = said.pop("harm") or None
        votes = [word for word in said.values() if word] or [word for word in [harm] if word]
        rows.append(
            {
                "id": row.text(columns["id"]) if "id" in columns else None,
                "prompt": row.text(columns["prompt"]) if "prompt" in columns else None,
                "harm": harm,
                "consensus": _consensus(votes),
                "chance": probability(row) if row.text(CHANCE) else 1.0,
            }
        )
    return pd.DataFrame(rows)


def labels_by_prompt(said: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """Find the prompt that each label is about: by id, or else by text.

    Args:
        said: Of :func:`read_prompt_labels`.
        prompts: Prompt records by id.

    Returns:
        The labels, by the prompts' ids.

    Raises:
        DataError: The labels are about none of these prompts.
    """
    ids = said["id"].where(said["id"].isin(prompts.index))
    texts = pd.Series(prompts.index, index=prompts["prompt"].str.strip())
    texts = texts[~texts.index.duplicated()]
    audit = said.assign(id=ids.fillna(said["prompt"].map(texts)))
    audit = audit[audit["id"].notna()].drop_duplicates("id", keep="last")
    if audit.empty:
        raise DataError(
            "prompt labels: none matches a prompt in the logs; are they about these prompts?"
        )
    return audit.set_index("id")


def prompt_audit(
    responses: pd.DataFrame,
    prompts: pd.DataFrame,
    audit: pd.DataFrame,
    found: Corrections | None = None,
) -> PromptAudit:
    """Give rates by what people say of prompts, and corrected for wrong labels of prompts.

    The corrected rate is that over the prompts whose label people agree with (safe ones that they
    call harmless; *unclear* is not). How many those are is learnt from the sample for the prompts a
    model refuses and for those it answers, each by itself, since wrong labels are refused more
    often (post-stratification). Its interval holds what other prompts, the sample of prompts, and
    the sample of verdicts, where they are corrected too, leave open.

    Args:
        responses: Frame of :func:`or_eval.analysis.responses.read_logs`.
        prompts: Prompt records by id.
        audit: Of :func:`labels_by_prompt`.
        found: Corrections of the verdicts, where there are any.
    """
    labelled = responses[responses["label"].isin(list(MEASURES))]
    consensus = labelled["id"].map(audit["consensus"])
    by_consensus = rates(labelled.assign(consensus=consensus), ("model", "consensus"), found)
    of_all = rates(labelled, found=found).set_index(["model", "measure"])
    rows = []
    for (model, label), group in labelled.groupby(["model", "label"], sort=True):
        measure = MEASURES[Label(str(label))]
        place = (str(model), measure)
        as_labelled = Estimate(*of_all.loc[place, ["rate", "lower", "upper"]])
        raw = as_labelled if found is None else Estimate(*of_all.loc[place, with_bounds("raw")])
        rows.append(
            {
                "model": model,
                "measure": measure,
                **bounded("as_labelled", as_labelled),
                **_corrected(group, audit, Label(str(label)), found, raw),
            }
        )
    order = {name: place for place, name in enumerate(_LEVELS)}
    by_consensus = by_consensus.sort_values(
        ["measure", "model", "consensus"],
        key=lambda column: column.map(order) if column.name == "consensus" else column,
        ignore_index=True,
    )
    corrected = pd.DataFrame(rows, columns=_CORRECTED)
    return PromptAudit(_labels(prompts, audit), by_consensus, corrected)


_CORRECTED = (
    *("model", "measure", *with_bounds("as_labelled"), "audited", *with_bounds("right")),
    *("rate", "lower", "upper"),
)
_LEVELS = ("all say harmless", "most say harmless", "split", "most say not", "all say not")


def _consensus(votes: list[str]) -> str | None:
    harmless, of = votes.count("harmless"), len(votes)
    if not of:
        return None
    if harmless in (0, of):
        return _LEVELS[0] if harmless else _LEVELS[-1]
    if 2 * harmless == of:
        return _LEVELS[2]
    return _LEVELS[1] if 2 * harmless > of else _LEVELS[3]


def _labels(prompts: pd.DataFrame, audit: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for label, right in _RIGHT.items():
        ids = prompts.index[prompts["label"] == label]
        known = audit[audit.index.isin(ids) & audit["harm"].notna()]
        said, random = _said(known, right), np.random.default_rng(_SEED)
        value, drawn = _share(said, said["part"], _luck(said, random), random)
        low, high = np.quantile(drawn, _ENDS)
        bounds = (np.nan, np.nan) if known.empty else (min(low, value), max(high, value))
        rows.append((label.value, len(ids), len(known), value, *bounds))
    columns = ["label", "prompts", "audited", "right", "lower", "upper"]
    table = pd.DataFrame(rows, columns=columns)
    return table[table["prompts"] > 0].reset_index(drop=True)


def _corrected(
    group: pd.DataFrame,
    audit: pd.DataFrame,
    label: Label,
    found: Corrections | None,
    raw: Estimate,
) -> dict[str, Any]:
    """Correct one model's rate on the prompts of one label.

    A prompt that was refused in two of five responses is refused to two fifths, and answered to
    three: what people say of it counts so much for either side.
    """
    group = group[group["refused"].notna()]
    verdict = group["refused"].astype("float64")
    refused = verdict.groupby(group["id"]).mean()
    known = audit[audit.index.isin(refused.index) & audit["harm"].notna()]
    random = np.random.default_rng(_SEED)
    part = np.array([1 - raw.value, raw.value])
    drawn_part = _as_beta(raw, random)
    drawn_parts = np.column_stack([1 - drawn_part, drawn_part])
    said = _said(known, _RIGHT[label], refused[known.index])
    # Labels count once for both sides, so that these err together where a prompt is on both.
    luck = _luck(said, random)
    sides = [_share(said, of, luck, random) for of in (1 - said["part"], said["part"])]
    pooled = _share(said, said["part"] * 0 + 1, luck, random)[0]
    shares = np.array([pooled if np.isnan(share) else share for share, _ in sides])
    drawn_shares = np.column_stack([drawn for _, drawn in sides])
    of_sides = [_refused(group[verdict == side], found, side) for side in (0.0, 1.0)]
    really = np.array([side for side, _ in of_sides])
    drawn_really = np.column_stack([drawn for _, drawn in of_sides])
    value, right = _of(part, shares, really), float(part @ shares)
    if known.empty:
        value = right = np.nan
    drawn = _of(drawn_parts, drawn_shares, drawn_really)
    of_right = (drawn_parts * drawn_shares).sum(axis=-1)
    bounds = [np.quantile(draws, _ENDS) for draws in (of_right, drawn)]
    estimates = [
        Estimate(of, min(low, of), max(high, of))
        for of, (low, high) in zip((right, value), bounds, strict=True)
    ]
    return {
        "audited": len(known),
        **bounded("right", estimates[0]),
        **alone("rate", estimates[1]),
    }


def _of(part: Floats, shares: Floats, really: Floats) -> Any:
    """Give the refused share of the prompts whose label is right.

    A verdict is taken to err as often on prompts with a wrong label as on others: the share of
    right labels among prompts by verdict is then a mixture of those among prompts that are really
    refused and really answered, which is solved for these two.

    Args:
        part: Share of the prompts that verdicts say are answered and refused, (..., 2).
        shares: Share of right labels among these, (..., 2).
        really: Share really refused among these, (..., 2).
    """
    apart = really[..., 1] - really[..., 0]
    tilt = (shares[..., 1] - shares[..., 0]) / np.where(np.abs(apart) < _EDGE, 1.0, apart)
    answered = np.clip(shares[..., 0] - really[..., 0] * tilt, 0, 1)
    refused = np.clip(answered + tilt, 0, 1)
    rate = (part * really).sum(axis=-1)
    right = rate * refused + (1 - rate) * answered
    return rate * refused / np.maximum(right, _EDGE)


def _refused(
    group: pd.DataFrame, found: Corrections | None, verdict: float
) -> tuple[float, Floats]:
    """Give how many of the responses of one verdict are refusals, and how many there may be."""
    if found is None or group.empty:
        return verdict, np.full(_DRAWS, verdict)
    cell, truth = found.cell[group.index].to_numpy(), found.truth[group.index]
    unknown = truth.isna().to_numpy()
    counts = np.bincount(cell[unknown], minlength=len(found.share))
    drawn: Floats = (float(truth.sum()) + found.draws(_DRAWS) @ counts) / len(group)
    return float(expected(group, found).mean()), drawn


def _said(known: pd.DataFrame, right: str, part: pd.Series[float] | None = None) -> pd.DataFrame:
    """Count labels that say the same of prompts that are alike.

    Args:
        known: Labels of prompts, by the prompts' ids.
        right: What right ones say.
        part: How far each prompt is refused; wholly, by default.

    Returns:
        A row per kind: ``chance``, ``right``, ``part`` and ``count``.
    """
    of = pd.Series(1.0, known.index) if part is None else part
    kinds = known.assign(right=known["harm"] == right, part=of).groupby(["chance", "right", "part"])
    return kinds.size().rename("count").reset_index().astype("float64")


def _luck(said: pd.DataFrame, random: np.random.Generator) -> Floats:
    """Draw what labels of each kind weigh together: on average, as many as they are."""
    return random.gamma(said["count"].to_numpy(), size=(_DRAWS, len(said)))


def _share(
    said: pd.DataFrame, part: pd.Series[float], luck: Floats, random: np.random.Generator
) -> tuple[float, Floats]:
    """Give the share of right labels, and shares as they may be: a Bayesian bootstrap with a prior.

    Labels weigh by how likely each prompt was to be asked about. Where all weigh alike, draws are
    from the beta distribution of so many right and wrong ones (Rubin, 1981).

    Args:
        said: Of :func:`_said`.
        part: How far each kind counts.
        luck: Of :func:`_luck`.
        random: For draws of what is supposed before anything is known.
    """
    weight, right, count = (part / said["chance"]).to_numpy(), said["right"], said["count"]
    of_right = weight * right.to_numpy()
    total = float(weight @ count)
    share = float(of_right @ count) / total if total else np.nan
    usual = float(weight**2 @ count) / total if total else 1.0
    supposed = usual * random.gamma(PRIOR, size=(2, _DRAWS))
    rights, wrongs = luck @ of_right + supposed[0], luck @ (weight - of_right) + supposed[1]
    shares: Floats = rights / (rights + wrongs)
    return share, shares


def _as_beta(rate: Estimate, random: np.random.Generator) -> Floats:
    """Draw from a beta distribution with the middle and the width of a rate's interval."""
    if np.isnan(rate.lower):
        return np.full(_DRAWS, rate.value)
    middle = (rate.lower + rate.upper) / 2
    error = (rate.upper - rate.lower) / 2 / normal_quantile()
    size = max(middle * (1 - middle) / max(error, _EDGE) ** 2 - 1, 1e-3)
    drawn: Floats = random.beta(middle * size, (1 - middle) * size, _DRAWS)
    return drawn

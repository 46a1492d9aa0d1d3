"""Judges on the scale of people: how far each configuration's verdicts agree with labels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from or_eval import __version__
from or_eval.analysis.agreement import kappa_of_table
from or_eval.analysis.configuration import Configuration, configuration_of
from or_eval.analysis.human_labels import CHANCE, truth_of
from or_eval.analysis.jackknife import SHARE, jackknife
from or_eval.analysis.logs import LogHead
from or_eval.analysis.responses import counted_as
from or_eval.analysis.tables import plain
from or_eval.analysis.wording import counted, joined, written
from or_eval.intervals import NO_ESTIMATE, Estimate, bounded, rate_interval, wilson, with_bounds
from or_eval.schema import FULL, STRICT
from or_eval.sources.errors import DataError

ALL = "all"
"""Stands for all models or languages in a row."""


class CardRow(BaseModel):
    """What is known of a configuration's verdicts in one language and on one model.

    Attributes:
        configuration: Its hash.
        language: The prompts'; ``all`` for all of them.
        model: The model; ``all`` for all of them.
        n: Labels of people.
        kappa: Between verdicts and labels, refused or not; missing where all are alike. This, F1
            and errors are by the strict counting, and under names that end in ``_full`` by that
            one; older cards have the strict ones alone.
        f1: Of refusal.
        certain: Share of all responses whose verdict is certain.
        certain_errors: Share of these that people say otherwise of.
        certain_n: Labels of certain verdicts.
    """

    model_config = ConfigDict(extra="forbid")

    configuration: str
    language: str
    model: str
    n: int
    kappa: float | None
    kappa_lower: float | None
    kappa_upper: float | None
    f1: float | None
    f1_lower: float | None
    f1_upper: float | None
    certain: float | None
    certain_lower: float | None
    certain_upper: float | None
    certain_errors: float | None
    certain_errors_lower: float | None
    certain_errors_upper: float | None
    certain_n: int
    kappa_full: float | None = None
    kappa_full_lower: float | None = None
    kappa_full_upper: float | None = None
    f1_full: float | None = None
    f1_full_lower: float | None = None
    f1_full_upper: float | None = None
    certain_errors_full: float | None = None
    certain_errors_full_lower: float | None = None
    certain_errors_full_upper: float | None = None


class Scorecard(BaseModel):
    """What a file of cards holds.

    Attributes:
        schema_version: Raised when a reader of the file would have to change.
        or_eval: Version that wrote it.
        created: When, in UTC.
        configurations: What the configurations' hashes stand for.
        rows: For each configuration, language and model, and all of them.
    """

    schema_version: int = 2
    or_eval: str
    created: str
    configurations: dict[str, dict[str, str]]
    rows: list[CardRow]


def configurations(
    heads: Sequence[LogHead], responses: pd.DataFrame, scorer: str
) -> dict[str, Configuration]:
    """Give the configuration of each log's verdicts, by the log's place."""
    by_log = dict(list(responses.groupby("log")))
    nothing = responses.iloc[:0]
    return {
        head.location: configuration_of(head, by_log.get(head.location, nothing), scorer)
        for head in heads
    }


def scorecard(
    responses: pd.DataFrame,
    labelled: pd.DataFrame,
    of_log: Mapping[str, Configuration],
) -> Scorecard:
    """Compare each configuration's verdicts with people's labels.

    Labels count by how likely each response was to be labelled, where they say so.

    Args:
        responses: All responses (:func:`or_eval.analysis.responses.read_logs`).
        labelled: Those with a label: as in a joined frame of
            :mod:`or_eval.analysis.human_labels`, with ``log``.
        of_log: Of :func:`configurations`.
    """
    labelled = labelled[labelled["human"].notna()]
    hashes = {log: found.hash for log, found in of_log.items()}
    rows = []
    for name in dict.fromkeys(hashes.values()):
        of_all = responses[responses["log"].map(hashes) == name]
        of_labels = labelled[labelled["log"].map(hashes) == name]
        for (language, model), part in _parts(of_labels):
            same = of_all if language == ALL else of_all[of_all["language"] == language]
            same = same if model == ALL else same[same["model"] == model]
            place = {"configuration": name, "language": language, "model": model}
            rows.append(place | _figures(part, same))
    return Scorecard(
        or_eval=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        configurations={found.hash: found._asdict() for found in of_log.values()},
        rows=[CardRow.model_validate(plain(row)) for row in rows],
    )


def write_scorecard(card: Scorecard, path: Path) -> Path:
    """Write cards as JSON."""
    text = json.dumps(card.model_dump(), ensure_ascii=False, indent=1)
    path.write_text(text + "\n", "utf-8")
    return path


def read_scorecard(path: Path) -> Scorecard:
    """Read cards.

    Raises:
        DataError: The file can't be read, or is none.
    """
    try:
        return Scorecard.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise DataError(
            f"{path}: isn't a scorecard ({said}); write one with or-eval agreement --scorecard"
        ) from None


def _parts(rows: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    """Split labels by language, and each language by model; all of them first."""
    if rows.empty:
        return []
    parts = [((ALL, ALL), rows)]
    for by in (["language"], ["model"], ["language", "model"]):
        for key, part in rows.groupby(by, sort=True):
            names = dict(zip(by, map(str, key), strict=True))
            parts.append(((names.get("language", ALL), names.get("model", ALL)), part))
    return parts


def _figures(labelled: pd.DataFrame, responses: pd.DataFrame) -> dict[str, Any]:
    scored = labelled[labelled["refused"].notna()]
    chance = scored.get(CHANCE, pd.Series(1.0, scored.index)).astype("float64")
    weight = 1 / chance.fillna(1.0).to_numpy()
    families = scored["family"].to_numpy(dtype=object)
    sure = (scored["certain"].fillna(False) & scored["decided_by"].ne("judge")).to_numpy(bool)
    verdicts = responses[responses["refused"].notna()]
    certain = (verdicts["certain"].fillna(False) & verdicts["decided_by"].ne("judge")).to_numpy()
    figures: dict[str, Any] = {"n": len(labelled), "certain_n": int(sure.sum())}
    figures |= bounded(
        "certain", rate_interval(certain.astype(float), verdicts["id"].to_numpy(dtype=object))
    )
    for counting, end in ((STRICT, ""), (FULL, "_full")):
        truth = truth_of(scored["human"], counting).to_numpy(dtype=np.int64)
        said = counted_as(scored, counting)["refused"].astype("int64").to_numpy()
        cells = np.eye(4)[truth * 2 + said] * weight[:, None]
        figures |= bounded(f"kappa{end}", jackknife(cells, _kappa, families))
        figures |= bounded(f"f1{end}", jackknife(cells, _f1, families, span=SHARE))
        wrong = _share((truth != said)[sure], weight[sure])
        figures |= bounded(f"certain_errors{end}", wrong)
    return figures


def _kappa(sums: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    return kappa_of_table(sums.reshape(*sums.shape[:-1], 2, 2))


def _f1(sums: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    both = 2 * sums[..., 3]
    return both / (both + sums[..., 1] + sums[..., 2])


def _share(wrong: Any, weight: Any) -> Estimate:
    """Give a weighted share with Wilson's interval at the sample's effective size (Kish, 1965)."""
    if not len(wrong):
        return NO_ESTIMATE
    size = float(weight.sum() ** 2 / (weight**2).sum())
    return wilson(float((weight * wrong).sum() / weight.sum()), size)


_FEWEST_LABELS = 20
"""With fewer labels of a language or a model, a card says next to nothing of it."""

_MOST_NAMED = 3


class CardCoverage(NamedTuple):
    """What a card says of a report's verdicts.

    Attributes:
        rows: The card's rows for their configurations; empty where none fits.
        told: What it says, in sentences.
        warnings: What it doesn't cover, in sentences.
    """

    rows: pd.DataFrame
    told: list[str]
    warnings: list[str]


def card_coverage(
    card: Scorecard, heads: Sequence[LogHead], responses: pd.DataFrame, scorer: str
) -> CardCoverage:
    """Find the rows of a card that fit a report, and what the report has that they don't cover.

    Args:
        card: The card.
        heads: The report's logs.
        responses: Their responses.
        scorer: Name of the score.
    """
    of_log = configurations(heads, responses, scorer)
    hashes = responses["log"].map({log: found.hash for log, found in of_log.items()})
    rows = pd.DataFrame([dict(row) for row in card.rows], columns=list(CardRow.model_fields))
    fitting = rows[rows["configuration"].isin(set(hashes))]
    told, warnings = [], []
    for name, part in responses.groupby(hashes, sort=False):
        own = fitting[fitting["configuration"] == name]
        overall = own[(own["language"] == ALL) & (own["model"] == ALL)]
        if overall.empty:
            models = sorted(part["model"].unique())
            warnings.append(
                f"The scorecard has no card for the configuration of these verdicts ({name}; "
                f"{joined(models[:_MOST_NAMED])}): how far they agree with people is not known."
            )
            continue
        told.append(_sentence(str(name), overall.iloc[0]))
        for column in ("model", "language"):
            if few := _outside(part, own, column):
                warnings.append(
                    f"Outside the scorecard: it has fewer than {_FEWEST_LABELS} labels of "
                    f"responses of the {column}{'s' if len(few) > 1 else ''} {joined(few)}."
                )
    return CardCoverage(fitting.reset_index(drop=True), told, warnings)


def _sentence(name: str, row: pd.Series[Any]) -> str:
    figures = [row[name] for name in with_bounds("certain_errors")]
    sure = (
        ""
        if pd.isna(figures[0])
        else f"; of the certain verdicts {written(*figures, STRICT)} are wrong"
    )
    kappas = " and ".join(
        f"{written(*(row[name] for name in with_bounds(column)), kind='number')} {counting}"
        for counting, column in ((STRICT, "kappa"), (FULL, "kappa_full"))
        if not pd.isna(row[column])
    )
    return (
        f"Verdicts of this configuration ({name}) were compared with "
        f"{counted(int(row['n']), 'human label')}: kappa {kappas or 'unknown'}{sure}."
    )


def _outside(responses: pd.DataFrame, rows: pd.DataFrame, column: str) -> list[str]:
    """Name the models or languages with next to no labels."""
    other = "language" if column == "model" else "model"
    labels = rows[rows[other] == ALL].set_index(column)["n"]
    there = sorted(str(name) for name in responses[column].dropna().unique())
    return [name for name in there if labels.get(name, 0) < _FEWEST_LABELS]

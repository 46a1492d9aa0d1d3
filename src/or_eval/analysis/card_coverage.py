"""Which card fits a report's verdicts, and what lies outside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from or_eval.analysis.estimates import with_bounds
from or_eval.analysis.logs import LogHead
from or_eval.analysis.scorecard import ALL, CardRow, Scorecard, configurations
from or_eval.analysis.wording import counted, joined, written

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
    sure = "" if pd.isna(figures[0]) else f"; of the certain verdicts {written(*figures)} are wrong"
    kappa = written(*(row[name] for name in with_bounds("kappa")), kind="number")
    kappa = "not to be told" if pd.isna(row["kappa"]) else kappa
    return (
        f"Verdicts of this configuration ({name}) were compared with "
        f"{counted(int(row['n']), 'label')} of people: kappa {kappa}{sure}."
    )


def _outside(responses: pd.DataFrame, rows: pd.DataFrame, column: str) -> list[str]:
    """Name the models or languages with next to no labels."""
    other = "language" if column == "model" else "model"
    labels = rows[rows[other] == ALL].set_index(column)["n"]
    there = sorted(str(name) for name in responses[column].dropna().unique())
    return [name for name in there if labels.get(name, 0) < _FEWEST_LABELS]

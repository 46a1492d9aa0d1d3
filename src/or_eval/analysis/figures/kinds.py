"""The kinds of figures that logs can be asked for, each by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pandas as pd

from or_eval.analysis.conditions import base_models
from or_eval.analysis.corrections import Corrections, audited_truth, corrections
from or_eval.analysis.families import prompt_families
from or_eval.analysis.figures.differences import lineage_figure
from or_eval.analysis.figures.drawing import Figure
from or_eval.analysis.figures.of_cells import (
    balance,
    four_fold_tables,
    label_confusion,
    rate_heat_map,
    similarity_heat_map,
    vote_agreement_heat_map,
)
from or_eval.analysis.figures.of_rates import by_group, category_bars, class_stack, trends
from or_eval.analysis.figures.radar import radar
from or_eval.analysis.figures.similarity import method_similarity, sentence_encoder
from or_eval.analysis.figures.trade_off import trade_off
from or_eval.analysis.human_labels import Labels
from or_eval.analysis.label_agreement import label_agreement
from or_eval.analysis.lineage import lineage_effects
from or_eval.analysis.rates import MEASURES, class_shares, rates
from or_eval.analysis.responses import Logs
from or_eval.analysis.sensitive_parts import SENSITIVE_PART, sensitive_parts
from or_eval.analysis.verdict_rows import labelled_verdicts, truth_of
from or_eval.analysis.vote_agreement import agreement_by_label
from or_eval.analysis.votes import vote_matrix


@dataclass(frozen=True)
class Material:
    """What figures are drawn from.

    Attributes:
        logs: The frames of logs.
        scorer: Name of the score that they were read by.
        encoder: The embedding model of the similarity of methods.
        labels: People's labels of responses.
    """

    logs: Logs
    scorer: str
    encoder: str
    labels: Labels | None = None

    def rates(self, *by: str) -> pd.DataFrame:
        """Give rates by these columns, corrected where a sample of the truth is known.

        Empty where one of the columns has fewer than two values; ``model`` may have one.
        """
        responses = self.logs.responses
        if SENSITIVE_PART in by:
            responses = responses.assign(sensitive_part=responses["id"].map(self._parts))
        split = all(responses[name].nunique() > 1 for name in by if name != "model")
        return rates(responses if split else responses.iloc[:0], by, self.sample)

    @cached_property
    def sample(self) -> Corrections | None:
        """What labels, or an audit, say of the verdicts; None where there are none."""
        responses = self.logs.responses
        truth = (
            audited_truth(responses)
            if self.labels is None
            else truth_of(self.logs, self.labels, self.scorer)[0]
        )
        return corrections(responses, truth)

    @cached_property
    def _parts(self) -> pd.Series[str]:
        return sensitive_parts(self.logs)


class Kind(NamedTuple):
    """A kind of figure.

    Attributes:
        about: What it shows.
        needs: What logs must have for it, as said where they haven't.
        draw: Draws it; None where there is nothing to draw.
    """

    about: str
    needs: str
    draw: Callable[[Material], Figure | None]


def _classes(of: Material) -> Figure | None:
    return class_stack(class_shares(of.logs.responses, found=of.sample), of.rates("model"))


def _four_fold(of: Material) -> Figure | None:
    return four_fold_tables(rates(of.logs.responses, ("model", "language"), of.sample))


def _agreement(of: Material) -> Figure | None:
    logs = of.logs
    prompts = logs.prompts[logs.prompts["label"].isin(list(MEASURES))]
    matrix = vote_matrix(logs.responses)
    matrix = matrix[matrix.index.isin(prompts.index)]
    for label, found in agreement_by_label(matrix, prompts, prompt_families(prompts)).items():
        return vote_agreement_heat_map(found.pairs, label)
    return None


def _similarity(of: Material) -> Figure | None:
    prompts = of.logs.prompts
    safe = prompts[(prompts["label"] == "safe") & prompts["method"].notna()]
    if safe["method"].nunique() < 2:
        return None
    return similarity_heat_map(method_similarity(safe, sentence_encoder(of.encoder)))


def _labels(of: Material) -> Figure | None:
    if of.labels is None:
        return None
    return label_confusion(label_agreement(labelled_verdicts(of.logs, of.labels, of.scorer).rows))


def _by(column: str) -> Callable[[Material], Figure | None]:
    return lambda of: by_group(of.rates("model", column), column)


def _grid(row: str, *models: str) -> Callable[[Material], Figure | None]:
    return lambda of: rate_heat_map(of.rates(*models, row, "language"), row)


KINDS: dict[str, Kind] = {
    "trade_off": Kind(
        "over-refusal against toxic rejection, a point per model",
        "a model with verdicts on safe and on toxic prompts",
        lambda of: trade_off(of.rates("model"), base_models(of.logs.heads)),
    ),
    "classes": Kind("the response classes of each model", "responses with a class", _classes),
    "category": Kind(
        "over-refusal by model and category",
        "safe prompts of two categories",
        _by("category"),
    ),
    "category_bars": Kind(
        "over-refusal by category over all models",
        "safe prompts of two categories",
        lambda of: category_bars(of.rates("category")),
    ),
    "radar": Kind(
        "over-refusal over the categories, a polygon per model",
        "safe prompts of three categories",
        lambda of: radar(of.rates("model", "category")),
    ),
    "language": Kind(
        "over-refusal by model and language", "safe prompts in two languages", _by("language")
    ),
    "method": Kind(
        "over-refusal by model and rewriting method",
        "safe prompts written by two methods",
        _by("method"),
    ),
    "source": Kind(
        "over-refusal by model and source of the prompts",
        "safe prompts of two sources",
        _by("source"),
    ),
    "sensitive_part": Kind(
        "over-refusal by place of the sensitive part, as in LTO",
        "safe prompts whose meta.sensitive_part says beginning and end",
        _by(SENSITIVE_PART),
    ),
    "category_language": Kind(
        "over-refusal by category and language, over all models",
        "safe prompts of two categories in two languages",
        _grid("category"),
    ),
    "category_language_by_model": Kind(
        "the same for each model",
        "safe prompts of two categories in two languages",
        _grid("category", "model"),
    ),
    "method_language": Kind(
        "over-refusal by rewriting method and language, over all models",
        "safe prompts by two methods in two languages",
        _grid("method"),
    ),
    "method_language_by_model": Kind(
        "the same for each model",
        "safe prompts by two methods in two languages",
        _grid("method", "model"),
    ),
    "lineage": Kind(
        "what expansion, each rewriting method and each language add to over-refusal",
        "safe prompts that share a seed and differ in level, method or language, and verdicts that "
        "no labels or audit correct",
        lambda of: lineage_figure(lineage_effects(of.logs)) if of.sample is None else None,
    ),
    "balance": Kind(
        "how many prompts there are by category and method, language and label",
        "prompts of two categories",
        lambda of: balance(of.logs.prompts),
    ),
    "four_fold": Kind(
        "safe and toxic prompts, answered and refused, by model and language",
        "responses with verdicts to labelled prompts",
        _four_fold,
    ),
    "trends": Kind(
        "over-refusal along the categories, a line per model",
        "safe prompts of three categories, and no more than eight models",
        lambda of: trends(of.rates("model", "category")),
    ),
    "agreement": Kind(
        "agreement of every two models' votes", "votes of two models that differ", _agreement
    ),
    "similarity": Kind(
        "how alike the prompts of rewriting methods are, by their embeddings",
        "safe prompts written by two methods",
        _similarity,
    ),
    "labels": Kind("people's labels against verdicts", "people's labels: --labels FILE", _labels),
}
"""What ``or-eval figures --kind`` may name."""

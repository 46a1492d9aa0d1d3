"""The kinds of figures that logs can be asked for, each by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

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
from or_eval.analysis.label_agreement import label_agreement
from or_eval.analysis.lineage import lineage_effects
from or_eval.analysis.material import Material
from or_eval.analysis.rates import class_shares, rates
from or_eval.analysis.sensitive_parts import SENSITIVE_PART
from or_eval.analysis.verdict_rows import labelled_verdicts


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
    return class_stack(class_shares(of.responses, found=of.sample), of.models)


def _four_fold(of: Material) -> Figure | None:
    return four_fold_tables(rates(of.responses, ("model", "language"), of.sample))


def _agreement(of: Material) -> Figure | None:
    first = next(iter(of.agreement.items()), None)
    return None if first is None else vote_agreement_heat_map(first[1].pairs, first[0])


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


IN_REPORTS = (
    *("trade_off", "classes", "category", "language", "method", "source"),
    *("category_language", "method_language", "agreement"),
)
"""Kinds that a report on models shows; the others are drawn where they are asked for."""

ON_REQUEST = frozenset({"radar", "trends"})
"""Kinds that are drawn only where they are named: dots show the same, and more of it."""

KINDS: dict[str, Kind] = {
    "trade_off": Kind(
        "over-refusal against toxic rejection, a point per model",
        "a model with verdicts on safe and on toxic prompts",
        lambda of: trade_off(of.models, of.bases),
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

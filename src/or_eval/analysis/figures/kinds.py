"""The kinds of figures that logs can be asked for, each by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from or_eval.analysis.figures.differences import lineage_figure
from or_eval.analysis.figures.drawing import Figure, figure_words, with_counting
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
from or_eval.analysis.human_labels import labelled_verdicts
from or_eval.analysis.label_agreement import label_agreement
from or_eval.analysis.lineage import lineage_effects
from or_eval.analysis.material import Material
from or_eval.analysis.prompt_texts import SENSITIVE_PART
from or_eval.analysis.rates import class_shares, rates


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


_SPLITS = ("category", "language", "method", "source")
_GRIDS = ("category_language", "method_language", "agreement")


def figures_of_report(of: Material) -> list[Figure]:
    """Draw what a report on models shows, what says most first: which models, which prompts, how.

    Of the splits, that comes first whose groups lie farthest apart.

    Args:
        of: What the logs show.
    """
    several = of.models["model"].nunique() > 1  # of one, the table of rates says the same
    first, classes, *grids = (KINDS[name].draw(of) for name in ("trade_off", "classes", *_GRIDS))
    splits = [found for name in _SPLITS if (found := KINDS[name].draw(of)) is not None]
    splits.sort(key=_spread, reverse=True)
    drawn = [first if several else None, *splits[:1], classes, *splits[1:], *grids]
    return [figure for figure in drawn if figure is not None]


def _spread(split: Figure) -> float:
    means = split.data.groupby(split.data.columns[0])["rate"].mean()
    return float(means.max() - means.min())


ON_REQUEST = frozenset({"radar", "trends"})
"""Kinds that are drawn only where they are named: dots show the same, and more of it."""

_DRAWN: dict[str, Callable[[Material], Figure | None]] = {
    "trade_off": lambda of: trade_off(of.models, of.bases),
    "classes": lambda of: class_stack(
        class_shares(of.strict.responses, found=of.strict.sample), of.models
    ),
    "category": _by("category"),
    "category_bars": lambda of: category_bars(of.rates("category")),
    "radar": lambda of: radar(of.rates("model", "category")),
    "language": _by("language"),
    "method": _by("method"),
    "source": _by("source"),
    "sensitive_part": _by(SENSITIVE_PART),
    "category_language": _grid("category"),
    "category_language_by_model": _grid("category", "model"),
    "method_language": _grid("method"),
    "method_language_by_model": _grid("method", "model"),
    "lineage": lambda of: lineage_figure(lineage_effects(of.logs)) if of.sample is None else None,
    "balance": lambda of: balance(of.logs.prompts),
    "four_fold": lambda of: four_fold_tables(rates(of.responses, ("model", "language"), of.sample)),
    "trends": lambda of: trends(of.rates("model", "category")),
    "agreement": _agreement,
    "similarity": _similarity,
    "labels": _labels,
}
_BY_CLASS = {"balance", "similarity", "labels"}
"""Those that show nothing that hangs on the counting."""


def _counted(draw: Callable[[Material], Figure | None]) -> Callable[[Material], Figure | None]:
    """Let a figure say what it counts as refused."""

    def drawn(of: Material) -> Figure | None:
        found = draw(of)
        return None if found is None else with_counting(found, of.counting)

    return drawn


KINDS = {
    name: Kind(**figure_words()["kinds"][name], draw=draw if name in _BY_CLASS else _counted(draw))
    for name, draw in _DRAWN.items()
}
"""What ``or-eval figures --kind`` may name."""

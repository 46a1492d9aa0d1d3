"""The figures of a report, in order."""

from __future__ import annotations

from or_eval.analysis.figures.by_group import by_group
from or_eval.analysis.figures.classes import class_stack
from or_eval.analysis.figures.drawing import Figure
from or_eval.analysis.figures.heat_maps import rate_heat_map, vote_agreement_heat_map
from or_eval.analysis.figures.trade_off import trade_off
from or_eval.analysis.report.findings import Findings


def report_figures(found: Findings) -> list[Figure]:
    """Draw what the findings have data for."""
    by, pooled = found.rates_by, found.pooled
    agreement = list(found.agreement.items())
    figures = [
        trade_off(found.models),
        class_stack(found.classes, found.verdicts),
        *(
            by_group(by[name], name)
            for name in ("category", "language", "method", "source")
            if name in by
        ),
        *(
            rate_heat_map(pooled[row, "language"], row)
            for row in ("category", "method")
            if (row, "language") in pooled
        ),
        *(vote_agreement_heat_map(of.pairs, label) for label, of in agreement[:1]),
    ]
    return [figure for figure in figures if figure is not None]
